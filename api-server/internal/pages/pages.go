// Package pages holds what students see in a browser: the page behind a set-password
// link, the sign-in, the student's courses, and a result, which staff see too. Pages are plain HTML, and but for the
// times on the list of courses without scripts; whatever changes something is a form's POST from the page itself.
package pages

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/registrar-dev/registrar/api-server/internal/dynreg"
	"github.com/registrar-dev/registrar/api-server/internal/jwks"
	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/api-server/internal/oidc"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/domain/provider"
	"github.com/registrar-dev/registrar/internal/flow/account"
	"github.com/registrar-dev/registrar/internal/flow/launch"
	"github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Server holds what the pages need.
type Server struct {
	DB        *pg.DB
	Clock     clock.Clock
	Zone      *time.Location // the platform's: decides today
	PublicURL string         // where browsers see the pages
	Sessions  *signin.Sessions
	Devices   signin.Devices
	Limits    *limit.Limiter
	Proxies   limit.Proxies
	Refusals  *audit.Refusals
	LTI       lti.Service
	LMS       lms.Service
	LMSKeys   lms.Keys
	KeySets   *jwks.Sets
	Registrar *dynreg.Client
	Launches  *launch.Service
	Accounts  *account.Service
	Staff     *staff.Service
	Providers provider.Service
	OIDC      *oidc.Client
}

// Routes registers the pages below the public base address.
func (s *Server) Routes(r chi.Router) {
	// The one form that another site's page posts; its signature shows where it is from.
	r.With(guard, withReader, s.Sessions.Middleware).Post("/lti/launch/{kind}/{id}", Handle(s.launch))
	r.With(guard, withReader).Get("/lti/launch/{kind}/{id}", Handle(s.refuseVisit))
	// Likewise, of LTI 1.3: a message's signature and the launch's state show it.
	r.With(guard).Get(lms.KeysPath, Handle(s.publishKeys))
	r.With(guard, withReader, framed).Get(lms.LoginPath+"{slug}", Handle(s.beginLaunch))
	r.With(guard, withReader, framed).Post(lms.LoginPath+"{slug}", Handle(s.beginLaunch))
	r.With(guard, withReader, framed, s.Sessions.Middleware).Post(lms.MessagePath+"{slug}", Handle(s.takeMessage))
	r.With(guard, withReader).Get(lms.MessagePath+"{slug}", Handle(s.refuseLaunchVisit))
	r.Group(s.ownRoutes)
}

// SecretPaths are the beginnings of paths with a secret behind them, which no log may have.
var SecretPaths = []string{"/set-password/", email.UnsubscribePath, lms.RegisterPath}

func (s *Server) ownRoutes(r chi.Router) {
	r.Use(withReader, Protect(s.PublicURL))
	r.Get("/forgot-password", Handle(s.showForgot))
	r.Post("/forgot-password", Handle(s.askReset))
	r.Get("/assets/{file}", serveAsset)
	r.Get(email.UnsubscribePath+"{token}", Handle(s.showUnsubscribe))
	r.Post(email.UnsubscribePath+"{token}", Handle(s.unsubscribe))
	r.Get("/logos/{id}/{digest}", Handle(s.showLogo))
	r.Get(lms.DeepLinkPath+"{slug}", Handle(s.refuseLaunchVisit))
	r.With(framed).Post(lms.DeepLinkPath+"{slug}", Handle(s.goOnChoosing))
	r.With(framed).Get(lms.RegisterPath+"{slug}/{token}", Handle(s.showRegistering))
	r.With(framed).Post(lms.RegisterPath+"{slug}/{token}", Handle(s.register))
	r.Group(func(r chi.Router) {
		r.Use(s.Sessions.Middleware)
		r.Get("/set-password/{token}", Handle(s.showSetPassword))
		r.Post("/set-password/{token}", Handle(s.setPassword))
		r.With(s.Sessions.Signed).Get("/", Handle(s.showHome))
		r.Get("/sign-in", Handle(s.showSignIn))
		r.Post("/sign-in", Handle(s.signIn))
		r.Get("/sign-in/second", Handle(s.showSecond))
		r.Post("/sign-in/second", Handle(s.giveSecond))
		r.Get("/sign-in/institute", Handle(s.showInstitute))
		r.Get("/sign-in/with/{slug}", Handle(s.beginWith))
		r.Get("/sign-in/answer/{slug}", Handle(s.takeAnswer))
		r.Post("/sign-in/passkey", Handle(s.beginPasskey))
		r.Post("/sign-in/passkey/answer", Handle(s.signInByPasskey))
		r.Post("/sign-out", Handle(s.signOut))
		r.Post("/lti/v1p3/open/{slug}", Handle(s.openTicket))
		r.Post("/language", Handle(s.chooseLanguage))
		r.Group(func(r chi.Router) {
			r.Use(s.Sessions.Mailbox)
			r.Get("/sign-in-methods", Handle(s.showMethods))
			r.Post("/sign-in-methods/app", Handle(s.sure(s.beginApp)))
			r.Post("/sign-in-methods/app/add", Handle(s.sure(s.addApp)))
			r.Post("/sign-in-methods/passkey", Handle(s.sure(s.newPasskey)))
			r.Post("/sign-in-methods/passkey/add", Handle(s.sure(s.addPasskey)))
			r.Post("/sign-in-methods/remove", Handle(s.sure(s.removeMethod)))
			r.Post("/sign-in-methods/recovery-codes", Handle(s.sure(s.newRecoveryCodes)))
		})
		r.With(s.Sessions.Signed).Post("/send-link", Handle(s.sendLink))
		r.With(s.Sessions.Signed, AllowScript).Get("/my-courses", Handle(s.showCourses))
		r.With(s.Sessions.Signed, AllowScript).Get("/time-zone", Handle(s.showZone))
		r.With(s.Sessions.Signed, AllowScript).Post("/time-zone", Handle(s.chooseZone))
		r.With(s.Sessions.Signed).Get("/results/{ref}", Handle(s.showResult))
		r.With(s.Sessions.Signed).Get("/change-password", Handle(s.showChangePassword))
		r.With(s.Sessions.Signed).Post("/change-password", Handle(s.changePassword))
		r.With(s.Sessions.Signed).Get("/sessions", Handle(s.showSessions))
		r.With(s.Sessions.Signed).Post("/sessions/end", Handle(s.endSession))
		r.With(s.Sessions.Signed).Post("/sessions/end-others", Handle(s.endOtherSessions))
	})
}

// Protect is what every page needs: headers that keep it to itself, and no POST that
// another site's page makes.
func Protect(publicURL string) func(http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	_ = origin.AddTrustedOrigin(publicURL) // one with a path is no origin; then the Host header decides
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Fail(w, r, fault.New(fault.Forbidden, "cross_origin", "the form did not come from this site"))
	}))
	return func(next http.Handler) http.Handler { return guard(origin.Handler(next)) }
}

// policy lets a page load its own stylesheet and icon and post to its own address, and nothing else.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guard keeps pages out of caches, frames and other sites' referrers: a page's address
// may be a secret.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		next.ServeHTTP(w, r)
	})
}

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex")
	h.Set("Cache-Control", "no-store")
}

// AllowScript lets pages load the site's own script beside its stylesheet, and fetch themselves again.
func AllowScript(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy+"; script-src 'self'; connect-src 'self'")
		next.ServeHTTP(w, r)
	})
}

//go:embed static
var static embed.FS

// templates are none yet, but what those of every language can call.
var templates = template.New("").Funcs(template.FuncMap{"asset": Asset, "strong": strong, "here": here, "copied": copied, "link": link})

// show renders the template called name within the page's frame, in the language of the request's reader.
func show(w http.ResponseWriter, r *http.Request, status int, name string, data any) error {
	return languageOf(r).show(w, status, name, data, newChooser(r))
}

func (l language) show(w http.ResponseWriter, status int, name string, data any, c chooser) error {
	var page bytes.Buffer
	if err := l.templates.ExecuteTemplate(&page, name, data); err != nil {
		return err
	}
	if err := l.templates.ExecuteTemplate(&page, "end", c); err != nil {
		return err
	}
	w.Header().Set("Content-Language", l.Code())
	send(w, status, &page)
	return nil
}

// Render answers with the template called name. Its error is the template's, and then nothing has
// gone out yet.
func Render(w http.ResponseWriter, templates *template.Template, status int, name string, data any) error {
	var page bytes.Buffer
	if err := templates.ExecuteTemplate(&page, name, data); err != nil {
		return err
	}
	send(w, status, &page)
	return nil
}

func send(w http.ResponseWriter, status int, page *bytes.Buffer) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = page.WriteTo(w) // the browser may be gone
}
