package pages

import (
	"net/http"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/signin"
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
	for _, b := range browsers {
		page.Browsers = append(page.Browsers, browserLine{b.Name, s.since(b), b.ID, b.Current})
	}
	return show(w, http.StatusOK, "sessions.html", page)
}

func (s *Server) since(b signin.Browser) string {
	text := "Signed in"
	if !b.Since.IsZero() {
		text += " on " + s.moment(b.Since)
	}
	if !b.Used.IsZero() {
		text += ", last used on " + s.moment(b.Used)
	}
	if b.From != "" {
		text += " from " + b.From
	}
	return text
}

func (s *Server) moment(t time.Time) string {
	return t.In(s.Zone).Format("2 January 2006 at 15:04 MST")
}

func (s *Server) endSession(w http.ResponseWriter, r *http.Request) error {
	text, err := EndOne(w, r, s.Sessions)
	if err != nil {
		return err
	}
	s.Sessions.Flash(r.Context(), text)
	http.Redirect(w, r, "/sessions/", http.StatusSeeOther)
	return nil
}

// EndOne signs the person out in the browser that the form names, and says so.
func EndOne(w http.ResponseWriter, r *http.Request, sessions *signin.Sessions) (string, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	ended, err := sessions.EndOne(r.Context(), r.PostFormValue("browser"))
	if err != nil || ended {
		return "You are signed out in that browser.", err
	}
	return "You were not signed in there any more.", nil
}

func (s *Server) endOtherSessions(w http.ResponseWriter, r *http.Request) error {
	ended, err := s.Sessions.EndOthers(r.Context())
	if err != nil {
		return err
	}
	s.Sessions.Flash(r.Context(), EndedOthers(ended))
	http.Redirect(w, r, "/sessions/", http.StatusSeeOther)
	return nil
}

// EndedOthers says in how many other browsers a person has been signed out.
func EndedOthers(n int64) string {
	switch n {
	case 0:
		return "You were signed in nowhere else."
	case 1:
		return "You are signed out in the other browser."
	}
	return "You are signed out in the " + strconv.FormatInt(n, 10) + " other browsers."
}
