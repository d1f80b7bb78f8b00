package platform

import (
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

type keyBody struct {
	ID        id.APIKey        `json:"id"`
	Name      string           `json:"name"`
	Access    org.Access       `json:"access"`
	Prefix    string           `json:"prefix"`
	CreatedAt *clock.Timestamp `json:"created_at"`
	RevokedAt *clock.Timestamp `json:"revoked_at"`
}

func keyOf(k org.Key) keyBody {
	return keyBody{k.ID, k.Name, k.Access, k.Prefix, clock.Stamp(k.CreatedAt, time.UTC), clock.Stamp(k.RevokedAt, time.UTC)}
}

type oneKeyBody struct {
	Status string `json:"status"`
	keyBody
	Key string `json:"key,omitempty"` // the text, on creation alone
}

func (s *Server) createKey(w http.ResponseWriter, r *http.Request) error {
	name, access, err := readKey(w, r)
	if err != nil {
		return err
	}
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	key, text, err := org.CreateKey(r.Context(), s.DB, audit.Platform, o.ID, name, access, s.Clock())
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusCreated, oneKeyBody{"ok", keyOf(key), text})
}

func readKey(w http.ResponseWriter, r *http.Request) (name string, access org.Access, err error) {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return "", "", err
	}
	b.Required("name", "access")
	label, word := b.Text("name", 200), b.Choice("access", string(org.Full), string(org.ReadOnly))
	if err := b.Err(); err != nil {
		return "", "", err
	}
	return *label, org.Access(*word), nil
}

type keysBody struct {
	Status string    `json:"status"`
	Count  int       `json:"count"`
	Keys   []keyBody `json:"api_keys"`
}

func (s *Server) listKeys(w http.ResponseWriter, r *http.Request) error {
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	keys, err := org.Keys(r.Context(), s.DB, o.ID)
	if err != nil {
		return err
	}
	body := keysBody{Status: "ok", Count: len(keys), Keys: []keyBody{}}
	for _, k := range keys {
		body.Keys = append(body.Keys, keyOf(k))
	}
	return edge.JSON(w, http.StatusOK, body)
}

func (s *Server) revokeKey(w http.ResponseWriter, r *http.Request) error {
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	which, err := edge.IDParam[id.APIKey](r, "id")
	if err != nil {
		return err
	}
	key, err := org.RevokeKey(r.Context(), s.DB, audit.Platform, o.ID, which, s.Clock())
	if err != nil {
		return err
	}
	s.Keys.Forget(o.ID)
	return edge.JSON(w, http.StatusOK, oneKeyBody{Status: "ok", keyBody: keyOf(key)})
}
