// Package advantage calls the services of LMSes (LTI Advantage), for which it gets tokens with requests that our own keys sign. An LMS
// chooses its addresses, so all calls go through the guard of receiver URLs.
package advantage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Timeout is that of a call, as of a webhook.
const Timeout = 10 * time.Second

const (
	dialWithin = 5 * time.Second
	largest    = 64 << 10 // bytes of an answer, unless a request says otherwise
	assertion  = 5 * time.Minute
	spare      = time.Minute // before a token ends, another is asked for
	maxTokens  = 1000
)

// Client calls LMSes.
type Client struct {
	http   *http.Client
	policy *egress.Policy
	keys   lms.Keys
	now    clock.Clock

	mu     sync.Mutex
	tokens map[of]token
}

// of is whose token it is, and for what. A registration whose settings change has another.
type of struct {
	lms.Services

	scope string
}

type token struct {
	text  string
	until time.Time
}

// New makes a Client that calls where policy lets it.
func New(policy *egress.Policy, keys lms.Keys, now clock.Clock) *Client {
	transport := policy.Transport(dialWithin)
	transport.MaxIdleConnsPerHost, transport.MaxConnsPerHost, transport.IdleConnTimeout = lms.MaxEach, 4*lms.MaxEach, time.Minute
	transport.MaxResponseHeaderBytes = 64 << 10
	return &Client{policy: policy, keys: keys, now: now, tokens: map[of]token{}, http: egress.Client(transport, Timeout)}
}

// Trouble is why a call came to nothing: a sentence that says what to do.
type Trouble struct {
	Status int // of HTTP; 0: there was no answer
	Cause  string
}

func (t *Trouble) Error() string { return t.Cause }

// Because makes a *Trouble.
func Because(status int, format string, args ...any) error {
	return &Trouble{status, fmt.Sprintf(format, args...)}
}

// Token asks the LMS for one that is good for the scope, or gives the one at hand. Its error is a *Trouble, or of our own.
func (c *Client) Token(ctx context.Context, s lms.Services, scope string) (string, error) {
	key := of{s, scope}
	c.mu.Lock()
	t, found := c.tokens[key]
	c.mu.Unlock()
	if found && c.now().Before(t.until) {
		return t.text, nil
	}
	t, err := c.ask(ctx, s, scope)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.tokens) >= maxTokens {
		clear(c.tokens)
	}
	c.tokens[key] = t
	return t.text, nil
}

// Forget drops a token that the LMS has not accepted.
func (c *Client) Forget(s lms.Services, scope string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tokens, of{s, scope})
}

func (c *Client) ask(ctx context.Context, s lms.Services, scope string) (t token, err error) {
	now, audience := c.now(), s.Audience
	if audience == "" {
		audience = s.TokenURL
	}
	signed, err := c.keys.Sign(ctx, jwt.Claims{Issuer: s.ClientID, Subject: s.ClientID, Audience: jwt.Audience{audience}, ID: seal.Token(),
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(assertion))}, now)
	if err != nil {
		return t, err
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		"client_assertion": {signed}, "scope": {scope}}
	answer, err := c.Call(ctx, Request{Method: http.MethodPost, Address: s.TokenURL, ContentType: "application/x-www-form-urlencoded", Body: []byte(form.Encode())})
	if err != nil {
		return t, err
	}
	var said struct {
		Token string `json:"access_token"`
		Lives int    `json:"expires_in"`
		Error string `json:"error"`
	}
	wrong := json.Unmarshal(answer.Body, &said) != nil
	if answer.Status != http.StatusOK {
		return t, Because(answer.Status, "The LMS gave no token (%d%s). Check the client id, the access token URL and its audience in the registration, and our public keyset URL in the LMS.", answer.Status, Quoted([]byte(said.Error)))
	}
	if wrong || said.Token == "" {
		return t, Because(answer.Status, "The LMS’s answer at the access token URL is no token.")
	}
	life := time.Duration(min(max(said.Lives, 0), 24*60*60)) * time.Second
	return token{said.Token, now.Add(life - spare)}, nil
}

// Request is a call. Fields that are empty are not sent.
type Request struct {
	Method, Address     string
	ContentType, Accept string // Accept: application/json where it is empty
	Token               string
	Body                []byte
	Largest             int64 // bytes of an answer; 0 is 64 KiB, and what is more is cut off
}

// Answer is what an LMS says to a Request, whatever its status.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Call makes one. Its error is a *Trouble.
func (c *Client) Call(ctx context.Context, request Request) (a Answer, err error) {
	if _, err := c.policy.CheckURL("address", request.Address); err != nil {
		return a, Because(0, "The LMS’s address is not called: %v.", err)
	}
	r, err := http.NewRequestWithContext(ctx, request.Method, request.Address, bytes.NewReader(request.Body))
	if err != nil {
		return a, Because(0, "The LMS’s address cannot be called.")
	}
	r.Header.Set("Accept", "application/json")
	for name, value := range map[string]string{"Content-Type": request.ContentType, "Accept": request.Accept} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if request.Token != "" {
		r.Header.Set("Authorization", "Bearer "+request.Token)
	}
	res, err := c.http.Do(r)
	if err != nil {
		return a, Because(0, "The LMS at %s %s.", r.URL.Host, egress.Explain(err, Timeout))
	}
	defer func() { _ = res.Body.Close() }()
	most := request.Largest
	if most == 0 {
		most = largest
	}
	a = Answer{Status: res.StatusCode, Header: res.Header}
	if a.Body, err = io.ReadAll(io.LimitReader(res.Body, most)); err != nil {
		return a, Because(res.StatusCode, "The LMS at %s %s.", r.URL.Host, egress.Explain(err, Timeout))
	}
	return a, nil
}

// Quoted is the beginning of what an LMS says, as it may be shown after a colon; "" for nothing.
func Quoted(answer []byte) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, string(answer[:min(len(answer), 200)]))
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return ": " + text
}
