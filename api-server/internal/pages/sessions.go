package pages

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

type sessionsPage struct {
	Person   *signin.Person
	Note     string
	Browsers []browserLine
}

// browserLine is one browser in words.
type browserLine struct {
	Name    string
	Since   string // a sentence
	ID      string
	Current bool
}

// Others says whether there is anything to end.
func (p sessionsPage) Others() bool { return len(p.Browsers) > 1 }

func (s *Server) showSessions(w http.ResponseWriter, r *http.Request) error {
	browsers, err := s.Sessions.Browsers(r.Context())
	if err != nil {
		return err
	}
	page := sessionsPage{Person: signin.SignedIn(r.Context()), Note: s.Sessions.Flashed(r.Context())}
	t := textsOf(r)
	for _, b := range browsers {
		page.Browsers = append(page.Browsers, browserLine{nameOf(t, b), s.since(t, b), b.ID, b.Current})
	}
	return show(w, r, http.StatusOK, "sessions.html", page)
}

func nameOf(t *lang.Texts, b signin.Browser) string {
	switch {
	case b.Program != "" && b.System != "":
		return t.T("browsers.on", "Browser", b.Program, "System", t.Word(b.System))
	case b.Program != "":
		return b.Program
	case b.System != "":
		return t.T("browsers.some_on", "System", t.Word(b.System))
	}
	return t.T("browsers.some")
}

func (s *Server) since(t *lang.Texts, b signin.Browser) string {
	text := t.T("browsers.signed_in")
	if !b.Since.IsZero() {
		text = t.T("browsers.since", "Since", t.MomentAt(b.Since, s.Zone))
	}
	if !b.Used.IsZero() {
		text += t.T("browsers.used", "Used", t.MomentAt(b.Used, s.Zone))
	}
	if b.From != "" {
		text += t.T("browsers.from", "From", b.From)
	}
	return text
}

func (s *Server) endSession(w http.ResponseWriter, r *http.Request) error {
	text, err := EndOne(w, r, s.Sessions, textsOf(r))
	if err != nil {
		return err
	}
	s.Sessions.Flash(r.Context(), text)
	http.Redirect(w, r, "/sessions/", http.StatusSeeOther)
	return nil
}

// EndOne signs the person out in the browser that the form names, and says so.
func EndOne(w http.ResponseWriter, r *http.Request, sessions *signin.Sessions, t *lang.Texts) (string, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	ended, err := sessions.EndOne(r.Context(), r.PostFormValue("browser"))
	if err != nil || ended {
		return t.T("browsers.ended"), err
	}
	return t.T("browsers.not_in"), nil
}

func (s *Server) endOtherSessions(w http.ResponseWriter, r *http.Request) error {
	ended, err := s.Sessions.EndOthers(r.Context())
	if err != nil {
		return err
	}
	s.Sessions.Flash(r.Context(), EndedOthers(textsOf(r), ended))
	http.Redirect(w, r, "/sessions/", http.StatusSeeOther)
	return nil
}

// EndedOthers says in how many other browsers a person has been signed out.
func EndedOthers(t *lang.Texts, n int64) string {
	if n == 0 {
		return t.T("browsers.nowhere")
	}
	return t.N("browsers.ended_others", int(n))
}
