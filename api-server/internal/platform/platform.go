// Package platform is the API by which the platform's own systems and administrators
// write what the partner API shows. It has a port of its own and one key.
//
// One file a noun. PUT creates or changes by the natural id: fields that are not sent
// keep their values. An answer has the object's fields beside its status.
package platform

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/api-server/internal/webhooks"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/account"
	"github.com/registrar-dev/registrar/internal/flow/enrollment"
	"github.com/registrar-dev/registrar/internal/flow/organization"
	"github.com/registrar-dev/registrar/internal/flow/person"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/flow/work"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// Server holds what the handlers need.
type Server struct {
	DB    *pg.DB
	Clock clock.Clock
	Zone  *time.Location // the platform's: decides today
	Keys  *org.Keyring
	Key   string // PLATFORM_KEY

	PreviousKey string                 // accepted too; "": there is none
	Calls       *prometheus.CounterVec // of CallCounter

	Refusals *audit.Refusals

	Webhooks webhook.Service
	Cursors  *page.Cursors
	LTI      lti.Service
	LMS      lms.Service
	LMSKeys  lms.Keys
	Work     *work.Service
	Plans    *testplan.Service
	People   *person.Eraser
	Orgs     *organization.Eraser
	Activity *prometheus.CounterVec // of ActivityCounter

	Accounts    *account.Service
	Enrollments *enrollment.Service
	Staff       *staff.Service
	Rosters     *wake.Watch // running
	PublicURL   string      // base of links, without a slash at its end

	Sandboxes *simulate.Service // nil: there are none
}

// MaxBody is the largest body that a route takes, in MiB.
const MaxBody = 4

// Limits of the paged lists where a route has none of its own.
const (
	maxLimit   = 500
	usualLimit = 100
)

// Routes registers everything that needs the platform key, below /platform/v1.
func (s *Server) Routes(r chi.Router) {
	r.Use(s.authenticate, edge.CleanQuery, edge.PlainQuery)
	r.Get("/audit-log", edge.Handle(s.exportAudit))
	r.Put("/organizations/{slug}", edge.Handle(s.putOrganization))
	r.Post("/organizations/{slug}/api-keys", edge.Handle(s.createKey))
	r.Get("/organizations/{slug}/api-keys", edge.Handle(s.listKeys))
	r.Delete("/organizations/{slug}/api-keys/{id}", edge.Handle(s.revokeKey))
	r.Put("/organizations/{slug}/mail-domains/{domain}", edge.Handle(s.proveDomain))
	r.Get("/organizations/{slug}/sign-in-policy", edge.Handle(s.showSignInPolicy))
	r.Patch("/organizations/{slug}/sign-in-policy", edge.Handle(s.changeSignInPolicy))
	r.Get("/organizations/{slug}/staff", edge.Handle(s.listStaff))
	r.Get("/sandboxes", edge.Handle(s.listSandboxes))
	r.Put("/organizations/{slug}/sandbox", edge.Handle(s.putSandbox))
	r.Get("/organizations/{slug}/sandbox", edge.Handle(s.showSandbox))
	r.Post("/organizations/{slug}/sandbox/wipe", edge.Handle(s.wipeSandbox))
	r.Delete("/organizations/{slug}/sandbox", edge.Handle(s.deleteSandbox))
	r.Put("/organizations/{slug}/staff/{email}", edge.Handle(s.putStaff))
	r.Delete("/organizations/{slug}/staff/{email}", edge.Handle(s.deactivateStaff))
	r.Post("/organizations/{slug}/staff/{email}/invitation", edge.Handle(s.inviteStaff))
	r.Delete("/organizations/{slug}/staff/{email}/factors", edge.Handle(s.removeFactors))
	r.Post("/organizations/{slug}/courses", edge.Handle(s.createCourse))
	r.Patch("/organizations/{slug}/courses/{id}", edge.Handle(s.changeCourse))
	(&webhooks.Server{Endpoints: s.Webhooks, Clock: s.Clock, Cursors: s.Cursors, Caller: s.caller}).Routes(r, "/organizations/{slug}")
	r.Patch("/organizations/{slug}/enrollments/{id}", edge.Handle(s.changeEnrollment))
	r.Patch("/organizations/{slug}/members/{user_id}", edge.Handle(s.changeMember))
	r.Delete("/organizations/{slug}/members/{user_id}", edge.Handle(s.removeMember))
	r.Post("/sign-ins", edge.Handle(s.noteSignIn))
	r.Delete("/organizations/{slug}", edge.Handle(s.eraseOrganization))
	r.Get("/organization-erasures/{organization_id}", edge.Handle(s.showOrganizationErasure))
	r.Get("/users/{user_id}/export", edge.Handle(s.exportUser))
	r.Delete("/users/{user_id}", edge.Handle(s.eraseUser))
	r.Delete("/users/{user_id}/webhook-data", edge.Handle(s.eraseWebhookData))
	r.Put("/organizations/{slug}/roster-sources/{source}", edge.Handle(s.putRosterSource))
	r.Get("/organizations/{slug}/roster-runs", edge.Handle(s.listRosterRuns))
	r.Get("/organizations/{slug}/roster-runs/{id}", edge.Handle(s.showRosterRun))
	r.Get("/organizations/{slug}/roster-runs/{id}/changes", edge.Handle(s.listRosterChanges))
	r.Get("/organizations/{slug}/roster-runs/{id}/issues.csv", edge.Handle(s.downloadIssues))
	r.Post("/organizations/{slug}/roster-runs/{id}/approve", edge.Handle(s.approveRosterRun))
	r.Post("/organizations/{slug}/roster-runs/{id}/discard", edge.Handle(s.discardRosterRun))
	r.Post("/organizations/{slug}/roster-runs/{id}/undo", edge.Handle(s.undoRosterRun))
	r.Put("/course-types/{name}", edge.Handle(s.putCourseType))
	r.Post("/organizations/{slug}/lti-consumer", edge.Handle(s.renewConsumer))
	r.Get("/organizations/{slug}/lti-consumer", edge.Handle(s.showConsumer))
	r.Delete("/organizations/{slug}/lti-consumer", edge.Handle(s.removeConsumer))
	r.Get("/organizations/{slug}/lti-registrations", edge.Handle(s.listRegistrations))
	r.Post("/organizations/{slug}/lti-registrations", edge.Handle(s.addRegistration))
	r.Get("/organizations/{slug}/lti-registrations/{id}", edge.Handle(s.showRegistration))
	r.Patch("/organizations/{slug}/lti-registrations/{id}", edge.Handle(s.changeRegistration))
	r.Delete("/organizations/{slug}/lti-registrations/{id}", edge.Handle(s.removeRegistration))
	r.Get("/organizations/{slug}/lti-registrations/{id}/courses", edge.Handle(s.listLMSCourses))
	r.Patch("/organizations/{slug}/lti-registrations/{id}/courses/{course_id}", edge.Handle(s.changeLMSCourse))
	r.Post("/organizations/{slug}/lti-registrations/{id}/courses/{course_id}/pull", edge.Handle(s.pullLMSCourse))
	r.Delete("/organizations/{slug}/lti-registrations/{id}/people/{user_id}", edge.Handle(s.forgetPerson))
	r.Get("/lti-keys", edge.Handle(s.listLMSKeys))
	r.Post("/lti-keys", edge.Handle(s.renewLMSKey))
	r.Post("/activity", edge.Handle(s.recordActivity))
	r.Post("/activity/compile", edge.Handle(s.compileActivity))
	r.Put("/test-sessions/{session}", edge.Handle(s.putTestSession))
	r.Put("/quiz-submissions/{assignment}", edge.Handle(s.putQuizSubmission))
	r.Put("/assessment-submissions/{assignment}/{user_id}", edge.Handle(s.putAssessmentSubmission))
	r.Post("/work", edge.Handle(s.postWork))
	r.Get("/plans", edge.Handle(s.listPlans))
	r.Post("/plans/{id}/pause", edge.Handle(s.pausePlan))
	r.Post("/plans/{id}/resume", edge.Handle(s.resumePlan))
	r.Post("/plans/{id}/skip-test", edge.Handle(s.skipPlanTest))
	r.Post("/plans/{id}/open-test", edge.Handle(s.openPlanTest))
	r.Post("/plans/{id}/official-result", edge.Handle(s.recordOfficialResult))
	r.Put("/catalog/tests/{code}", edge.Handle(s.putSharedTest))
	r.Put("/organizations/{slug}/catalog/tests/{code}", edge.Handle(s.putOwnItem(catalog.Test)))
	r.Put("/organizations/{slug}/catalog/quizzes/{code}", edge.Handle(s.putOwnItem(catalog.Quiz)))
	r.Put("/organizations/{slug}/catalog/assessments/{code}", edge.Handle(s.putOwnItem(catalog.Assessment)))
}

func (s *Server) authenticate(next http.Handler) http.Handler {
	return edge.Handle(func(w http.ResponseWriter, r *http.Request) error {
		sent := edge.Bearer(r)
		present, previous := seal.Equal(sent, s.Key), seal.Equal(sent, s.PreviousKey) && s.PreviousKey != ""
		switch {
		case present:
			s.Calls.WithLabelValues("present").Inc()
		case previous:
			s.Calls.WithLabelValues("previous").Inc()
		default:
			s.Refusals.Note(audit.Refusal{Actor: audit.Unknown, Action: "refused platform key", Address: limit.Proxies(nil).Client(r)})
			return errKey
		}
		next.ServeHTTP(w, r)
		return nil
	})
}

// CallCounter counts the platform API's calls by the key that they carry.
func CallCounter(reg prometheus.Registerer) *prometheus.CounterVec {
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "registrar_platform_calls_total",
		Help: "Calls of the platform API by their key: present or previous."}, []string{"key"})
	reg.MustRegister(calls)
	for _, key := range []string{"present", "previous"} {
		calls.WithLabelValues(key)
	}
	return calls
}

var errKey = fault.New(fault.Unauthenticated, "invalid_platform_key",
	"the platform key is missing or wrong; send it as Authorization: Bearer")

// today is the platform's day.
func (s *Server) today() clock.Date { return clock.DateIn(s.Clock(), s.Zone) }

// organization is the one that the path names.
func (s *Server) organization(r *http.Request) (org.Organization, error) {
	o, err := org.Find(r.Context(), s.DB, edge.Param(r, "slug"))
	if err == nil {
		edge.Annotate(r.Context(), "organization", o.Slug)
	}
	return o, err
}

// caller is the platform, which calls about the organization that the path names.
func (s *Server) caller(r *http.Request) (webhooks.Caller, error) {
	o, err := s.organization(r)
	return webhooks.Caller{Organization: o.ID, Actor: audit.Platform}, err
}
