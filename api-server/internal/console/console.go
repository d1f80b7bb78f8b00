// Package console is the dashboard of an organization's staff. Owners and admins keep API
// keys, webhook URLs, roster imports and plans there, and see the record of what was done;
// examiners and teachers look students up.
//
// One file a noun. Pages are plain HTML whose every action is a form's POST; what cannot be
// taken back is behind a question. The script only rewrites times to the viewer's zone and
// follows what is under way. A secret is shown once, on the page that
// answers the POST which made it.
package console

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/api-server/internal/oidc"
	"github.com/registrar-dev/registrar/api-server/internal/pages"
	"github.com/registrar-dev/registrar/api-server/internal/sandboxes"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/provider"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/journal"
	"github.com/registrar-dev/registrar/internal/flow/account"
	"github.com/registrar-dev/registrar/internal/flow/assign"
	"github.com/registrar-dev/registrar/internal/flow/enrollment"
	"github.com/registrar-dev/registrar/internal/flow/explain"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	people "github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/network"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// Server holds what the pages need.
type Server struct {
	DB        *pg.DB
	Reads     *pg.Reads // of lists and charts; running
	Clock     clock.Clock
	Zone      *time.Location // the platform's: decides today
	PublicURL string
	Sessions  *signin.Sessions
	Keys      *org.Keyring
	Webhooks  webhook.Service
	Rosters   *wake.Watch   // running
	Imports   *limit.Shares // of files that arrive
	Explains  *explain.Service
	Accounts  *account.Service
	Staff     *people.Service
	Providers provider.Service
	LMS       lms.Service
	OIDC      *oidc.Client
	DNS       provider.Resolver
	Sandboxes *sandboxes.Pool // nil: there are none

	// What staff do for a student.
	Provision   *provision.Service
	Assign      *assign.Service
	Enrollments *enrollment.Service
	Plans       *testplan.Service

	// EgressAddresses are what receivers let in, if the installation publishes them.
	EgressAddresses []string

	// Confirm asks for the person's password before it goes on with next, unless it was given a short
	// while ago; back is where the page leads who does not give it (pages.Server.Confirm).
	Confirm func(w http.ResponseWriter, r *http.Request, back string, next edge.Handler) error

	figures figures
}

// managers may do everything in the console, staff may look students up.
var (
	managers = []org.Role{org.RoleOwner, org.RoleAdmin}
	staff    = []org.Role{org.RoleOwner, org.RoleAdmin, org.RoleExaminer, org.RoleTeacher}
)

// Routes registers the console below /console.
func (s *Server) Routes(r chi.Router) {
	handle := pages.Handle
	r.Group(func(r chi.Router) {
		r.Use(pages.Protect(s.PublicURL), pages.AllowScript, s.Sessions.Middleware, s.Sessions.Staff(staff...))
		r.Get("/console", handle(s.showStart))
		r.Get("/console/{slug}", handle(s.showOverview))
		r.Get("/console/{slug}/students", handle(s.showStudents))
		r.Get("/console/{slug}/students.csv", handle(s.downloadStudents))
		r.Get("/console/{slug}/students/{id}", handle(s.showStudent))
		r.Post("/console/{slug}/students/{id}/resend-welcome", handle(s.onStudent(s.resendWelcome)))
		r.Post("/console/{slug}/students/{id}/extend", handle(s.onStudent(s.extendAccess)))
		r.Post("/console/{slug}/students/{id}/suspend", handle(s.onStudent(s.suspendAccess)))
		r.Post("/console/{slug}/students/{id}/resume", handle(s.onStudent(s.resumeAccess)))
		r.Post("/console/{slug}/students/{id}/start-plan", handle(s.onStudent(s.startPlan)))
		r.Get("/console/{slug}/students/{id}/assign", handle(s.showAssign))
		r.Post("/console/{slug}/students/{id}/assign", handle(s.assignWork))
		r.Get("/console/{slug}/api-keys", handle(s.showKeys))
		r.Post("/console/{slug}/api-keys", handle(s.confirmed(s.createKey)))
		r.Post("/console/{slug}/api-keys/{id}/revoke", handle(s.confirmed(s.revokeKey)))
		r.Get("/console/{slug}/webhooks", handle(s.showEndpoints))
		r.Post("/console/{slug}/webhooks", handle(s.confirmed(s.createEndpoint)))
		r.Get("/console/{slug}/webhooks/{id}", handle(s.showEndpoint))
		r.Post("/console/{slug}/webhooks/{id}", handle(s.confirmed(s.changeEndpoint)))
		r.Post("/console/{slug}/webhooks/{id}/rotate-secret", handle(s.confirmed(s.rotateSecret)))
		r.Post("/console/{slug}/webhooks/{id}/send-test", handle(s.sendTest))
		r.Post("/console/{slug}/webhooks/{id}/turn-on", handle(s.turnOn))
		r.Post("/console/{slug}/webhooks/{id}/delete", handle(s.deleteEndpoint))
		r.Get("/console/{slug}/webhooks/{id}/deliveries", handle(s.showDeliveries))
		r.Get("/console/{slug}/webhooks/{id}/deliveries/{delivery}", handle(s.showDelivery))
		r.Post("/console/{slug}/webhooks/{id}/deliveries/{delivery}/resend", handle(s.resend))
		r.Post("/console/{slug}/webhooks/{id}/recover", handle(s.recoverEvents))
		r.Get("/console/{slug}/roster-runs", handle(s.showRuns))
		r.Post("/console/{slug}/roster-runs", handle(s.uploadRoster))
		r.Get("/console/{slug}/roster-runs/{id}", handle(s.showRun))
		r.Get("/console/{slug}/roster-runs/{id}/issues.csv", handle(s.downloadIssues))
		r.Get("/console/{slug}/roster-runs/{id}/changes/{group}", handle(s.showChanges))
		r.Post("/console/{slug}/roster-runs/{id}/approve", handle(s.approveRun))
		r.Post("/console/{slug}/roster-runs/{id}/discard", handle(s.discardRun))
		r.Post("/console/{slug}/roster-runs/{id}/undo", handle(s.undoRun))
		r.Get("/console/{slug}/lms", handle(s.showLMSes))
		r.Post("/console/{slug}/lms", handle(s.confirmed(s.addLMS)))
		r.Post("/console/{slug}/lms/link", handle(s.confirmed(s.linkLMS)))
		r.Get("/console/{slug}/lms/{id}", handle(s.showLMS))
		r.Post("/console/{slug}/lms/{id}", handle(s.confirmed(s.changeLMS)))
		r.Post("/console/{slug}/lms/{id}/forget", handle(s.confirmed(s.forgetLMSUser)))
		r.Post("/console/{slug}/lms/{id}/send-again", handle(s.sendMarksAgain))
		r.Post("/console/{slug}/lms/{id}/courses/{course}", handle(s.pullLMSCourse))
		r.Post("/console/{slug}/lms/{id}/remove", handle(s.removeLMS))
		r.Get("/console/{slug}/plans", handle(s.showPlans))
		r.Get("/console/{slug}/plans/{id}", handle(s.showPlan))
		r.Post("/console/{slug}/plans/{id}/pause", handle(s.steer("The plan is paused: it opens no test until it is resumed.", s.Plans.Pause)))
		r.Post("/console/{slug}/plans/{id}/resume", handle(s.steer("The plan goes on.", s.Plans.Resume)))
		r.Post("/console/{slug}/plans/{id}/skip-test", handle(s.steer("The test is skipped.", s.Plans.SkipTest)))
		r.Post("/console/{slug}/plans/{id}/open-test", handle(s.steer("The test opens today.", s.Plans.OpenTest)))
		r.Post("/console/{slug}/plans/{id}/official-result", handle(s.onPlan("The official result is recorded.", s.recordOfficial)))
		r.Post("/console/{slug}/plans/{id}/add-paper", handle(s.onPlan("The paper is in the catalog; the plan takes it up within a minute.", s.addPaper)))
		r.Get("/console/{slug}/staff", handle(s.showStaff))
		r.Get("/console/{slug}/staff/provider", handle(s.showProvider))
		r.Post("/console/{slug}/staff/provider", handle(s.byOwners(s.setProvider)))
		r.Post("/console/{slug}/staff/provider/test", handle(s.byOwners(s.testProvider)))
		r.Post("/console/{slug}/staff/provider/remove", handle(s.byOwners(s.removeProvider)))
		r.Post("/console/{slug}/staff/provider/domains", handle(s.byOwners(s.addDomain)))
		r.Post("/console/{slug}/staff/provider/domains/prove", handle(s.byOwners(s.proveDomain)))
		r.Post("/console/{slug}/staff/provider/domains/remove", handle(s.byOwners(s.removeDomain)))
		r.Post("/console/{slug}/staff/provider/policy", handle(s.byOwners(s.setProviderPolicy)))
		r.Post("/console/{slug}/staff", handle(s.byOwners(s.inviteStaff)))
		r.Post("/console/{slug}/staff/{id}/role", handle(s.byOwners(s.setRole)))
		r.Post("/console/{slug}/staff/{id}/deactivate", handle(s.byOwners(s.deactivateStaff)))
		r.Post("/console/{slug}/staff/{id}/transfer", handle(s.byOwners(s.transferOwnership)))
		r.Post("/console/{slug}/staff/policy", handle(s.byOwners(s.setPolicy)))
		r.Post("/console/{slug}/staff/{id}/reset-factors", handle(s.byOwners(s.resetFactors)))
		r.Get("/console/{slug}/sandbox", handle(s.showSandbox))
		r.Post("/console/{slug}/sandbox", handle(s.makeSandbox))
		r.Post("/console/{slug}/sandbox/advance", handle(s.moveSandbox))
		r.Post("/console/{slug}/sandbox/wipe", handle(s.wipeSandbox))
		r.Get("/console/{slug}/audit-log", handle(s.showAudit))
		r.Get("/console/{slug}/audit-log/entries.jsonl", handle(s.downloadAudit))
		r.Get("/console/{slug}/settings", handle(s.showSettings))
		r.Post("/console/{slug}/settings", handle(s.rename))
		r.Post("/console/{slug}/settings/defaults", handle(s.changeDefaults))
		r.Post("/console/{slug}/settings/language", handle(s.changeLanguage))
		r.Post("/console/{slug}/settings/logo", handle(s.changeLogo))
		r.Post("/console/{slug}/settings/remove-logo", handle(s.removeLogo))
		r.Get("/console/{slug}/mails", handle(s.showMails))
		r.Post("/console/{slug}/mails", handle(s.chooseMails))
		r.Get("/console/{slug}/sessions", handle(s.showSessions))
		r.Post("/console/{slug}/sessions/end", handle(s.endSession))
		r.Post("/console/{slug}/sessions/end-others", handle(s.endOtherSessions))
	})
}

// frame is what every page has around its own content.
type frame struct {
	Title   string
	Section string // which link of the navigation is the current one
	Person  *signin.Person
	Here    org.Belonging   // the organization the page is about
	Manages bool            // whether the person is owner or admin of it
	Others  []org.Belonging // further ones on whose staff the person is
	Note    string
	Fault   string

	OwnSearch bool // the page has a search for students of its own
	Refresh   int  // seconds after which a browser without scripts looks again; 0: it does not
}

// organization is the one that the page is about, as far as its staff knows it without reading it.
func (f frame) organization() org.Organization {
	return org.Organization{ID: f.Here.Organization, Slug: f.Here.Slug, Name: f.Here.Name}
}

// frame finds the organization that the path names, among those that the person manages.
func (s *Server) frame(r *http.Request, section, title string) (frame, error) {
	return s.frameFor(managers, r, section, title)
}

// frameFor is frame for pages that people with one of the roles may open.
func (s *Server) frameFor(roles []org.Role, r *http.Request, section, title string) (frame, error) {
	p := signin.SignedIn(r.Context())
	here, err := p.Of(edge.Param(r, "slug"), roles...)
	if err != nil {
		return frame{}, err
	}
	f := frame{Title: title, Section: section, Person: p, Here: here, Manages: slices.Contains(managers, here.Role),
		Note: s.Sessions.Flashed(r.Context())}
	for _, b := range p.StaffOf(staff...) {
		if b.Organization != here.Organization {
			f.Others = append(f.Others, b)
		}
	}
	edge.Annotate(r.Context(), "organization", here.Slug)
	edge.Annotate(r.Context(), "user", int64(p.ID))
	return f, nil
}

// back leads to a page of the organization with a sentence to show there.
func (s *Server) back(w http.ResponseWriter, r *http.Request, f frame, path, note string) error {
	s.Sessions.Flash(r.Context(), note)
	http.Redirect(w, r, "/console/"+f.Here.Slug+path, http.StatusSeeOther) //nolint:gosec // the slug is of an organization that the person manages
	return nil
}

// showStart leads to the organization, or lets the person choose.
func (s *Server) showStart(w http.ResponseWriter, r *http.Request) error {
	p := signin.SignedIn(r.Context())
	mine := p.StaffOf(staff...)
	if len(mine) == 1 {
		http.Redirect(w, r, "/console/"+mine[0].Slug+"/", http.StatusSeeOther)
		return nil
	}
	return show(w, http.StatusOK, "start.html", struct {
		frame
		Mine []org.Belonging
	}{frame{Title: "Your organizations", Person: p, Note: s.Sessions.Flashed(r.Context())}, mine})
}

// maxForm bounds a form's body, in bytes.
const maxForm = 64 << 10

//go:embed static
var static embed.FS

// functions are what templates may call.
var functions = template.FuncMap{
	"asset":   pages.Asset,
	"logo":    pages.LogoPath,
	"pair":    func(a, b any) struct{ A, B any } { return struct{ A, B any }{a, b} },
	"icon":    icon,
	"number":  thousands,
	"when":    when,
	"moment":  moment,
	"day":     day,
	"timed":   timed,
	"network": network.Text,
	"explain": webhook.Explain,
	"last": func(all []journal.Attempt) *journal.Attempt {
		if len(all) == 0 {
			return nil
		}
		return &all[len(all)-1]
	},
	"millis": func(d time.Duration) string {
		if d == 0 {
			return "–"
		}
		return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 1, 64) + " ms"
	},
	"exam":        func(name string) string { scale, _ := catalog.ScaleOf(name); return scale.Label }, // plans are for exams with a scale alone
	"text":        func(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") },
	"described":   described,
	"toldOfClass": classChangeText,
	"actorKind":   actorKind,
	"words":       func(s any) string { return strings.ReplaceAll(fmt.Sprint(s), "_", " ") },
}

var templates = template.Must(template.New("").Funcs(functions).ParseFS(static, "static/*.html"))

// when shows a time.Time or *time.Time: in UTC, which the script turns into the viewer's zone.
func when(at any) template.HTML {
	t, _ := at.(time.Time)
	if p, ok := at.(*time.Time); ok && p != nil {
		t = *p
	}
	if t.IsZero() {
		return `<span class="soft">never</span>`
	}
	utc := t.UTC()
	//nolint:gosec // digits and fixed text alone
	return template.HTML(`<time datetime="` + utc.Format(time.RFC3339) + `" title="` + utc.Format("2006-01-02 15:04:05") + ` UTC">` +
		utc.Format("2 Jan 2006, 15:04") + ` UTC</time>`)
}

// moment is when with its seconds.
func moment(at any) template.HTML {
	t, _ := at.(time.Time)
	if p, ok := at.(*time.Time); ok && p != nil {
		t = *p
	}
	utc := t.UTC()
	//nolint:gosec // digits and fixed text alone
	return template.HTML(`<time datetime="` + utc.Format(time.RFC3339) + `" data-seconds title="` + utc.Format("2006-01-02 15:04:05.000") + ` UTC">` +
		utc.Format("2 Jan 2006, 15:04:05") + ` UTC</time>`)
}

// day shows a clock.Date or *clock.Date, which is the same for every viewer.
func day(on any) template.HTML {
	d, _ := on.(clock.Date)
	if p, ok := on.(*clock.Date); ok && p != nil {
		d = *p
	}
	if d.IsZero() {
		return `<span class="soft">none</span>`
	}
	//nolint:gosec // digits and fixed text alone
	return template.HTML(`<time class="nowrap" datetime="` + d.String() + `">` + d.Time().Format("2 Jan 2006") + `</time>`)
}

// written is how sentences that are kept write an instant.
var written = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC`)

// timed shows a sentence with its instants as when shows them.
func timed(text string) template.HTML {
	shown := written.ReplaceAllStringFunc(template.HTMLEscapeString(text), func(instant string) string {
		for _, form := range []string{"2006-01-02 15:04:05 MST", "2006-01-02 15:04 MST"} {
			if at, err := time.Parse(form, instant); err == nil {
				return string(when(at))
			}
		}
		return instant // no day of the calendar
	})
	return template.HTML(shown) //nolint:gosec // escaped before
}

func show(w http.ResponseWriter, status int, name string, data any) error {
	return pages.Render(w, templates, status, name, data)
}
