package client_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/registrar-dev/registrar/api-server/client"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// reply is what a request is answered with; status 0 breaks the connection.
type reply struct {
	status     int
	retryAfter string
}

// scripted answers requests one after the other, and notes them.
type scripted struct {
	replies []reply
	keys    []string // of idempotency
	bodies  []string
}

func (s *scripted) Do(r *http.Request) (*http.Response, error) {
	s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
	body := ""
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(text)
	}
	s.bodies = append(s.bodies, body)
	is := s.replies[min(len(s.keys), len(s.replies))-1]
	if is.status == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{StatusCode: is.status, Header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {is.retryAfter}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"status": "error", "error": "no", "code": "no"}`))}, nil
}

func TestWhatIsSentAgain(t *testing.T) {
	t.Parallel()
	asha := client.ProvisionRequest{Email: "asha@north-institute.org", FirstName: "Asha"}
	change := func(params *client.ProvisionStudentParams) func(context.Context, *client.ClientWithResponses) error {
		return func(ctx context.Context, c *client.ClientWithResponses) error {
			_, err := c.ProvisionStudentWithResponse(ctx, params, asha)
			return err
		}
	}
	read := func(ctx context.Context, c *client.ClientWithResponses) error {
		_, err := c.PingWithResponse(ctx)
		return err
	}
	once := func(ctx context.Context, c *client.ClientWithResponses) error {
		_, err := c.ImportRosterWithBodyWithResponse(ctx, nil, "text/csv", io.MultiReader(strings.NewReader("email\n")))
		return err
	}
	for name, c := range map[string]struct {
		replies []reply
		options []client.ClientOption
		call    func(context.Context, *client.ClientWithResponses) error
		within  time.Duration
		sent    int
		status  int           // of the Fault; 0 for none
		took    time.Duration // at least
		key     string        // "random", "" or the caller's own
	}{
		"a change":                        {replies: []reply{{status: 503}, {}, {status: 200}}, call: change(nil), sent: 3, key: "random"},
		"a read":                          {replies: []reply{{}, {status: 200}}, call: read, sent: 2},
		"with the caller's own key":       {replies: []reply{{status: 500}, {status: 200}}, call: change(&client.ProvisionStudentParams{IdempotencyKey: new("order-7")}), sent: 2, key: "order-7"},
		"as late as the answer asks":      {replies: []reply{{429, "7"}, {status: 200}}, call: read, sent: 2, took: 7 * time.Second},
		"until five have failed":          {replies: []reply{{status: 503}}, call: change(nil), sent: 5, status: 503, key: "random"},
		"while the first one goes on":     {replies: []reply{{}, {status: 409}, {status: 200}}, call: change(nil), sent: 3, key: "random"},
		"not a conflict":                  {replies: []reply{{status: 409}}, call: change(nil), sent: 1, status: 409, key: "random"},
		"not what is refused":             {replies: []reply{{status: 403}}, call: change(nil), sent: 1, status: 403, key: "random"},
		"not where nobody wants it":       {replies: []reply{{status: 503}}, options: []client.ClientOption{client.WithAttempts(1)}, call: change(nil), sent: 1, status: 503},
		"not what can be read once":       {replies: []reply{{status: 503}}, call: once, sent: 1, status: 503},
		"not after the caller's deadline": {replies: []reply{{429, "60"}}, call: read, within: 10 * time.Second, sent: 1, status: 429},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(c.within, time.Hour))
				defer cancel()
				s := &scripted{replies: c.replies}
				registrar, err := client.New("https://registrar.example", "reg_key", append([]client.ClientOption{client.WithHTTPClient(s)}, c.options...)...)
				check.NoError(check.Now(t), err, "")
				began := time.Now()
				err = c.call(ctx, registrar)
				check.Equal(check.Now(t), "number of requests", len(s.keys), c.sent, "%v", err)
				status := 0
				if fault, ok := errors.AsType[*client.Fault](err); ok {
					status = fault.Status
				}
				check.Equal(t, "status of the refusal", status, c.status, "%v", err)
				check.True(t, "it takes as long as it must", time.Since(began) >= c.took, "%s", time.Since(began))
				for i, key := range s.keys {
					check.Equal(t, "key", key, s.keys[0], "of request %d", i)
					check.Equal(t, "body", s.bodies[i], s.bodies[0], "of request %d", i)
				}
				if c.key == "random" {
					check.True(t, "there is a key", len(s.keys[0]) >= 20, "%q", s.keys[0])
				} else {
					check.Equal(t, "key", s.keys[0], c.key, "")
				}
			})
		})
	}
}

func TestAPauseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &scripted{replies: []reply{{429, "60"}}}
		c, err := client.New("https://registrar.example", "reg_key", client.WithHTTPClient(s))
		check.NoError(check.Now(t), err, "")
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		_, err = c.PingWithResponse(ctx)
		check.True(t, "it is canceled", errors.Is(err, context.Canceled), "%v", err)
		check.Equal(t, "it took", time.Since(began), time.Second, "")
		check.Equal(t, "number of requests", len(s.keys), 1, "")
	})
}
