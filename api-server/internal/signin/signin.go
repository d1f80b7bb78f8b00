// Package signin keeps browsers signed in: sessions, who they belong to, and the guards
// that pages put before what only a signed-in person may see.
//
//	r.Group(func(r chi.Router) {
//		r.Use(sessions.Middleware)                                  // once, outside of the others
//		r.With(sessions.Signed).Get("/my-courses", …)               // anybody who is signed in
//		r.With(sessions.Staff(org.RoleOwner, org.RoleAdmin)).Get("/console", …)
//	})
//
// A handler behind a guard reads who is there with SignedIn(ctx). Roles are read again with
// every request, so that whoever loses one is out at once. Guards send a browser that is
// not signed in to the sign-in page, and back after it.
//
// A session opens what its proof opens (student.Proof): Person has the memberships in the
// organizations that it covers and no others, and no staff rights without the mailbox. Whatever else
// reads by a session asks Opens.
//
// A session is a row in PostgreSQL and a cookie that holds its random token. The cookie
// is for this host alone, not for scripts, and not sent along from other sites' forms.
package signin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"

	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/provider"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// How long a browser stays signed in: at all, and without a request.
const (
	lifetime = 12 * time.Hour
	idle     = 2 * time.Hour
)

// Path is the sign-in page's.
const Path = "/sign-in/"

// Sessions are the sessions of a site.
type Sessions struct {
	db      *pg.DB
	manager *scs.SessionManager
	now     clock.Clock
	proxies limit.Proxies
	fail    func(http.ResponseWriter, *http.Request, error)
}

// New makes the sessions of the site at publicURL, behind proxies; fail shows a page for an error.
func New(db *pg.DB, now clock.Clock, publicURL string, proxies limit.Proxies, fail func(http.ResponseWriter, *http.Request, error)) *Sessions {
	m := scs.New()
	m.Store, m.Codec, m.HashTokenInStore = store{student.Sessions{DB: db}}, codec{}, true
	m.Lifetime, m.IdleTimeout = lifetime, idle
	m.Cookie.Name, m.Cookie.SameSite, m.Cookie.HttpOnly = "registrar_session", http.SameSiteLaxMode, true
	if strings.HasPrefix(publicURL, "https:") {
		// The prefix makes browsers refuse the cookie from a subdomain or without TLS.
		m.Cookie.Name, m.Cookie.Secure = "__Host-registrar_session", true
	}
	m.ErrorFunc = fail
	return &Sessions{db, m, now, proxies, fail}
}

// codec writes sessions as JSON, whose values the database can read.
type codec struct{}

type stored struct {
	Deadline time.Time      `json:"deadline"`
	Values   map[string]any `json:"values"`
}

// Encode implements scs.Codec.
func (codec) Encode(deadline time.Time, values map[string]any) ([]byte, error) {
	return json.Marshal(stored{deadline, values})
}

// Decode implements scs.Codec.
func (codec) Decode(data []byte) (time.Time, map[string]any, error) {
	s := stored{Values: map[string]any{}}
	err := json.Unmarshal(data, &s)
	return s.Deadline, s.Values, err
}

// What a session holds: the account's id in decimal digits, what it proves, whether an LMS began it, which asks for no
// password, and the organization at whose provider the person signed in.
const (
	providerKey = "provider"
	userKey     = "user"
	proofKey    = "proof"
	launchedKey = "launched"
)

// Middleware loads the browser's session and saves what the handlers change in it.
func (s *Sessions) Middleware(next http.Handler) http.Handler {
	return s.withSessionState(s.manager.LoadAndSave(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.noteUse(r.Context())
		next.ServeHTTP(w, r)
	})))
}

// Begin signs a person in by the password of a, and by a second factor or not, in a new session: one that
// somebody planted before is worth nothing. It is worth nothing itself if a's password changes before the
// answer, or without a factor if a has one by then.
func (s *Sessions) Begin(ctx context.Context, a student.Account, withFactor bool) error {
	return s.beginAs(ctx, a, a.Proof(), withFactor)
}

// BeginByPasskey is Begin without the password. Whoever added the passkey had shown that the mailbox is theirs.
func (s *Sessions) BeginByPasskey(ctx context.Context, a student.Account) error {
	return s.beginAs(ctx, a, student.Mailbox, true)
}

// BeginByProvider is Begin for who has signed in at the provider of the organization, with an address of a domain that
// is the organization's.
func (s *Sessions) BeginByProvider(ctx context.Context, a student.Account, o id.Organization, withFactor bool) error {
	if err := s.beginAs(ctx, a, student.Mailbox, withFactor); err != nil {
		return err
	}
	s.manager.Put(ctx, providerKey, strconv.FormatInt(int64(o), 10))
	return nil
}

func (s *Sessions) beginAs(ctx context.Context, a student.Account, proof student.Proof, withFactor bool) error {
	if err := s.begin(ctx, a.ID, proof); err != nil {
		return err
	}
	v := visitOf(ctx)
	v.as, v.factor = a, withFactor
	s.manager.Put(ctx, factorKey, withFactor)
	s.NotePassword(ctx)
	return nil
}

// Launch signs a person in by the word of the organization's LMS, in a new session. One that is
// there already goes on if it is the person's and opens the organization, too.
func (s *Sessions) Launch(ctx context.Context, user id.User, o id.Organization) error {
	p, err := s.Person(ctx)
	if err != nil || p != nil && p.ID == user && p.Opens(o) {
		return err
	}
	if err := s.begin(ctx, user, student.ByOrganization(o)); err != nil {
		return err
	}
	s.manager.Put(ctx, launchedKey, true)
	return nil
}

func (s *Sessions) begin(ctx context.Context, user id.User, proof student.Proof) error {
	if err := s.manager.Clear(ctx); err != nil {
		return err
	}
	if err := s.manager.RenewToken(ctx); err != nil {
		return err
	}
	if err := s.record(ctx, user, proof); err != nil {
		return err
	}
	s.manager.Put(ctx, userKey, strconv.FormatInt(int64(user), 10))
	s.manager.Put(ctx, proofKey, string(proof))
	visitOf(ctx).as = student.Account{}
	s.note(ctx)
	return nil
}

// record writes the sign-in to the audit log of each organization on whose staff the person is. A student's
// belongs to no organization: the person may have several, which know nothing of each other.
func (s *Sessions) record(ctx context.Context, user id.User, proof student.Proof) error {
	belongings, err := org.Belongings(ctx, s.db, user)
	if err != nil {
		return err
	}
	by, orgs := audit.Actor{Kind: audit.Student, ID: int64(user), Name: "student"}, []id.Organization{}
	for _, b := range newPerson(student.Account{ID: user}, proof, belongings).StaffOf() {
		orgs = append(orgs, b.Organization)
	}
	if len(orgs) > 0 {
		a, err := student.Find(ctx, s.db, user)
		if err != nil {
			return err
		}
		by.Kind, by.Name = audit.Staff, string(a.Email)
	}
	return audit.WriteOwn(ctx, s.db, by, orgs, "signed in", "", visitOf(ctx).from, s.now())
}

// End signs out.
func (s *Sessions) End(ctx context.Context) error {
	visitOf(ctx).as = student.Account{}
	return s.manager.Destroy(ctx)
}

// Flash keeps a sentence for the next page that the browser shows; Flashed takes it.
func (s *Sessions) Flash(ctx context.Context, text string) { s.manager.Put(ctx, "flash", text) }

// Flashed is the sentence that was left by Flash, "" for none. It is shown once.
func (s *Sessions) Flashed(ctx context.Context) string { return s.manager.PopString(ctx, "flash") }

// Person is who is signed in, and where the person belongs, as far as the session opens it.
type Person struct {
	student.Account
	Proof      student.Proof
	Belongings []org.Belonging // of every organization that the proof opens, whatever the role and status
	Elsewhere  bool            // the person belongs to organizations that the proof does not open

	// FactorDue is the first moment at which an organization closes its staff pages, as the person has no
	// second factor; zero: none does.
	FactorDue time.Time
	closed    []id.Organization // those that have closed them

	Provider id.Organization // at whose identity provider the person signed in; 0 for none
	provided []org.Belonging // those that let the person onto their staff pages only over their own
}

// Opens says whether the session may show what the person has in the organization.
func (p *Person) Opens(o id.Organization) bool { return p.Proof.Opens(o) }

// newPerson leaves out what the proof does not open.
func newPerson(a student.Account, proof student.Proof, belongings []org.Belonging) *Person {
	p := &Person{Account: a, Proof: proof}
	for _, b := range belongings {
		if p.Opens(b.Organization) {
			p.Belongings = append(p.Belongings, b)
		} else {
			p.Elsewhere = true
		}
	}
	return p
}

// NeedsFactor says whether an organization has closed its staff pages to the person for want of a second factor.
func (p *Person) NeedsFactor() bool { return len(p.closed) > 0 }

// NeedsProvider is the slug of an organization that lets the person onto its staff pages only over its own
// provider; "" for none.
func (p *Person) NeedsProvider() string {
	if len(p.provided) == 0 {
		return ""
	}
	return p.provided[0].Slug
}

// readProviders finds out whose staff pages need another sign-in.
func (s *Sessions) readProviders(ctx context.Context, p *Person) error {
	if len(p.StaffOf()) == 0 {
		return nil
	}
	demanding, err := provider.Demanding(ctx, s.db, p.ID)
	for _, b := range p.StaffOf() {
		if slices.Contains(demanding, b.Organization) && b.Organization != p.Provider {
			p.provided = append(p.provided, b)
		}
	}
	return err
}

// readLacks finds out where the person needs a second factor and has none.
func (s *Sessions) readLacks(ctx context.Context, p *Person) error {
	if len(p.StaffOf()) == 0 {
		return nil
	}
	lacks, err := factor.Lacks(ctx, s.db, p.ID)
	for _, l := range lacks {
		if p.FactorDue.IsZero() || l.Due.Before(p.FactorDue) {
			p.FactorDue = l.Due
		}
		if !s.now().Before(l.Due) {
			p.closed = append(p.closed, l.Organization)
		}
	}
	return err
}

// Actor is the person as the giver of a command.
func (p *Person) Actor() audit.Actor {
	return audit.Actor{Kind: audit.Staff, ID: int64(p.ID), Name: string(p.Email)}
}

// StaffOf lists where the person is active staff with one of the roles; none named: any. Without
// proof of the mailbox that is nowhere, and without a second factor nowhere where it is overdue.
func (p *Person) StaffOf(roles ...org.Role) []org.Belonging {
	var of []org.Belonging
	if p.Proof != student.Mailbox {
		return of
	}
	for _, b := range p.Belongings {
		if b.Role.Staff() && b.Status == org.MemberActive && (len(roles) == 0 || slices.Contains(roles, b.Role)) &&
			!slices.Contains(p.closed, b.Organization) && !slices.Contains(p.provided, b) {
			of = append(of, b)
		}
	}
	return of
}

// Of is the person's place on the staff of the organization called slug, with one of the
// roles; none named: any. NotFound where the person is no staff: an organization that is
// not theirs does not exist for them. Forbidden: wrong_role where the role is another, needs_factor where a
// second factor is overdue.
func (p *Person) Of(slug string, roles ...org.Role) (org.Belonging, error) {
	for _, b := range p.Belongings {
		switch {
		case b.Slug != slug:
		case slices.Contains(p.provided, b):
			return org.Belonging{}, errNeedsProvider(slug)
		case slices.Contains(p.closed, b.Organization):
			return org.Belonging{}, errNeedsFactor
		}
	}
	for _, b := range p.StaffOf() {
		switch {
		case b.Slug != slug:
		case len(roles) > 0 && !slices.Contains(roles, b.Role):
			return org.Belonging{}, fault.New(fault.Forbidden, WrongRole,
				"At %s you are %s. This page is for %s; ask one of them if you need something from it.", b.Name, withArticle(b.Role), people(roles))
		default:
			return b, nil
		}
	}
	return org.Belonging{}, fault.New(fault.NotFound, "not_found", "there is no such page, or it is not yours to see")
}

// WrongRole is the code of the fault of staff whose role is not enough, NeedsMailbox that of who is
// signed in without proof of the mailbox and wants a page that needs it, NeedsFactor that of staff whose
// organization demands a second factor that they have not set up in time.
const (
	WrongRole    = "wrong_role"
	NeedsMailbox = "needs_mailbox"
	NeedsFactor  = "needs_factor"

	NeedsProvider = "needs_provider"
)

// errNeedsProvider says the slug of the organization, for the page that leads to its provider.
func errNeedsProvider(slug string) error {
	return fault.New(fault.Forbidden, NeedsProvider, "%s", slug)
}

var errNeedsFactor = fault.New(fault.Forbidden, NeedsFactor, "this page opens for who has set up a second factor")

// errNeedsMailbox does not depend on whether the person is staff anywhere.
var errNeedsMailbox = fault.New(fault.Forbidden, NeedsMailbox, "this page opens for who has shown that the account's mailbox is theirs")

func withArticle(role org.Role) string {
	if role == org.RoleTeacher {
		return "a " + string(role)
	}
	return "an " + string(role) // owner, admin, examiner
}

// people names those who have one of the roles: "owners and admins".
func people(roles []org.Role) string {
	names := make([]string, len(roles))
	for i, r := range roles {
		names[i] = string(r) + "s"
	}
	last := len(names) - 1
	return strings.TrimPrefix(strings.Join(names[:last], ", ")+" and "+names[last], " and ")
}

type personKey struct{}

// Whoever is who is signed in behind a guard; elsewhere nil.
func Whoever(ctx context.Context) *Person {
	p, _ := ctx.Value(personKey{}).(*Person)
	return p
}

// SignedIn is who is signed in; only behind a guard.
func SignedIn(ctx context.Context) *Person {
	p, ok := ctx.Value(personKey{}).(*Person)
	if !ok {
		panic("signin: a route without a guard")
	}
	return p
}

// Signed lets a signed-in person pass and sends everybody else to the sign-in page.
func (s *Sessions) Signed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := s.Person(r.Context())
		switch {
		case err != nil:
			s.fail(w, r, err)
		case p == nil:
			http.Redirect(w, r, signInFor(r), http.StatusSeeOther) //nolint:gosec // to the sign-in page, with the rest as its query
		default:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), personKey{}, p)))
		}
	})
}

// Staff is Signed for people who are active staff of an organization with one of the
// roles (none named: any). To others the page does not exist. Forbidden (needs_mailbox) without proof
// of the mailbox.
func (s *Sessions) Staff(roles ...org.Role) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return s.Signed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch p := SignedIn(r.Context()); {
			case p.Proof != student.Mailbox:
				s.fail(w, r, errNeedsMailbox)
			case len(p.StaffOf(roles...)) == 0 && p.NeedsProvider() != "":
				s.fail(w, r, errNeedsProvider(p.NeedsProvider()))
			case len(p.StaffOf(roles...)) == 0 && p.NeedsFactor():
				s.fail(w, r, errNeedsFactor)
			case len(p.StaffOf(roles...)) == 0:
				s.fail(w, r, fault.New(fault.NotFound, "not_found", "there is no such page, or it is not yours to see"))
			default:
				next.ServeHTTP(w, r)
			}
		}))
	}
}

// Mailbox is Signed for people who have shown that the account's mailbox is theirs. Forbidden
// (needs_mailbox) for others.
func (s *Sessions) Mailbox(next http.Handler) http.Handler {
	return s.Signed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if SignedIn(r.Context()).Proof != student.Mailbox {
			s.fail(w, r, errNeedsMailbox)
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// Person reads who is signed in; nil when nobody is.
func (s *Sessions) Person(ctx context.Context) (*Person, error) {
	n, err := strconv.ParseInt(s.manager.GetString(ctx, userKey), 10, 64)
	if err != nil || n < 1 {
		return nil, nil //nolint:nilnil,nilerr // nobody is signed in, which is no error
	}
	proof := student.Proof(s.manager.GetString(ctx, proofKey))
	a, err := student.FindBy(ctx, s.db, id.User(n), proof)
	if fault.KindOf(err) == fault.NotFound {
		return nil, s.End(ctx) // the account was erased
	}
	if err != nil {
		return nil, err
	}
	if s.manager.GetBool(ctx, launchedKey) {
		a.MustChangePassword = false // it was not the password that opened the session
	}
	belongings, err := org.Belongings(ctx, s.db, a.ID)
	if err != nil {
		return nil, err
	}
	p := newPerson(a, proof, belongings)
	at, _ := strconv.ParseInt(s.manager.GetString(ctx, providerKey), 10, 64) // 0 for none
	if p.Provider = id.Organization(at); p.Provider != 0 {
		p.MustChangePassword = false // likewise
	}
	if err := s.readProviders(ctx, p); err != nil {
		return nil, err
	}
	return p, s.readLacks(ctx, p)
}

// signInFor is the sign-in page that leads back; to a page that was posted it does not.
func signInFor(r *http.Request) string {
	if r.Method != http.MethodGet {
		return Path
	}
	return Path + "?next=" + url.QueryEscape(r.URL.RequestURI())
}

// Next is where a sign-in leads that was asked to go to the address next: only to a path
// of this site, else to otherwise.
func Next(next, otherwise string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") ||
		strings.ContainsFunc(next, func(r rune) bool { return r == '\\' || r < ' ' }) { // browsers take these for others, or leave them out
		return otherwise
	}
	return next
}
