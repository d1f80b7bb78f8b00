package platform

import (
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/network"
)

type keyBody struct {
	ID        id.APIKey        `json:"id"`
	Name      string           `json:"name"`
	Access    org.Access       `json:"access"`
	Scopes    []org.Scope      `json:"scopes"`
	Networks  []string         `json:"networks"`
	Sandbox   bool             `json:"sandbox"`
	ManagedBy *string          `json:"managed_by"`
	Prefix    string           `json:"prefix"`
	CreatedAt *clock.Timestamp `json:"created_at"`
	ExpiresAt *clock.Timestamp `json:"expires_at"`
	RevokedAt *clock.Timestamp `json:"revoked_at"`
	LastUsed  *lastUseBody     `json:"last_used"`
}

type lastUseBody struct {
	On   clock.Date `json:"on"`
	From *string    `json:"from"`
}

func keyOf(k org.Key) keyBody {
	b := keyBody{ID: k.ID, Name: k.Name, Access: k.Access, Scopes: k.Scopes, Networks: []string{}, Sandbox: k.Sandbox, Prefix: k.Prefix,
		CreatedAt: clock.Stamp(k.CreatedAt, time.UTC), ExpiresAt: clock.Stamp(k.ExpiresAt, time.UTC), RevokedAt: clock.Stamp(k.RevokedAt, time.UTC)}
	if k.ManagedBy != "" {
		b.ManagedBy = &k.ManagedBy
	}
	for _, n := range k.Networks {
		b.Networks = append(b.Networks, network.Text(n))
	}
	if k.LastUsedOn != nil {
		b.LastUsed = &lastUseBody{On: *k.LastUsedOn}
		if from := k.LastUsedFrom.String(); k.LastUsedFrom.IsValid() {
			b.LastUsed.From = &from
		}
	}
	return b
}

type oneKeyBody struct {
	Status string `json:"status"`
	keyBody
	Key string `json:"key,omitempty"` // the text, on creation alone
}

func (s *Server) createKey(w http.ResponseWriter, r *http.Request) error {
	wanted, err := readKey(w, r)
	if err != nil {
		return err
	}
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	key, text, err := s.Accounts.CreateKey(r.Context(), audit.Platform, o, wanted)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusCreated, oneKeyBody{"ok", keyOf(key), text})
}

// readKey reads what the key shall be: access may be left out where scopes are named.
func readKey(w http.ResponseWriter, r *http.Request) (k org.Key, err error) {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return k, err
	}
	b.Required("name")
	if !b.Has("scopes") {
		b.Required("access")
	}
	if label := b.Text("name", 200); label != nil {
		k.Name = *label
	}
	k.Access = org.Scoped
	if word := b.Choice("access", string(org.Full), string(org.ReadOnly), string(org.Scoped)); word != nil {
		k.Access = org.Access(*word)
	}
	if k.Scopes, err = org.ParseScopes(b.List("scopes")); err != nil {
		b.Add(err)
	}
	if k.Networks, err = org.ParseNetworks(b.List("networks")); err != nil {
		b.Add(err)
	}
	if at := b.Timestamp("expires_at"); at != nil {
		k.ExpiresAt = *at
	}
	if of := b.Bool("sandbox"); of != nil {
		k.Sandbox = *of
	}
	return k, b.Err()
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
