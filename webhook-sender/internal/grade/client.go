// Package grade sends students' marks to LMSes (LTI: Assignment and Grade Services). What is pending is a row with the mark
// (lms.Mark), written in the transaction of the result. A process that dies leaves its marks to be handed out again, so a mark may be
// sent twice, and none is lost; the LMS goes by its time, and takes none that is older than what it has.
package grade

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
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

const (
	timeout    = 10 * time.Second // of a call, as of a webhook
	dialWithin = 5 * time.Second
	largest    = 64 << 10 // bytes of an answer
	assertion  = 5 * time.Minute
	spare      = time.Minute // before a token ends, another is asked for
	maxTokens  = 1000
)

// client calls LMSes.
type client struct {
	http   *http.Client
	policy *egress.Policy
	keys   lms.Keys
	now    clock.Clock

	mu     sync.Mutex
	tokens map[of]token
}

// of is whose token it is. A registration whose settings change has another.
type of struct {
	organization            id.Organization
	registration            id.Registration
	client, address, wanted string
}

type token struct {
	text  string
	until time.Time
}

func newClient(policy *egress.Policy, keys lms.Keys, now clock.Clock) *client {
	transport := policy.Transport(dialWithin)
	transport.MaxIdleConnsPerHost, transport.MaxConnsPerHost, transport.IdleConnTimeout = lms.MaxEach, 4*lms.MaxEach, time.Minute
	transport.MaxResponseHeaderBytes = 64 << 10
	return &client{policy: policy, keys: keys, now: now, tokens: map[of]token{},
		http: egress.Client(transport, timeout)}
}

// trouble is why a mark was not taken.
type trouble struct {
	status int
	cause  string
}

func (t *trouble) Error() string { return t.cause }

func because(status int, format string, args ...any) error {
	return &trouble{status, fmt.Sprintf(format, args...)}
}

// send posts a mark. Its error is a *trouble, or of our own.
func (c *client) send(ctx context.Context, m lms.Mark) (status int, err error) {
	if m.Subject == "" {
		return 0, because(0, "The LMS’s user was forgotten. Once the student opens a link in the LMS again, send the marks again.")
	}
	to, err := scores(m.LineItem)
	if err != nil {
		return 0, because(0, "The LMS gave no address of its marks that can be used.")
	}
	bearer, err := c.token(ctx, m)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(score{Timestamp: m.ScoredAt.UTC().Format("2006-01-02T15:04:05.000Z07:00"), Given: m.Score, Maximum: m.MaxScore,
		Activity: "Completed", Grading: "FullyGraded", User: m.Subject})
	if err != nil {
		return 0, err
	}
	answer, status, err := c.call(ctx, to, "application/vnd.ims.lis.v1.score+json", "Bearer "+bearer, body)
	switch {
	case err != nil:
		return status, err
	case status/100 == 2, status == http.StatusConflict: // it has this one, or a later one
		return status, nil
	case status == http.StatusUnauthorized:
		c.forget(m)
		return status, because(status, "The LMS did not accept its own token. Check that the tool may still use Assignment and Grade Services there.")
	case status == http.StatusForbidden:
		return status, because(status, "The LMS does not let the tool write marks. Allow Assignment and Grade Services for it there.")
	case status == http.StatusNotFound:
		return status, because(status, "The LMS has no such column of marks any more, or does not know the student in its course. If the link was made again, the student has to open it once.")
	}
	return status, because(status, "The LMS answered %d%s.", status, quoted(answer))
}

type score struct {
	Timestamp string         `json:"timestamp"`
	Given     decimal.Number `json:"scoreGiven"`
	Maximum   decimal.Number `json:"scoreMaximum"`
	Activity  string         `json:"activityProgress"`
	Grading   string         `json:"gradingProgress"`
	User      string         `json:"userId"`
}

// scores is the address that takes the marks of a column, whose own may have a query.
func scores(lineItem string) (string, error) {
	u, err := url.Parse(lineItem)
	if err != nil {
		return "", err
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + "/scores"
	u.RawPath = ""
	return u.String(), nil
}

// token asks the LMS for one, with a request that our own key signs, or gives the one at hand.
func (c *client) token(ctx context.Context, m lms.Mark) (string, error) {
	key := of{m.Organization, m.Registration, m.ClientID, m.TokenURL, m.Audience}
	c.mu.Lock()
	t, found := c.tokens[key]
	c.mu.Unlock()
	if found && c.now().Before(t.until) {
		return t.text, nil
	}
	t, err := c.ask(ctx, m)
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

func (c *client) forget(m lms.Mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tokens, of{m.Organization, m.Registration, m.ClientID, m.TokenURL, m.Audience})
}

func (c *client) ask(ctx context.Context, m lms.Mark) (t token, err error) {
	now, audience := c.now(), m.Audience
	if audience == "" {
		audience = m.TokenURL
	}
	signed, err := c.keys.Sign(ctx, jwt.Claims{Issuer: m.ClientID, Subject: m.ClientID, Audience: jwt.Audience{audience}, ID: seal.Token(),
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(assertion))}, now)
	if err != nil {
		return t, err
	}
	form := url.Values{"grant_type": {"client_credentials"}, "client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		"client_assertion": {signed}, "scope": {lms.ScoreScope}}
	answer, status, err := c.call(ctx, m.TokenURL, "application/x-www-form-urlencoded", "", []byte(form.Encode()))
	if err != nil {
		return t, err
	}
	var said struct {
		Token string `json:"access_token"`
		Lives int    `json:"expires_in"`
		Error string `json:"error"`
	}
	wrong := json.Unmarshal(answer, &said) != nil
	if status != http.StatusOK {
		return t, because(status, "The LMS gave no token (%d%s). Check the client id, the access token URL and its audience in the registration, and our public keyset URL in the LMS.", status, quoted([]byte(said.Error)))
	}
	if wrong || said.Token == "" {
		return t, because(status, "The LMS’s answer at the access token URL is no token.")
	}
	life := time.Duration(min(max(said.Lives, 0), 24*60*60)) * time.Second
	return token{said.Token, now.Add(life - spare)}, nil
}

// call posts a body.
func (c *client) call(ctx context.Context, address, mediaType, authorization string, body []byte) (answer []byte, status int, err error) {
	if _, err := c.policy.CheckURL("address", address); err != nil {
		return nil, 0, because(0, "The LMS’s address is not called: %v.", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, 0, because(0, "The LMS’s address cannot be called.")
	}
	r.Header.Set("Content-Type", mediaType)
	r.Header.Set("Accept", "application/json")
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	res, err := c.http.Do(r)
	if err != nil {
		return nil, 0, because(0, "The LMS at %s %s.", r.URL.Host, egress.Explain(err, timeout))
	}
	defer func() { _ = res.Body.Close() }()
	answer, err = io.ReadAll(io.LimitReader(res.Body, largest))
	if err != nil {
		return nil, res.StatusCode, because(res.StatusCode, "The LMS at %s %s.", r.URL.Host, egress.Explain(err, timeout))
	}
	return answer, res.StatusCode, nil
}

// quoted is the beginning of what an LMS says, as it may be shown.
func quoted(answer []byte) string {
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
