package platform

import (
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// registrationBody is an LMS that is registered for LTI 1.3.
type registrationBody struct {
	Status       string           `json:"status,omitempty"`
	ID           id.Registration  `json:"id"`
	Name         string           `json:"name"`
	Issuer       string           `json:"issuer"`
	ClientID     string           `json:"client_id"`
	AuthorizeURL string           `json:"authorize_url"`
	TokenURL     string           `json:"token_url"`
	Audience     string           `json:"token_audience"`
	KeysURL      string           `json:"keys_url"`
	Deployments  []string         `json:"deployments"`
	Waiting      bool             `json:"waiting"`
	LaunchedAt   *clock.Timestamp `json:"last_launch_at"`
	CreatedAt    *clock.Timestamp `json:"created_at"`
	UpdatedAt    *clock.Timestamp `json:"updated_at"`
	Tool         *toolBody        `json:"tool,omitempty"`
}

// toolBody is what is entered in the LMS.
type toolBody struct {
	LoginURL    string `json:"login_url"`
	RedirectURL string `json:"redirect_url"`
	DeepLinkURL string `json:"deep_link_url"`
	KeysURL     string `json:"keys_url"`
}

func bodyOf(r lms.Registration) registrationBody {
	b := registrationBody{ID: r.ID, Name: r.Name, Issuer: r.Issuer, ClientID: r.ClientID, AuthorizeURL: r.AuthorizeURL, TokenURL: r.TokenURL, Audience: r.Audience, KeysURL: r.KeysURL,
		Deployments: r.Deployments, Waiting: r.Waiting, CreatedAt: clock.Stamp(r.CreatedAt, time.UTC), UpdatedAt: clock.Stamp(r.UpdatedAt, time.UTC)}
	if r.LaunchedAt != nil {
		b.LaunchedAt = clock.Stamp(*r.LaunchedAt, time.UTC)
	}
	return b
}

func (s *Server) answerRegistration(w http.ResponseWriter, status int, o org.Organization, r lms.Registration) error {
	b := bodyOf(r)
	tool := toolBody(lms.NewTool(s.PublicURL, o.Slug))
	b.Status, b.Tool = "ok", &tool
	return edge.JSON(w, status, b)
}

func (s *Server) listRegistrations(w http.ResponseWriter, r *http.Request) error {
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	all, err := lms.List(r.Context(), s.DB, o.ID)
	if err != nil {
		return err
	}
	body := struct {
		Status        string             `json:"status"`
		Registrations []registrationBody `json:"registrations"`
	}{"ok", []registrationBody{}}
	for _, one := range all {
		body.Registrations = append(body.Registrations, bodyOf(one))
	}
	return edge.JSON(w, http.StatusOK, body)
}

// sentRegistration is what a body says of one; nil is not sent.
type sentRegistration struct {
	name, issuer, client, authorize, token, audience, keys *string
	deployments                                            []string
}

func readRegistration(w http.ResponseWriter, r *http.Request) (sent sentRegistration, err error) {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return sent, err
	}
	text := func(field string) *string { return b.Text(field, maxAddress) }
	sent = sentRegistration{name: text("name"), issuer: text("issuer"), client: text("client_id"), authorize: text("authorize_url"),
		token: text("token_url"), audience: text("token_audience"), keys: text("keys_url"), deployments: b.List("deployments")}
	if b.Cleared("token_audience") {
		sent.audience = new(string)
	}
	return sent, b.Err()
}

func (s sentRegistration) apply(to *lms.Registration) {
	set(&to.Name, s.name)
	set(&to.Issuer, s.issuer)
	set(&to.ClientID, s.client)
	set(&to.AuthorizeURL, s.authorize)
	set(&to.TokenURL, s.token)
	set(&to.Audience, s.audience)
	set(&to.KeysURL, s.keys)
	if s.deployments != nil {
		to.Deployments = s.deployments
	}
}

// maxAddress is far above what LMSes have; lms.Service has the exact rules.
const maxAddress = 2000

func (s *Server) addRegistration(w http.ResponseWriter, r *http.Request) error {
	sent, err := readRegistration(w, r)
	if err != nil {
		return err
	}
	o, err := s.organization(r)
	if err != nil {
		return err
	}
	var fresh lms.Registration
	sent.apply(&fresh)
	made, err := s.LMS.Add(r.Context(), audit.Platform, o.ID, fresh, s.Clock())
	if err != nil {
		return err
	}
	return s.answerRegistration(w, http.StatusCreated, o, made)
}

func (s *Server) findRegistration(r *http.Request) (o org.Organization, found lms.Registration, err error) {
	which, err := edge.IDParam[id.Registration](r, "id")
	if err != nil {
		return o, found, err
	}
	if o, err = s.organization(r); err != nil {
		return o, found, err
	}
	found, err = lms.Find(r.Context(), s.DB, o.ID, which)
	return o, found, err
}

func (s *Server) showRegistration(w http.ResponseWriter, r *http.Request) error {
	o, found, err := s.findRegistration(r)
	if err != nil {
		return err
	}
	return s.answerRegistration(w, http.StatusOK, o, found)
}

func (s *Server) changeRegistration(w http.ResponseWriter, r *http.Request) error {
	sent, err := readRegistration(w, r)
	if err != nil {
		return err
	}
	o, found, err := s.findRegistration(r)
	if err != nil {
		return err
	}
	sent.apply(&found)
	changed, err := s.LMS.Change(r.Context(), audit.Platform, o.ID, found, s.Clock())
	if err != nil {
		return err
	}
	return s.answerRegistration(w, http.StatusOK, o, changed)
}

func (s *Server) removeRegistration(w http.ResponseWriter, r *http.Request) error {
	o, found, err := s.findRegistration(r)
	if err != nil {
		return err
	}
	if err := s.LMS.Remove(r.Context(), audit.Platform, o.ID, found.ID, s.Clock()); err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, okBody{"ok"})
}

// forgetPerson lets a student come from the LMS as another of its users.
func (s *Server) forgetPerson(w http.ResponseWriter, r *http.Request) error {
	user, err := edge.IDParam[id.User](r, "user_id")
	if err != nil {
		return err
	}
	o, found, err := s.findRegistration(r)
	if err != nil {
		return err
	}
	if err := s.LMS.Forget(r.Context(), audit.Platform, o.ID, found.ID, user, s.Clock()); err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, okBody{"ok"})
}

type okBody struct {
	Status string `json:"status"`
}

type lmsKeyBody struct {
	KID       string           `json:"kid"`
	CreatedAt *clock.Timestamp `json:"created_at"`
	SignsFrom *clock.Timestamp `json:"signs_from"`
	Public    json.RawMessage  `json:"public"`
}

func lmsKeyOf(k lms.Key) lmsKeyBody {
	return lmsKeyBody{k.KID, clock.Stamp(k.CreatedAt, time.UTC), clock.Stamp(k.SignsFrom, time.UTC), k.Public}
}

// listLMSKeys lists the keys that the installation publishes.
func (s *Server) listLMSKeys(w http.ResponseWriter, r *http.Request) error {
	all, err := s.LMSKeys.Published(r.Context(), s.Clock())
	if err != nil {
		return err
	}
	return s.answerKeys(w, http.StatusOK, all...)
}

func (*Server) answerKeys(w http.ResponseWriter, status int, all ...lms.Key) error {
	body := struct {
		Status string       `json:"status"`
		Keys   []lmsKeyBody `json:"keys"`
	}{"ok", []lmsKeyBody{}}
	for _, k := range all {
		body.Keys = append(body.Keys, lmsKeyOf(k))
	}
	return edge.JSON(w, status, body)
}

// renewLMSKey makes the next key, or replaces all of them.
func (s *Server) renewLMSKey(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadOptionalBody(w, r)
	if err != nil {
		return err
	}
	atOnce := b.Bool("at_once")
	if err := b.Err(); err != nil {
		return err
	}
	made, err := s.LMSKeys.Renew(r.Context(), audit.Platform, *cmp.Or(atOnce, new(bool)), s.Clock())
	if err != nil {
		return err
	}
	return s.answerKeys(w, http.StatusCreated, made)
}
