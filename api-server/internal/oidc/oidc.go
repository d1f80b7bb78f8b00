// Package oidc signs people in at an organization's own provider, by OpenID Connect: the authorization
// code flow with PKCE, state and nonce. All calls go through the guard of receiver URLs, as a customer
// chooses the address.
//
// What Begin gives is kept in the browser's session until the answer, and taken out of it then. So an
// answer is worth something once, in the browser that asked, for the provider that was asked.
package oidc

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/registrar-dev/registrar/internal/domain/provider"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Client calls providers.
type Client struct {
	http   *http.Client
	policy *egress.Policy
	now    clock.Clock
	site   string // the base of addresses that answers come to
}

const (
	timeout    = 10 * time.Second
	largest    = 1 << 20 // bytes of an answer
	validFor   = 10 * time.Minute
	dialWithin = 5 * time.Second
)

// New makes a Client for the site at publicURL.
func New(policy *egress.Policy, now clock.Clock, publicURL string) *Client {
	transport := policy.Transport(dialWithin)
	transport.MaxIdleConnsPerHost = 2
	transport.IdleConnTimeout = time.Minute
	return &Client{http: egress.Client(limited{transport}, timeout), policy: policy, now: now, site: publicURL}
}

// to is what calls the provider: with an authority of its own, over connections of its own.
func (c *Client) to(s provider.Settings) *http.Client {
	if s.CA == "" {
		return c.http
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(s.CA)) // checked when it was stored
	transport := c.policy.Transport(dialWithin)
	transport.TLSClientConfig.RootCAs = roots
	transport.DisableKeepAlives = true
	return egress.Client(limited{transport}, timeout)
}

// limited reads no more of an answer than is needed.
type limited struct{ next http.RoundTripper }

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.next.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, largest), res.Body}
	}
	return res, err
}

// AnswerURL is what the provider of the organization called slug has to know as the redirect URI. Each organization has
// its own: else one could have its provider send a browser to another's, and read the code with which that answers.
func (c *Client) AnswerURL(slug string) string { return c.site + "/sign-in/answer/" + slug + "/" }

// Away is the code of the fault when a provider cannot be asked, Refused that of an answer that is not taken.
const (
	Away    = "provider_away"
	Refused = "provider_refused"
)

func refused(format string, args ...any) error {
	return fault.New(fault.Unauthenticated, Refused, format, args...)
}

// document is what a provider says of itself, as far as the library does not read it.
type document struct {
	*oidc.Provider
	Keys        string   `json:"jwks_uri"`
	Types       []string `json:"response_types_supported"`
	Methods     []string `json:"code_challenge_methods_supported"`
	NamesItself bool     `json:"authorization_response_iss_parameter_supported"` // its answers say whose they are
}

// connect reads what the provider says of itself.
func (c *Client) connect(ctx context.Context, s provider.Settings) (context.Context, document, error) {
	var d document
	if _, err := c.policy.CheckURL("issuer", s.Issuer); err != nil {
		return ctx, d, err
	}
	ctx = oidc.ClientContext(ctx, c.to(s))
	p, err := oidc.NewProvider(ctx, s.Issuer)
	if err == nil {
		err = p.Claims(&d)
	}
	if err != nil {
		return ctx, d, explain(s.Issuer, err)
	}
	d.Provider = p
	addresses := map[string]string{"authorization_endpoint": p.Endpoint().AuthURL, "token_endpoint": p.Endpoint().TokenURL, "jwks_uri": d.Keys}
	if address := p.UserInfoEndpoint(); address != "" {
		addresses["userinfo_endpoint"] = address
	}
	for _, name := range slices.Sorted(maps.Keys(addresses)) {
		if _, err := c.policy.CheckURL(name, addresses[name]); err != nil {
			return ctx, d, fault.New(fault.Conflict, Away, "The provider's %v.", err)
		}
	}
	return ctx, d, nil
}

// explain says in words what is wrong with a provider that cannot be asked.
func explain(issuer string, err error) error {
	var other *oidc.IssuerMismatchError
	say := func(format string, args ...any) error { return fault.New(fault.Conflict, Away, format, args...) }
	if errors.As(err, &other) {
		return say("The provider calls itself %s, not %s. Use its own name, to the last character.", other.Discovered, issuer)
	}
	if strings.HasPrefix(err.Error(), "404 ") { // the library says no more than the status; a port may have these digits, too
		return say("There is nothing at %s/.well-known/openid-configuration. Is this the issuer?", strings.TrimRight(issuer, "/"))
	}
	switch egress.FailureOf(err) {
	case egress.NotPublic:
		return say("The address of %s is not public.", issuer)
	case egress.Redirected:
		return say("%s redirects. Use the address that it leads to.", issuer)
	case egress.TimedOut:
		return say("%s does not answer within %d seconds.", issuer, int(timeout.Seconds()))
	case egress.NoHost:
		return say("There is no host of the name in %s.", issuer)
	case egress.BadCertificate:
		return say("The certificate of %s is not valid.", issuer)
	case egress.Unreachable:
	}
	return say("%s cannot be reached, or does not answer as OpenID Connect says.", issuer)
}

// Test asks the provider for what signing in needs, and says in a fault what is wrong.
func (c *Client) Test(ctx context.Context, s provider.Settings) error {
	ctx, about, err := c.connect(ctx, s)
	if err != nil {
		return err
	}
	say := func(format string, args ...any) error { return fault.New(fault.Conflict, Away, format, args...) }
	if len(about.Types) > 0 && !slices.Contains(about.Types, "code") {
		return say("The provider does not offer the authorization code flow.")
	}
	if len(about.Methods) > 0 && !slices.Contains(about.Methods, "S256") {
		return say("The provider does not offer PKCE with S256.")
	}
	return testKeys(ctx, c.to(s), about.Keys)
}

func testKeys(ctx context.Context, client *http.Client, address string) error {
	say := func(format string, args ...any) error { return fault.New(fault.Conflict, Away, format, args...) }
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return say("The provider's jwks_uri is no address.")
	}
	res, err := client.Do(r)
	if err != nil {
		return explain(address, err)
	}
	defer func() { _ = res.Body.Close() }()
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if json.NewDecoder(res.Body).Decode(&set) != nil || len(set.Keys) == 0 {
		return say("The provider shows no keys at %s.", address)
	}
	return nil
}

// asked is what a session keeps until the answer.
type asked struct {
	Organization id.Organization `json:"organization"`
	Slug         string          `json:"slug"`
	Issuer       string          `json:"issuer"`
	Client       string          `json:"client"`
	State        string          `json:"state"`
	Nonce        string          `json:"nonce"`
	Verifier     string          `json:"verifier"`
	Next         string          `json:"next"`
	Fresh        bool            `json:"fresh"` // the person has to sign in again at the provider
	At           time.Time       `json:"at"`
}

// Question is what Begin asks for.
type Question struct {
	Organization id.Organization
	Slug         string
	Next         string // where the sign-in leads
	Fresh        bool   // the person has to sign in again at the provider
	Hint         string // the address, if it is known
}

// Begin gives the address at the provider to which the browser goes, and what its session keeps until the answer.
// Conflict (Away) when the provider cannot be asked.
func (c *Client) Begin(ctx context.Context, s provider.Settings, q Question) (address, keep string, err error) {
	_, p, err := c.connect(ctx, s)
	if err != nil {
		return "", "", err
	}
	a := asked{Organization: q.Organization, Slug: q.Slug, Issuer: s.Issuer, Client: s.ClientID, State: seal.Token(), Nonce: seal.Token(),
		Verifier: oauth2.GenerateVerifier(), Next: q.Next, Fresh: q.Fresh, At: c.now()}
	text, err := json.Marshal(a)
	if err != nil {
		return "", "", err
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)}
	if q.Fresh {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	if q.Hint != "" {
		options = append(options, oauth2.SetAuthURLParam("login_hint", q.Hint))
	}
	return c.config(s, p, a).AuthCodeURL(a.State, options...), string(text), nil
}

func (c *Client) config(s provider.Settings, d document, a asked) *oauth2.Config {
	return &oauth2.Config{ClientID: s.ClientID, ClientSecret: s.Secret, Endpoint: d.Endpoint(), RedirectURL: c.AnswerURL(a.Slug), Scopes: []string{oidc.ScopeOpenID, "email", "profile"}}
}

// Answer is whom the provider has signed in.
type Answer struct {
	Organization id.Organization
	Email        string   // verified; "" where the provider does not say so
	Roles        []string // the values of the claim that names the role
	Next         string
	Fresh        bool // the person has signed in again at the provider
}

// Of is the organization whose provider was asked; 0 for a session that keeps nothing of the kind.
func Of(keep string) id.Organization {
	var a asked
	if json.Unmarshal([]byte(keep), &a) != nil {
		return 0
	}
	return a.Organization
}

// Finish checks the answer that a browser brings to the address of the organization called slug (AnswerURL), with what
// its session kept. Unauthenticated (Refused) for one that is
// not taken, Conflict (Away) when the provider cannot be asked.
func (c *Client) Finish(ctx context.Context, s provider.Settings, keep, slug string, answer url.Values) (Answer, error) {
	var a asked
	if json.Unmarshal([]byte(keep), &a) != nil || a.State == "" || !seal.Equal(a.State, answer.Get("state")) {
		return Answer{}, refused("The answer does not belong to a sign-in that this browser began.")
	}
	if c.now().Sub(a.At) > validFor {
		return Answer{}, refused("That took too long. Please sign in again.")
	}
	mixedUp := refused("The answer is of another provider than the one that was asked.")
	if a.Slug != slug || a.Issuer != s.Issuer || a.Client != s.ClientID || answer.Has("iss") && answer.Get("iss") != s.Issuer {
		return Answer{}, mixedUp
	}
	if answer.Get("error") != "" {
		return Answer{}, refused("The provider did not sign you in (%s).", word(answer.Get("error")))
	}
	ctx, p, err := c.connect(ctx, s)
	if err != nil {
		return Answer{}, err
	}
	if p.NamesItself && !answer.Has("iss") {
		return Answer{}, mixedUp
	}
	token, err := c.config(s, p, a).Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(a.Verifier))
	var retrieve *oauth2.RetrieveError
	if errors.As(err, &retrieve) {
		return Answer{}, refused("The provider did not accept the code, or this site's client id and secret (%s).", word(retrieve.ErrorCode))
	}
	if err != nil {
		return Answer{}, explain(s.Issuer, err)
	}
	raw, _ := token.Extra("id_token").(string)
	verified, err := p.VerifierContext(ctx, &oidc.Config{ClientID: s.ClientID, Now: c.now}).Verify(ctx, raw)
	if err != nil {
		return Answer{}, refused("The provider's answer is not valid: it is for somebody else, of somebody else, or too old.")
	}
	if !seal.Equal(verified.Nonce, a.Nonce) {
		return Answer{}, refused("The provider's answer is to another question.")
	}
	var claims map[string]json.RawMessage
	if err := verified.Claims(&claims); err != nil {
		return Answer{}, refused("The provider's answer cannot be read.")
	}
	if err := c.ask(ctx, p.Provider, token, verified.Subject, claims); err != nil {
		return Answer{}, err
	}
	return c.read(claims, s, a)
}

// ask adds what the provider tells of the person at its userinfo endpoint alone, as some do.
func (c *Client) ask(ctx context.Context, p *oidc.Provider, token *oauth2.Token, subject string, claims map[string]json.RawMessage) error {
	if claims["email"] != nil || p.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := p.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return explain(p.UserInfoEndpoint(), err)
	}
	var more map[string]json.RawMessage
	if info.Subject != subject || info.Claims(&more) != nil {
		return refused("The provider speaks of two people in one answer.")
	}
	for name, value := range more {
		if claims[name] == nil {
			claims[name] = value
		}
	}
	return nil
}

// maxAge is how long ago a person may have shown the provider who they are, who had to do it again.
const maxAge = 2 * time.Minute

func (c *Client) read(claims map[string]json.RawMessage, s provider.Settings, a asked) (Answer, error) {
	got := Answer{Organization: a.Organization, Next: a.Next, Roles: texts(claims[s.RoleClaim])}
	if vouched(claims, s.Issuer) {
		got.Email = first(texts(claims["email"]))
	}
	if a.Fresh {
		var at float64
		if json.Unmarshal(claims["auth_time"], &at) != nil || c.now().Sub(time.Unix(int64(at), 0)) > maxAge {
			return Answer{}, refused("The provider did not ask you again who you are.")
		}
		got.Fresh = true
	}
	return got, nil
}

// google lets everybody have an account by an address that they could once read, and keeps it when they leave the
// institute. Only those that the institute looks after have hd.
const google = "https://accounts.google.com"

// vouched says whether the provider says that the address is the person's. Entra ID calls it otherwise.
func vouched(claims map[string]json.RawMessage, issuer string) bool {
	verified, said := claims["email_verified"]
	if !said {
		verified = claims["xms_edov"]
	}
	return yes(verified) && (issuer != google || first(texts(claims["hd"])) != "")
}

// yes is a claim that is true, also as a word or a number, as some providers write it.
func yes(raw json.RawMessage) bool {
	return slices.Contains([]string{"true", `"true"`, "1", `"1"`}, string(raw))
}

// texts is a claim of one text or of several.
func texts(raw json.RawMessage) []string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	var many []string
	_ = json.Unmarshal(raw, &many) // none
	return many
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// word is a code of a provider's as it may be shown.
func word(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '_' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, text)
	if text == "" {
		return "no reason given"
	}
	return fmt.Sprintf("%.60s", text)
}
