// Package dynreg registers us at LMSes (LTI Dynamic Registration 1.0): it reads what an LMS says of itself, and sends what it has to know
// of us. Whoever has the organization's link chooses the addresses, so all calls go through the guard of receiver URLs.
package dynreg

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

const (
	timeout    = 10 * time.Second
	dialWithin = 5 * time.Second
	largest    = 256 << 10 // bytes of an answer
	maxSaid    = 4000      // bytes of a registration token
)

// Client calls LMSes.
type Client struct {
	http   *http.Client
	policy *egress.Policy
}

// New makes a Client.
func New(policy *egress.Policy) *Client {
	transport := policy.Transport(dialWithin)
	transport.DisableKeepAlives = true
	transport.MaxResponseHeaderBytes = 16 << 10
	return &Client{http: egress.Client(transport, timeout), policy: policy}
}

// refused is a fault that the person at the LMS reads.
func refused(format string, args ...any) error {
	return fault.Field("openid_configuration", "registration_refused", "openid_configuration: "+format, args...)
}

// Configuration is what an LMS says of itself.
type Configuration struct {
	Issuer    string `json:"issuer"`
	Authorize string `json:"authorization_endpoint"`
	Token     string `json:"token_endpoint"`
	Keys      string `json:"jwks_uri"`
	Register  string `json:"registration_endpoint"`
	Audience  string `json:"authorization_server"`
	LTI       struct {
		Product string `json:"product_family_code"`
	} `json:"https://purl.imsglobal.org/spec/lti-platform-configuration"`
}

// readConfiguration reads the answer of the address. The issuer has to be of its host: else any LMS could speak for another.
func readConfiguration(text []byte, address string) (c Configuration, err error) {
	if json.Unmarshal(text, &c) != nil {
		return c, refused("what is there is no OpenID configuration")
	}
	at, err := url.Parse(address)
	if err != nil {
		return c, refused("it is no address")
	}
	issuer, err := url.Parse(c.Issuer)
	switch {
	case err != nil || issuer.Scheme != at.Scheme || issuer.Host == "" || issuer.RawQuery != "" || issuer.Fragment != "" || issuer.User != nil:
		return c, refused("its issuer has to be an https:// address without a query")
	case !strings.EqualFold(issuer.Host, at.Host):
		return c, refused("its issuer is of another host than the configuration itself")
	case c.Register == "":
		return c, refused("it has no registration_endpoint, so the LMS takes no registrations like this; register it by hand")
	}
	return c, nil
}

// Configuration reads what the LMS at the address says of itself. Invalid where it cannot be used.
func (c *Client) Configuration(ctx context.Context, address string) (Configuration, error) {
	text, status, err := c.call(ctx, http.MethodGet, address, "", nil)
	if err != nil {
		return Configuration{}, err
	}
	if status != http.StatusOK {
		return Configuration{}, refused("the LMS answers %d", status)
	}
	return readConfiguration(text, address)
}

// client is what an LMS is sent of us, and answers with.
type client struct {
	ID           string   `json:"client_id,omitempty"`
	Application  string   `json:"application_type"`
	Responses    []string `json:"response_types"`
	Grants       []string `json:"grant_types"`
	Login        string   `json:"initiate_login_uri"`
	Redirects    []string `json:"redirect_uris"`
	Name         string   `json:"client_name"`
	Keys         string   `json:"jwks_uri"`
	Authenticate string   `json:"token_endpoint_auth_method"`
	Scope        string   `json:"scope"`
	Tool         tool     `json:"https://purl.imsglobal.org/spec/lti-tool-configuration"`
}

type tool struct {
	Domain     string    `json:"domain"`
	Target     string    `json:"target_link_uri"`
	Claims     []string  `json:"claims"`
	Messages   []message `json:"messages"`
	Deployment string    `json:"deployment_id,omitempty"`
}

type message struct {
	Type   string `json:"type"`
	Target string `json:"target_link_uri,omitempty"`
	Label  string `json:"label,omitempty"`
}

// Register makes us a client of the LMS, under the name. The registration is to be looked at before it opens anything.
func (c *Client) Register(ctx context.Context, at Configuration, token, name string, t lms.Tool) (lms.Registration, error) {
	var r lms.Registration
	ours, err := url.Parse(t.LoginURL)
	if err != nil {
		return r, err
	}
	body, err := json.Marshal(client{Application: "web", Responses: []string{"id_token"}, Grants: []string{"implicit", "client_credentials"},
		Login: t.LoginURL, Redirects: []string{t.RedirectURL}, Name: name, Keys: t.KeysURL, Authenticate: "private_key_jwt", Scope: lms.ScoreScope + " " + lms.NamesScope,
		Tool: tool{Domain: ours.Host, Target: t.RedirectURL, Claims: []string{"iss", "sub", "name", "given_name", "family_name", "email"},
			Messages: []message{{Type: lms.OpensLink}, {lms.Chooses, t.DeepLinkURL, name}}}})
	if err != nil {
		return r, err
	}
	text, status, err := c.call(ctx, http.MethodPost, at.Register, token, body)
	if err != nil {
		return r, err
	}
	if status != http.StatusOK && status != http.StatusCreated {
		return r, refused("the LMS answers the registration with %d; it may want another link of its own", status)
	}
	return readClient(text, at)
}

// readClient reads what an LMS has made of us.
func readClient(text []byte, at Configuration) (r lms.Registration, err error) {
	var made struct {
		ID   string `json:"client_id"`
		Tool struct {
			Deployment string `json:"deployment_id"`
		} `json:"https://purl.imsglobal.org/spec/lti-tool-configuration"`
	}
	if json.Unmarshal(text, &made) != nil || made.ID == "" {
		return r, refused("the LMS’s answer to the registration has no client_id")
	}
	issuer, err := url.Parse(at.Issuer)
	if err != nil {
		return r, err
	}
	r = lms.Registration{Name: issuer.Host, Issuer: at.Issuer, ClientID: made.ID, AuthorizeURL: at.Authorize, TokenURL: at.Token, KeysURL: at.Keys,
		Audience: at.Audience, Waiting: true}
	if made.Tool.Deployment != "" {
		r.Deployments = []string{made.Tool.Deployment}
	}
	return r, nil
}

// call sends a body, or none.
func (c *Client) call(ctx context.Context, method, address, bearer string, body []byte) (answer []byte, status int, err error) {
	if _, err := c.policy.CheckURL("openid_configuration", address); err != nil {
		return nil, 0, err
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil || len(bearer) > maxSaid || strings.ContainsFunc(bearer, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, 0, refused("the address or the registration_token cannot be used")
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	res, err := c.http.Do(r)
	if err != nil {
		return nil, 0, refused("the LMS at %s %s", r.URL.Host, explain(err))
	}
	defer func() { _ = res.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(res.Body, largest+1))
	if err == nil && len(answer) > largest {
		err = errLarge
	}
	if err != nil {
		return nil, 0, refused("the LMS at %s %s", r.URL.Host, explain(err))
	}
	return answer, res.StatusCode, nil
}

var errLarge = errors.New("it is larger than 256 KiB")

// explain says in words why a call failed.
func explain(err error) string {
	if errors.Is(err, errLarge) {
		return "answers with more than 256 KiB"
	}
	return egress.Explain(err, timeout)
}
