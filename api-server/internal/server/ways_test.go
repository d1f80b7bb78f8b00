package server_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/enrollment"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/flow/launch"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/flow/reset"
	"github.com/registrar-dev/registrar/internal/flow/rosterimport"
	"github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// wayKind is what something is that signs a person in, or leads to it.
type wayKind string

const (
	password wayKind = "password"
	link     wayKind = "link"
	session  wayKind = "session"
)

// way is one of them. It opens something while the database has it.
type way struct {
	kind   wayKind
	key    string  // as the database has it: a hash
	secret string  // as its owner has it; "" for a password that is made of its hash alone
	known  [2]bool // which of the organizations ever knew it
	opens  [2]bool // what it opened after the last round: of which organization
}

// drawn is a password in the clear, of whose hash nothing is known yet.
type drawn struct {
	text  string
	known [2]bool
}

// pupil is somebody whom both organizations call about.
type pupil struct {
	mail string
	user id.User

	mu    sync.Mutex
	ways  map[string]*way // by key: all that there are
	drawn []drawn         // since the last round
}

// nobody is no organization: the person, or the platform.
const nobody = -1

// world is two organizations and two people in a database of their own, with all flows that lead to
// a sign-in.
type world struct {
	*flowtest.Fixture

	t      *testing.T
	did    string // how to do it again, for failures
	box    *seal.Box
	r      *rand.Rand
	at     atomic.Int64 // the time, in Unix seconds
	orgs   [2]org.Principal
	source [2]roster.Source
	people [2]*pupil
	calls  []step // what organizations do while these people are there
	item   id.Item

	provision  *provision.Service
	enrollment *enrollment.Service
	launch     *launch.Service
	reset      *reset.Service
	importer   *rosterimport.Importer
	sessions   student.Sessions
	api        *pg.DB

	names  atomic.Int64 // makes texts that differ
	counts *counts
}

// counts are the steps of all worlds, by what was called.
type counts struct {
	mu    sync.Mutex
	steps map[string]int
	spent map[string]time.Duration
}

func (c *counts) add(what string, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps[what]++
	c.spent[what] += time.Since(since)
}

func (c *counts) sum() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for what, steps := range c.steps {
		if what != holding {
			n += steps
		}
	}
	return n
}

func openWorld(t *testing.T, seed, n uint64, c *counts) *world {
	t.Helper()
	db, box := pgtest.New(t), sealtest.New(t)
	api, worker := pgtest.OpenAs(t, db, "api-server"), pgtest.OpenAs(t, db, "worker")
	w := &world{t: t, Fixture: flowtest.On(t, db), box: box, counts: c, r: rand.New(rand.NewPCG(seed, n)),
		did: fmt.Sprintf("-seed %d, world %d", seed, n), sessions: student.Sessions{DB: api}, api: api}
	w.at.Store(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC).Unix())
	mail, base := email.Service{Box: box}, "https://learn.test"
	w.provision = &provision.Service{DB: api, Mail: mail, Clock: w.now, Zone: time.UTC, PublicURL: base,
		Plans: &testplan.Service{DB: api, Mail: mail, Clock: w.now, Zone: time.UTC, PublicURL: base}}
	w.enrollment = &enrollment.Service{DB: api, Clock: w.now, Zone: time.UTC}
	w.launch = &launch.Service{DB: api, Clock: w.now, Zone: time.UTC}
	w.reset = &reset.Service{DB: worker, Mail: mail, Clock: w.now, PublicURL: base}
	w.importer = &rosterimport.Importer{DB: worker, Clock: w.now, Zone: time.UTC, Log: slog.New(slog.DiscardHandler)}
	for i, slug := range []string{"north", "south"} {
		w.Organization(slug)
		o, err := org.Find(t.Context(), db, slug)
		check.NoError(check.Now(t), err, "%s", slug)
		w.orgs[i] = org.Principal{Organization: o, Key: org.Key{ID: 1, Access: org.Full}}
		w.source[i], err = roster.PutSource(t.Context(), db, audit.Platform, o.ID, roster.DefaultSource, nil, w.now())
		check.NoError(check.Now(t), err, "%s", slug)
	}
	w.item = w.Paper("ielts-1", "ielts")
	return w
}

func (w *world) now() time.Time { return time.Unix(w.at.Load(), 0).UTC() }

// text differs from all others of the world.
func (w *world) text(what string) string { return fmt.Sprintf("%s-%d", what, w.names.Add(1)) }

// fine ends the test for errors that are not one of the faults that a call may meet while others
// are under way.
func (w *world) fine(err error, what string, may ...fault.Kind) bool {
	w.t.Helper()
	if err != nil && !slices.Contains(may, fault.KindOf(err)) {
		w.t.Errorf("%s: %v (%s)", what, err, w.did)
	}
	return err == nil
}

func knownBy(by int) (known [2]bool) {
	if by != nobody {
		known[by] = true
	}
	return known
}

// add keeps a way that has been made, or says who else knows it.
func (p *pupil) add(kind wayKind, key, secret string, known [2]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	made := p.ways[key]
	if made == nil {
		made = &way{kind: kind, key: key, secret: secret}
		p.ways[key] = made
	}
	for i := range known {
		made.known[i] = made.known[i] || known[i]
	}
}

func (p *pupil) addLink(url string, known [2]bool) {
	_, token, _ := strings.Cut(url, "/set-password/")
	p.add(link, fmt.Sprintf("%x", seal.Hash(token)), token, known)
}

func (p *pupil) draw(text string, known [2]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drawn = append(p.drawn, drawn{text, known})
}

// good are the ways of a kind that opened something after the last round, of those that the
// organization knows, or of those that no organization knows.
func (p *pupil) good(by int, kind wayKind) (good []*way) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.ways {
		knows := w.known == [2]bool{}
		if by != nobody {
			knows = w.known[by]
		}
		if w.kind == kind && knows && w.opens != [2]bool{} {
			good = append(good, w)
		}
	}
	slices.SortFunc(good, func(a, b *way) int { return strings.Compare(a.secret+a.key, b.secret+b.key) })
	return good
}

// step is one call or act; share is how often it is drawn, of all of its kind together. do gives false
// where there was nothing to do it with.
type step struct {
	what  string
	share int
	do    func(w *world, r *rand.Rand, by int, p *pupil) bool
}

// take does the step, and counts it.
func (s step) take(w *world, r *rand.Rand, by int, p *pupil) {
	if began := time.Now(); s.do(w, r, by, p) {
		w.counts.add(s.what, began)
	}
}

// What both an organization and the person do, and what comes after each round.
const (
	choosing  = "choosing a password"
	signingIn = "sign-in"
	holding   = "checks of a round"
)

// What an organization does, by itself or in the person's name with what it knows. Hashing a password
// and a roster run cost many times what the others do, and are drawn seldom.
var calls = []step{
	{"provisioning", 500, (*world).call},
	{"provisioning with a password", 5, (*world).give},
	{"provisioning with a drawn password", 5, (*world).generate},
	{"launch from the LMS", 180, (*world).visit},
	{choosing, 130, (*world).choose},
	{signingIn, 130, (*world).signIn},
	{"staff", 10, (*world).hire},
	{"roster", 4, (*world).upload},
}

// What the person does.
var acts = []step{
	{choosing, 35, (*world).choose},
	{"forgotten password", 30, (*world).forget},
	{signingIn, 30, (*world).signIn},
	{"password from the platform", 2, (*world).given},
}

func draw(r *rand.Rand, of []step) step {
	var sum int
	for _, s := range of {
		sum += s.share
	}
	n := r.IntN(sum)
	for _, s := range of {
		if n -= s.share; n < 0 {
			return s
		}
	}
	return of[0]
}

func (w *world) provisioning(by int, p *pupil, c provision.Command) bool {
	c.Email, c.FirstName = p.mail, "Ana"
	if c.Password != "" {
		p.draw(c.Password, knownBy(by))
	}
	a, err := w.provision.Student(w.t.Context(), w.orgs[by], c)
	if !w.fine(err, "provisioning") {
		return false
	}
	if a.Credentials.Password != nil {
		p.draw(*a.Credentials.Password, knownBy(by))
	}
	if a.SetPasswordURL != nil {
		p.addLink(*a.SetPasswordURL, knownBy(by))
	}
	return true
}

func (w *world) call(r *rand.Rand, by int, p *pupil) bool {
	c := provision.Command{ResendEmail: r.IntN(3) == 0}
	if r.IntN(6) == 0 {
		c.Courses = []string{"ielts"}
	}
	return w.provisioning(by, p, c)
}

func (w *world) give(_ *rand.Rand, by int, p *pupil) bool {
	return w.provisioning(by, p, provision.Command{Password: w.text("Given-one")})
}

func (w *world) generate(_ *rand.Rand, by int, p *pupil) bool {
	return w.provisioning(by, p, provision.Command{Mode: provision.ModeGenerate})
}

// visit is a launch from the organization's LMS. The organization could have come by itself.
func (w *world) visit(_ *rand.Rand, by int, p *pupil) bool {
	l := lti.Launch{Organization: w.orgs[by].Organization.ID, Email: p.mail, FirstName: "Ana", Roles: []string{"Learner"}}
	v, err := w.launch.Take(w.t.Context(), l, catalog.Test, w.item)
	if w.fine(err, "a launch", fault.Forbidden, fault.Conflict) {
		w.begin(p, v.Account.ID, student.ByOrganization(v.Organization), by)
	}
	return true
}

// begin keeps a session as the pages do.
func (w *world) begin(p *pupil, user id.User, proof student.Proof, by int) {
	hash := w.text("session")
	data := fmt.Sprintf(`{"values": {"user": "%d", "proof": %q}}`, user, proof)
	if w.fine(w.sessions.Keep(w.t.Context(), hash, []byte(data), time.Now().Add(time.Hour)), "a session") {
		p.add(session, hash, "", knownBy(by))
	}
}

// choose sets a password over a link or by the password of before.
func (w *world) choose(r *rand.Rand, by int, p *pupil) bool {
	hash := w.text("chosen") // no password is compared with it
	if links := p.good(by, link); len(links) > 0 && r.IntN(3) > 0 {
		a, proof, err := student.SetOwnPassword(w.t.Context(), w.api, links[r.IntN(len(links))].secret, hash, w.now())
		if !w.fine(err, "a link", fault.NotFound) { // another step may have used it
			return true
		}
		p.add(password, hash, "", knownBy(by))
		if proof == student.Mailbox {
			w.begin(p, a.ID, proof, by)
		}
		return true
	}
	a, ok := w.owner(by, p)
	if !ok {
		return false
	}
	_, err := student.ChangePassword(w.t.Context(), w.api, a, hash, w.now())
	if w.fine(err, "a change of password", fault.Unauthenticated) {
		p.add(password, hash, "", knownBy(by))
	}
	return true
}

// owner is the account, if who acts knows its password.
func (w *world) owner(by int, p *pupil) (student.Account, bool) {
	known := p.good(by, password)
	if len(known) == 0 {
		return student.Account{}, false
	}
	a, err := student.Find(w.t.Context(), w.Database, p.user)
	if !w.fine(err, "the account") {
		return a, false
	}
	return a, slices.ContainsFunc(known, func(k *way) bool { return markOf(k.key) == a.PasswordMark() })
}

func (w *world) signIn(_ *rand.Rand, by int, p *pupil) bool {
	a, ok := w.owner(by, p)
	if !ok {
		return false
	}
	_, err := student.NoteSignIn(w.t.Context(), w.api, a.ID, w.now())
	if w.fine(err, "a sign-in") {
		w.begin(p, a.ID, a.Proof(), by)
	}
	return true
}

// hire makes the person staff of the organization, and then a student again.
func (w *world) hire(_ *rand.Rand, by int, p *pupil) bool { return w.employ(by, p, "") }

// given is the platform's doing, whose passwords no organization knows.
func (w *world) given(r *rand.Rand, _ int, p *pupil) bool {
	text := w.text("Platform-one")
	p.draw(text, [2]bool{})
	return w.employ(r.IntN(2), p, text)
}

func (w *world) employ(by int, p *pupil, text string) bool {
	o := w.orgs[by].Organization.ID
	c := staff.Command{Email: p.mail, FirstName: "Ana", Role: org.RoleTeacher, Password: text}
	hired, _, err := staff.Put(w.t.Context(), w.api, audit.Platform, o, c, w.now())
	if !w.fine(err, "staff") {
		return false
	}
	_, err = w.enrollment.SetMember(w.t.Context(), audit.Platform, o, hired.UserID, org.MemberInactive)
	return w.fine(err, "the end of staff") && w.provisioning(by, p, provision.Command{Courses: []string{"ielts"}})
}

// upload has the organization's roster name the person, sometimes at an address of its own.
func (w *world) upload(r *rand.Rand, by int, p *pupil) bool {
	o, address := w.orgs[by].Organization.ID, p.mail
	if p.user != 0 && r.IntN(2) == 0 {
		address = w.text("elsewhere") + "@institute.org"
	}
	file := fmt.Sprintf("person_external_id,email,first_name,last_name,role\nx-%s,%s,Ana,Lopez,student\n", p.mail, address)
	ctx, key := w.t.Context(), audit.Actor{Kind: audit.PartnerKey, ID: 1, Name: "test"}
	run, err := roster.Begin(ctx, w.api, o, "test", w.now())
	if !w.fine(err, "a roster") {
		return false
	}
	size, err := roster.Store(ctx, w.api, run, strings.NewReader(file))
	if !w.fine(err, "a roster's file") {
		return false
	}
	draft := roster.Draft{Source: w.source[by], Mode: roster.Additive, Size: size}
	if w.fine(roster.Submit(ctx, w.api, key, o, run, draft, w.now()), "a roster's run") {
		w.work(task.RosterRun, w.importer.Run)
	}
	return true
}

// forget asks for a link as the sign-in page does, and answers as the worker does.
func (w *world) forget(_ *rand.Rand, _ int, p *pupil) bool {
	if w.fine(reset.Ask(w.t.Context(), w.api, student.Email(p.mail), w.now()), "a forgotten password") {
		w.work(task.PasswordReset, w.reset.Answer)
	}
	return true
}

// work does what is pending of a kind, as a worker does. An organization's next run is due when the one
// before is done.
func (w *world) work(kind task.Kind, do func(ctx context.Context, ref task.Outbox) error) {
	for {
		due, err := outbox.Claim(w.t.Context(), w.Database, kind, w.now(), time.Minute, 10)
		if !w.fine(err, "claiming "+string(kind)) || len(due) == 0 {
			return
		}
		for _, d := range due {
			w.fine(do(w.t.Context(), task.Outbox{Task: d.ID, Claim: d.Claim}), string(kind))
		}
	}
}

// markOf is student.Account.PasswordMark of a stored password.
func markOf(hash string) string { return base64.RawURLEncoding.EncodeToString(seal.Hash(hash)[:12]) }

// read reads all ways in of both people with one statement, as they are stored, and says what each
// opens by the rules of the reference (provisioning#links). agree holds the service's own answers
// against it.
func (w *world) read() (opens [2]map[string][2]bool) {
	rows, err := w.Database.Query(w.t.Context(), `
		WITH p AS (
			SELECT n, a.*
			FROM unnest($1::text[]) WITH ORDINALITY AS m(email, n) JOIN accounts a USING (email))
		SELECT n, password_hash, CASE WHEN proven_password THEN 'mailbox' ELSE 'organization ' || created_by_organization END
		FROM p WHERE password_hash IS NOT NULL
		UNION ALL
		SELECT n, encode(l.hash, 'hex'), CASE WHEN l.mailed OR l.organization_id IS NULL THEN 'mailbox'
			WHEN p.own_password THEN '' ELSE 'organization ' || l.organization_id END
		FROM p JOIN set_password_tokens l ON l.user_id = p.id WHERE l.expires_at > $2
		UNION ALL
		SELECT n, s.hash, coalesce(s.data -> 'values' ->> 'proof', '')
		FROM p JOIN sessions s ON s.user_id = p.id`, []string{w.people[0].mail, w.people[1].mail}, w.now())
	check.NoError(check.Now(w.t), err, "%s", w.did)
	opens = [2]map[string][2]bool{{}, {}}
	var n int
	var key, proof string
	_, err = pgx.ForEachRow(rows, []any{&n, &key, &proof}, func() error {
		var o [2]bool
		for i := range w.orgs {
			o[i] = student.Proof(proof).Opens(w.orgs[i].Organization.ID)
		}
		opens[n-1][key] = o
		return nil
	})
	check.NoError(check.Now(w.t), err, "%s", w.did)
	return opens
}

// arrive takes the mails that wait, whose secrets nobody else has, as if they were sent.
func (w *world) arrive() {
	rows, err := w.Database.Query(w.t.Context(), `
		WITH due AS (
			SELECT id, recipient, reference::text, sealed FROM emails WHERE status = 'queued' FOR UPDATE),
		sent AS (
			UPDATE emails e SET status = 'sent', detail = '', sealed = NULL FROM due WHERE e.id = due.id)
		SELECT recipient, reference, sealed FROM due WHERE sealed IS NOT NULL`)
	check.NoError(check.Now(w.t), err, "%s", w.did)
	var recipient, reference string
	var sealed []byte
	_, err = pgx.ForEachRow(rows, []any{&recipient, &reference, &sealed}, func() error {
		plain, err := w.box.Open(w.t.Context(), sealed, "emails/"+reference)
		if err != nil {
			return err
		}
		var secrets struct {
			Password       string
			SetPasswordURL string `json:"set_password_url"`
		}
		if err := json.Unmarshal(plain, &secrets); err != nil {
			return err
		}
		for _, p := range w.people {
			if p.mail == recipient && secrets.SetPasswordURL != "" {
				p.addLink(secrets.SetPasswordURL, [2]bool{})
			}
		}
		return nil
	})
	check.NoError(check.Now(w.t), err, "%s", w.did)
}

// settle tells what the steps of a round have left, and what it opens: of which password a hash is that
// the service made.
func (p *pupil) settle(w *world, after map[string][2]bool) {
	for key := range after {
		if !strings.HasPrefix(key, "$") || p.ways[key] != nil {
			continue
		}
		at := slices.IndexFunc(p.drawn, func(d drawn) bool {
			same, err := argon2id.ComparePasswordAndHash(d.text, key)
			return err == nil && same
		})
		if check.True(w.t, "somebody knows the password", at >= 0, "%s", w.did) {
			p.add(password, key, "", p.drawn[at].known)
		}
	}
	p.drawn = nil
	for key, w := range p.ways {
		open, there := after[key]
		if w.opens = open; !there {
			delete(p.ways, key) // for good
		}
	}
}

// round is who calls and acts at the same time.
type round struct {
	callers []int // of the two organizations
	persons bool  // both people do something too
}

func (w *world) draw() round {
	switch n := w.r.IntN(100); {
	case n < 50:
		return round{callers: []int{n % 2}}
	case n < 75:
		return round{callers: []int{0, 1}}
	case n < 85:
		return round{persons: true}
	default:
		return round{[]int{0, 1}, true}
	}
}

// run does a step for each caller and person, all at once.
func (w *world) run(o round) {
	var all sync.WaitGroup
	do := func(of []step, by int, p *pupil) {
		s, r := draw(w.r, of), rand.New(rand.NewPCG(w.r.Uint64(), 1))
		all.Go(func() { s.take(w, r, by, p) })
	}
	for _, p := range w.people {
		for _, by := range o.callers {
			do(w.calls, by, p)
		}
		if o.persons {
			do(acts, nobody, p)
		}
	}
	all.Wait()
}

// hold checks both rules after a round, whatever was done in it.
func (w *world) hold(o round, before, after [2]map[string][2]bool) {
	for i, p := range w.people {
		p.settle(w, after[i])
		for _, v := range p.ways {
			for n := range w.orgs {
				if v.known[n] && v.opens[1-n] {
					w.t.Errorf("what %s knew, a %s, opens what is %s's (%s)", w.slug(n), v.kind, w.slug(1-n), w.did)
				}
			}
		}
		if o.persons {
			continue
		}
		for key, was := range before[i] {
			for n := range w.orgs {
				// With one caller, nothing of the other may change. With both at once, nothing may that
				// opened what both have: each would have changed what is the other's.
				others := len(o.callers) == 1 && o.callers[0] != n || len(o.callers) == 2 && was == [2]bool{true, true}
				if others && was[n] != after[i][key][n] {
					w.t.Errorf("calls of %v change what opens for the student of %s (%s)", o.callers, w.slug(n), w.did)
				}
			}
		}
	}
}

func (w *world) slug(n int) string { return w.orgs[n].Organization.Slug }

// agree holds what the service says of each way against what was read.
func (w *world) agree() {
	for _, p := range w.people {
		for _, v := range p.ways {
			var proof student.Proof
			switch v.kind {
			case link:
				_, proof, _ = student.FindLink(w.t.Context(), w.api, v.secret, w.now()) // no proof with an error
			case password:
				a, err := student.Find(w.t.Context(), w.Database, p.user)
				check.NoError(check.Now(w.t), err, "%s", w.did)
				proof = a.Proof()
				check.Equal(w.t, "the password", a.PasswordMark(), markOf(v.key), "%s", w.did)
			case session:
				data, _, err := w.sessions.Find(w.t.Context(), v.key)
				check.NoError(check.Now(w.t), err, "%s", w.did)
				var held struct{ Values struct{ Proof student.Proof } }
				check.NoError(check.Now(w.t), json.Unmarshal(data, &held), "%s", w.did)
				proof = held.Values.Proof
			}
			for n, o := range w.orgs {
				check.Equal(w.t, "what a "+string(v.kind)+" opens", proof.Opens(o.Organization.ID), v.opens[n], "of %s: %q (%s)", w.slug(n), proof, w.did)
			}
		}
	}
}

// meet takes two new people, whom both organizations come to know, each in a way that is drawn.
func (w *world) meet() {
	of := w.turn()
	for i := range w.people {
		p := &pupil{mail: w.text("p") + "@institute.org", ways: map[string]*way{}}
		w.people[i] = p
		first := w.r.IntN(2)
		for _, by := range []int{first, 1 - first} {
			draw(w.r, of).take(w, w.r, by, p)
		}
		w.Scan(&p.user, `SELECT id FROM accounts WHERE email = $1`, p.mail)
	}
	w.arrive()
	w.hold(round{persons: true}, [2]map[string][2]bool{}, w.read())
	w.Exec(`DELETE FROM outbox_tasks WHERE kind = $1`, task.EmailSend) // arrive takes them
}

// turn draws what organizations do with the next people: one thing often, and some not at all, as what
// is seldom would hardly ever come twice. It returns with what people are met.
func (w *world) turn() (meeting []step) {
	w.calls = slices.Clone(calls)
	often := w.r.IntN(len(w.calls))
	for i := range w.calls {
		c := &w.calls[i]
		if c.what != choosing && c.what != signingIn { // there is an account by then
			meeting = append(meeting, *c)
			meeting[len(meeting)-1].share = 1
			if i == often {
				meeting[len(meeting)-1].share = 4
			}
		}
		switch {
		case i == often:
			c.share += 150
		case i > 0 && w.r.IntN(3) == 0:
			c.share = 0
		}
	}
	return meeting
}

// roundsTogether are how many the same two people are in: in the end they have passwords of their own, and
// organizations can do less.
const roundsTogether = 25

// live runs rounds until there are enough steps in all worlds.
func (w *world) live(steps int) {
	for n := 0; w.counts.sum() < steps && !w.t.Failed(); n++ {
		if n%roundsTogether == 0 {
			w.meet()
		}
		w.at.Add(int64(w.r.IntN(3 * 60 * 60))) // links and the share of an address run out
		before := w.read()
		o := w.draw()
		w.run(o)
		began := time.Now()
		w.arrive()
		w.hold(o, before, w.read())
		if n%10 == 0 {
			w.agree()
		}
		w.counts.add(holding, began)
	}
}

// Which steps are drawn, and how many: go test -run Sequence ./api-server/internal/server -args -steps 100000
var (
	steps  = flag.Int("steps", 8000, "random steps of all worlds together; an eighth of them with -short")
	worlds = flag.Int("worlds", 3, "databases with two organizations and two people each, at the same time")
	seed   = flag.Uint64("seed", rand.Uint64(), "chooses them; which of those at the same time is first differs")
)

// Two organizations and two people do at random whatever leads to a sign-in, at the same time. After each
// round, no call has changed what opens for the student of the other organization, and nothing that an
// organization ever knew opens what is the other's.
// Reference: provisioning#links.
func TestNoSequenceOfCallsReachesWhatIsAnothers(t *testing.T) {
	t.Parallel()
	n := *steps
	if testing.Short() {
		n /= 8
	}
	c := &counts{steps: map[string]int{}, spent: map[string]time.Duration{}}
	began := time.Now()
	var all sync.WaitGroup
	for number := range uint64(*worlds) {
		w := openWorld(t, *seed, number, c)
		all.Go(func() { w.live(n) })
	}
	all.Wait()
	t.Logf("%d steps in %s", c.sum(), time.Since(began).Round(time.Millisecond))
	for _, what := range slices.Sorted(maps.Keys(c.steps)) {
		t.Logf("%6d %s, %s each", c.steps[what], what, (c.spent[what] / time.Duration(c.steps[what])).Round(time.Microsecond))
	}
}
