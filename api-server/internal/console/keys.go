package console

import (
	"net/http"
	"strings"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

type keysPage struct {
	frame
	Keys     []org.Key
	Beside   int    // keys that work beside any one that does
	Name     string // of the form, when it comes back
	ReadOnly bool
	Made     *org.Key // just now
	Text     string   // its text, shown once
}

func (s *Server) showKeys(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "api-keys", "API keys")
	if err != nil {
		return err
	}
	return s.listKeys(w, r, http.StatusOK, keysPage{frame: f})
}

func (s *Server) listKeys(w http.ResponseWriter, r *http.Request, status int, p keysPage) (err error) {
	if p.Keys, err = org.Keys(r.Context(), s.DB, p.Here.Organization); err != nil {
		return err
	}
	p.Beside = max(workingKeys(p.Keys)-1, 0)
	return show(w, status, "keys.html", p)
}

func workingKeys(all []org.Key) (n int) {
	for _, k := range all {
		if k.RevokedAt.IsZero() {
			n++
		}
	}
	return n
}

func (s *Server) createKey(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "api-keys", "API keys")
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	p := keysPage{frame: f, Name: strings.TrimSpace(r.PostFormValue("name")), ReadOnly: r.PostFormValue("access") == string(org.ReadOnly)}
	access := org.Full
	if p.ReadOnly {
		access = org.ReadOnly
	}
	key, text, err := org.CreateKey(r.Context(), s.DB, f.Person.Actor(), f.Here.Organization, p.Name, access, s.Clock())
	if fault.KindOf(err) == fault.Invalid {
		p.Fault = err.Error()
		return s.listKeys(w, r, http.StatusBadRequest, p)
	}
	if err != nil {
		return err
	}
	return s.listKeys(w, r, http.StatusCreated, keysPage{frame: f, Made: &key, Text: text})
}

func (s *Server) revokeKey(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "api-keys", "API keys")
	if err != nil {
		return err
	}
	which, err := edge.IDParam[id.APIKey](r, "id")
	if err != nil {
		return err
	}
	key, err := org.RevokeKey(r.Context(), s.DB, f.Person.Actor(), f.Here.Organization, which, s.Clock())
	if err != nil {
		return err
	}
	s.Keys.Forget(f.Here.Organization)
	return s.back(w, r, f, "/api-keys/", "The key "+key.Name+" is revoked: calls with it are refused from now on.")
}
