package pages

import (
	"context"
	"errors"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

// The language of a page is the one that its reader chose: for the account, or else in the browser. Without a choice it
// is the browser's own, the organization's, and at last English.
const (
	languageCookie = "registrar_language"
	languageKept   = 365 * 24 * time.Hour
)

// languages are those of the pages, by their codes.
var languages = func() map[string]language {
	known := map[string]language{}
	for _, t := range lang.All() {
		known[t.Code()] = newLanguage(t)
	}
	return known
}()

// language has a set of templates of its own, whose texts are its.
type language struct {
	*lang.Texts
	templates *template.Template
}

func newLanguage(t *lang.Texts) language {
	own := template.FuncMap{"t": t.T, "n": t.N, "th": t.H, "lang": t.Code, "rtl": t.RightToLeft, "word": t.Word}
	return language{t, template.Must(template.Must(templates.Clone()).Funcs(own).ParseFS(static, "static/*.html"))}
}

// reader is what is known of who reads a page without a sign-in.
type reader struct {
	account      string // the language of the account that the page is about
	organization string // that of the organization which the page shows itself as
}

type readerKey struct{}

// withReader lets handlers note of whom the page is.
func withReader(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), readerKey{}, new(reader))))
	})
}

// readerOf is the request's, to be read and written.
func readerOf(ctx context.Context) *reader {
	if who, ok := ctx.Value(readerKey{}).(*reader); ok {
		return who
	}
	return new(reader)
}

// languageOf is that in which the request is answered. Pages for staff and the documentation are in English.
func languageOf(r *http.Request) language {
	if strings.HasPrefix(r.URL.Path, "/console") || strings.HasPrefix(r.URL.Path, "/docs") {
		return languages[lang.English]
	}
	who := *readerOf(r.Context())
	if p := signin.Whoever(r.Context()); p != nil {
		who.account = p.Language
		for _, b := range p.Belongings {
			if who.organization == "" {
				who.organization = b.Language
			}
		}
	}
	chosen := ""
	if c, err := r.Cookie(languageCookie); err == nil {
		chosen = c.Value
	}
	for _, code := range []string{who.account, chosen, lang.Accepted(r.Header.Get("Accept-Language")), who.organization} {
		if known, ok := languages[code]; ok {
			return known
		}
	}
	return languages[lang.English]
}

// textsOf are those of languageOf.
func textsOf(r *http.Request) *lang.Texts { return languageOf(r).Texts }

// chooser lets the reader of a page choose its language. It leads back to the page, unless only a form opens that, or
// another site does once.
type chooser struct {
	Languages []*lang.Texts // none: there is nothing to choose here
	Here      string        // a path of this site
}

func newChooser(r *http.Request) chooser {
	routed := chi.RouteContext(r.Context())
	path := strings.TrimSuffix(r.URL.Path, "/")
	elsewhere := strings.HasPrefix(path, "/lti/") || strings.HasPrefix(path, "/sign-in/with/") || strings.HasPrefix(path, "/sign-in/answer/")
	if elsewhere || routed == nil || routed.Routes == nil || !routed.Routes.Match(chi.NewRouteContext(), http.MethodGet, path) {
		return chooser{}
	}
	here := r.URL.EscapedPath()
	if r.Method == http.MethodGet {
		here = r.URL.RequestURI()
	}
	return chooser{lang.All(), here}
}

// chooseLanguage keeps the choice in the browser and, of who is signed in, for the account: mails are in it, too.
func (s *Server) chooseLanguage(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	code := r.PostFormValue("language")
	if !lang.Known(code) {
		return fault.New(fault.Invalid, "invalid_form", "there is no such language")
	}
	p, err := s.Sessions.Person(r.Context())
	if err != nil {
		return err
	}
	if p != nil {
		if err := student.ChooseLanguage(r.Context(), s.DB, p.ID, code, s.Clock()); err != nil {
			return err
		}
	}
	//nolint:gosec // it is Secure where the site is at https
	http.SetCookie(w, &http.Cookie{Name: languageCookie, Value: code, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: s.Devices.HTTPS,
		MaxAge: int(languageKept.Seconds())})
	http.Redirect(w, r, signin.Next(r.PostFormValue("next"), "/"), http.StatusSeeOther) //nolint:gosec // signin.Next lets paths of this site pass alone
	return nil
}

// keepLanguage makes what was chosen in the browser before the sign-in the account's, if that has none yet.
func (s *Server) keepLanguage(r *http.Request, a student.Account) error {
	if c, err := r.Cookie(languageCookie); err == nil && a.Language == "" && lang.Known(c.Value) {
		return student.ChooseLanguage(r.Context(), s.DB, a.ID, c.Value, s.Clock())
	}
	return nil
}

// say is the text of the key, "" for none.
func say(t *lang.Texts, key string) string {
	if key == "" {
		return ""
	}
	return t.T(key)
}

// explained is the text of a fault that its reader can do something about, in English where no catalog has it.
func explained(t *lang.Texts, err error) string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err.Error()
	}
	if key := "fault." + f.Code; lang.Has(key) {
		return t.T(key)
	}
	return f.Message
}

// Markup that stands within texts.
func strong(value any) template.HTML { return within("strong", "", value) }

func within(element, attributes string, value any) template.HTML {
	text := template.HTMLEscaper(value)
	return template.HTML("<" + element + attributes + ">" + text + "</" + element + ">") //nolint:gosec // escaped
}

// here is what the script replaces by the browser's time zone.
func here(text string) template.HTML { return within("span", " data-here", text) }

// copied is what is typed elsewhere.
func copied(text string) template.HTML { return within("code", ` class="copy" tabindex="0"`, text) }

// link is the tag of one to a path of this site.
func link(path string) template.HTML {
	return template.HTML(`<a href="` + template.HTMLEscapeString(signin.Next(path, "/")) + `">`) //nolint:gosec // escaped
}
