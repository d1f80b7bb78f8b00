package console

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/pages"
	"github.com/registrar-dev/registrar/api-server/internal/signin"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

type sessionsPage struct {
	frame
	Browsers []signin.Browser
}

// showSessions lists where the person is signed in, whatever the organization.
func (s *Server) showSessions(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frameFor(staff, r, "sessions", "Where you are signed in")
	if err != nil {
		return err
	}
	p := sessionsPage{frame: f}
	if p.Browsers, err = s.Sessions.Browsers(r.Context()); err != nil {
		return err
	}
	return show(w, http.StatusOK, "sessions.html", p)
}

func (s *Server) endOtherSessions(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frameFor(staff, r, "sessions", "Where you are signed in")
	if err != nil {
		return err
	}
	ended, err := s.Sessions.EndOthers(r.Context())
	if err != nil {
		return err
	}
	return s.back(w, r, f, "/sessions/", pages.EndedOthers(lang.Of(lang.English), ended))
}

func (s *Server) endSession(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frameFor(staff, r, "sessions", "Where you are signed in")
	if err != nil {
		return err
	}
	text, err := pages.EndOne(w, r, s.Sessions, lang.Of(lang.English))
	if err != nil {
		return err
	}
	return s.back(w, r, f, "/sessions/", text)
}

// confirmed asks those for the password who may do what h does, unless they gave it just now.
func (s *Server) confirmed(h edge.Handler) edge.Handler { return s.confirmedBy(managers, "/", h) }
