// Package server puts the two APIs together: the routers that main serves, and that
// tests exercise.
package server

import (
	"cmp"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/api-server/internal/console"
	"github.com/registrar-dev/registrar/api-server/internal/docsite"
	"github.com/registrar-dev/registrar/api-server/internal/dynreg"
	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/jwks"
	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/api-server/internal/oidc"
	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/api-server/internal/pages"
	"github.com/registrar-dev/registrar/api-server/internal/platform"
	"github.com/registrar-dev/registrar/api-server/internal/rest"
	"github.com/registrar-dev/registrar/api-server/internal/sandboxes"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/provider"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/account"
	"github.com/registrar-dev/registrar/internal/flow/assign"
	"github.com/registrar-dev/registrar/internal/flow/enrollment"
	"github.com/registrar-dev/registrar/internal/flow/explain"
	"github.com/registrar-dev/registrar/internal/flow/launch"
	"github.com/registrar-dev/registrar/internal/flow/organization"
	"github.com/registrar-dev/registrar/internal/flow/person"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/flow/work"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// Deps are the parts that the APIs are made of.
type Deps struct {
	DB       *pg.DB
	Reads    *pg.Reads // running; nil: all reads are of DB
	Clock    clock.Clock
	Zone     *time.Location // the platform's
	Keys     *org.Keyring
	Usage    *org.Usage
	Refusals *audit.Refusals
	Mails    *email.Watch // running, so that requests learn at once what became of their mail
	Rosters  *wake.Watch  // of roster runs; running
	Box      *seal.Box
	Egress   *egress.Policy        // for receiver URLs and identity providers
	DNS      provider.Resolver     // of TXT records; nil: the system's
	Redis    redis.UniversalClient // counters of rate limits; nil: there are no limits
	Log      *slog.Logger
	Registry prometheus.Registerer

	Sandboxes *simulate.Service // nil: there are none

	PlatformKey         string
	PreviousPlatformKey string // accepted too; "": there is none

	PublicURL       string        // base of links, without a slash at its end
	Suppressed      email.Domains // not mailed
	Proxies         limit.Proxies // our own, in front of the partner API and the pages
	EgressAddresses []string      // that deliveries come from (egress.Published); may be empty
	SafeExamBrowser bool
	InFlight        int           // requests at once, of each API
	Connections     int32         // of DB's pool
	Rate            rest.Rate     // of each API key; counted in Redis
	RedisPatience   time.Duration // how long Redis may take to count; 0 is limit.Patience
	PlacePatience   time.Duration // how long a request waits while its organization has its share of those at once; 0 is 10 s
}

// placePatience lets a burst of one key pass that is larger than an organization's share.
const placePatience = 10 * time.Second

// What bodies that arrive or are worked on may take of the memory, in bytes. The platform's own systems
// share theirs as they like.
const (
	publicBodies   = 64 << 20
	platformBodies = 128 << 20
)

// streams says which requests' bodies are read as they come.
func streams(r *http.Request) bool { return rest.Streams(r) || console.Streams(r) }

// APIs are the two routers, each for a port of its own.
type APIs struct{ Public, Platform *chi.Mux }

// New makes the routers.
func New(d Deps) APIs {
	metrics := edge.NewMetrics(d.Registry)
	options := edge.Options{API: "platform", Metrics: metrics, Log: d.Log, InFlight: d.InFlight, Secret: pages.SecretPaths,
		Bodies: &limit.Budget{All: platformBodies, Each: platformBodies}, MaxBody: platform.MaxBody}
	private := edge.NewRouter(options)
	https := strings.HasPrefix(d.PublicURL, "https:")
	options.API, options.Page, options.HTTPS, options.MaxBody = "partner", pages.Stray, https, 0
	options.Bodies, options.Proxies, options.Streams = &limit.Budget{All: publicBodies, Each: publicBodies / 4}, d.Proxies, streams
	options.Areas = []edge.Area{{Name: "replica", Prefix: "/api/"}, {Name: "console", Prefix: "/console"}, {Name: "pages", Prefix: "/"}}
	public := edge.NewRouter(options)
	mails := email.Service{Box: d.Box, Suppressed: d.Suppressed}
	plans := &testplan.Service{DB: d.DB, Mail: mails, Clock: d.Clock, Log: d.Log, Zone: d.Zone, PublicURL: d.PublicURL,
		BrowserAvailable: d.SafeExamBrowser}
	assignments := &assign.Service{DB: d.DB, Mail: mails, Clock: d.Clock, Zone: d.Zone, PublicURL: d.PublicURL}
	service := &provision.Service{DB: d.DB, Mail: mails, Clock: d.Clock, Zone: d.Zone, PublicURL: d.PublicURL, Watch: d.Mails, Plans: plans}
	reads := d.Reads
	if reads == nil {
		reads = pg.ReadPrimary(d.DB)
	}
	limits := limit.New(d.Redis, cmp.Or(d.RedisPatience, limit.Patience), d.Registry, d.Log)
	cursors := page.New(d.DB, d.Box)
	enrollments := &enrollment.Service{DB: d.DB, Clock: d.Clock, Zone: d.Zone}
	explains := &explain.Service{DB: d.DB, Clock: d.Clock, Zone: d.Zone}
	places := rest.NewShares(d.InFlight, d.Connections, cmp.Or(d.PlacePatience, placePatience))
	webhooks := webhook.Service{DB: d.DB, Box: d.Box, Policy: d.Egress}
	pool := d.sandboxes()
	partner := &rest.Server{DB: d.DB, Reads: reads, Sandboxes: pool, Clock: d.Clock, Zone: d.Zone, Keys: d.Keys, Usage: d.Usage, Proxies: d.Proxies, Refusals: d.Refusals, Provisioning: service,
		Enrollments: enrollments,
		Assignments: assignments, Plans: plans, Explains: explains, Cursors: cursors, PublicURL: d.PublicURL, SafeExamBrowser: d.SafeExamBrowser,
		Webhooks: webhooks, Rosters: d.Rosters,
		Box: d.Box, Limits: limits, Rate: d.Rate,
		Places: places}
	public.Route("/api/v1", func(r chi.Router) {
		openapi.Routes(r, "/api/v1", openapi.Partner, d.PublicURL)
		openapi.EventRoutes(r, d.PublicURL)
		r.Group(partner.Routes)
	})
	docsite.Routes(public)
	sessions := signin.New(d.DB, d.Clock, d.PublicURL, d.Proxies, pages.Fail)
	accounts := &account.Service{DB: d.DB, Mail: mails, Factors: factor.New(d.DB, d.Box, d.PublicURL), Clock: d.Clock, PublicURL: d.PublicURL}
	providers, client := provider.Service{DB: d.DB, Box: d.Box}, oidc.New(d.Egress, d.Clock, d.PublicURL)
	staffs := &staff.Service{DB: d.DB, Mail: mails, Clock: d.Clock, PublicURL: d.PublicURL}
	registrations, keys := lms.Service{DB: d.DB, Policy: d.Egress, Box: d.Box}, lms.Keys{DB: d.DB, Box: d.Box}
	students := &pages.Server{DB: d.DB, Clock: d.Clock, Zone: d.Zone, PublicURL: d.PublicURL,
		Sessions: sessions, Devices: signin.Devices{Box: d.Box, Clock: d.Clock, HTTPS: https},
		Limits: limits, Proxies: d.Proxies, Refusals: d.Refusals,
		LTI: lti.Service{DB: d.DB, Box: d.Box}, LMS: registrations, LMSKeys: keys, KeySets: jwks.New(d.Egress, d.Clock), Registrar: dynreg.New(d.Egress), Launches: &launch.Service{DB: d.DB, Clock: d.Clock, Zone: d.Zone}, Accounts: accounts, Staff: staffs, Providers: providers, OIDC: client}
	public.Group(students.Routes)
	dashboard := &console.Server{DB: d.DB, Reads: reads, Clock: d.Clock, Zone: d.Zone, PublicURL: d.PublicURL, Sessions: sessions, Keys: d.Keys, Webhooks: webhooks, Rosters: d.Rosters, Imports: places.Imports(),
		Explains: explains, Accounts: accounts, Staff: staffs, Provision: service, Assign: assignments, Enrollments: enrollments, Plans: plans, Sandboxes: pool,
		Providers: providers, LMS: registrations, OIDC: client, DNS: cmp.Or[provider.Resolver](d.DNS, net.DefaultResolver),
		EgressAddresses: d.EgressAddresses, Confirm: students.Confirm}
	public.Group(dashboard.Routes)
	admin := &platform.Server{DB: d.DB, Clock: d.Clock, Zone: d.Zone, Keys: d.Keys, Key: d.PlatformKey, PreviousKey: d.PreviousPlatformKey, Calls: platform.CallCounter(d.Registry), Refusals: d.Refusals, Cursors: cursors,
		Plans:    plans,
		People:   &person.Eraser{DB: d.DB, Box: d.Box, Clock: d.Clock, Log: d.Log},
		Orgs:     &organization.Eraser{DB: d.DB, Clock: d.Clock, Log: d.Log},
		Work:     &work.Service{DB: d.DB, Clock: d.Clock, Zone: d.Zone, PublicURL: d.PublicURL},
		Webhooks: webhooks, Activity: platform.ActivityCounter(d.Registry), LTI: lti.Service{DB: d.DB, Box: d.Box}, LMS: registrations, LMSKeys: keys,
		Rosters: d.Rosters, Accounts: accounts, Staff: staffs, Enrollments: enrollments, PublicURL: d.PublicURL, Sandboxes: d.Sandboxes}
	private.Route("/platform/v1", func(r chi.Router) {
		openapi.Routes(r, "/platform/v1", openapi.Platform, "")
		r.Group(admin.Routes)
	})
	return APIs{public, private}
}

// sandboxes opens sandboxes, all of which together have a share of the replica.
func (d Deps) sandboxes() *sandboxes.Pool {
	if d.Sandboxes == nil {
		return nil
	}
	places := rest.NewShares(max(d.InFlight/4, 1), d.Connections, cmp.Or(d.PlacePatience, placePatience))
	pool := &sandboxes.Pool{Service: d.Sandboxes, Zone: d.Zone}
	pool.Partner = func(o *sandboxes.Open) http.Handler {
		mails := email.Service{Box: d.Box, Caught: true}
		plans := &testplan.Service{DB: o.DB, Mail: mails, Clock: o.Now, Log: d.Log, Zone: d.Zone, PublicURL: d.PublicURL, BrowserAvailable: d.SafeExamBrowser}
		inside := &rest.Server{DB: o.DB, Reads: pg.ReadPrimary(o.DB), Clock: o.Now, Zone: d.Zone, Sandboxes: pool, Plans: plans,
			Provisioning: &provision.Service{DB: o.DB, Mail: mails, Clock: o.Now, Zone: d.Zone, PublicURL: d.PublicURL, Watch: email.NewWatch(o.DB), Plans: plans},
			Assignments:  &assign.Service{DB: o.DB, Mail: mails, Clock: o.Now, Zone: d.Zone, PublicURL: d.PublicURL},
			Enrollments:  &enrollment.Service{DB: o.DB, Clock: o.Now, Zone: d.Zone},
			Explains:     &explain.Service{DB: o.DB, Clock: o.Now, Zone: d.Zone},
			Webhooks:     webhook.Service{DB: o.DB, Box: d.Box, Policy: d.Egress},
			Cursors:      page.New(o.DB, d.Box), Rosters: roster.NewWatch(o.DB), Box: d.Box, Places: places,
			PublicURL: d.PublicURL, SafeExamBrowser: d.SafeExamBrowser}
		return inside.Inside(o)
	}
	return pool
}
