package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// New makes a client of the API at baseURL, which may end in /api/v1/, for the
// organization of the key. It sends requests up to five times: see [WithAttempts].
func New(baseURL, key string, options ...ClientOption) (*ClientWithResponses, error) {
	if key == "" {
		return nil, errors.New("registrar: the API key is empty")
	}
	server := strings.TrimSuffix(strings.TrimRight(baseURL, "/"), "/api/v1")
	return NewClientWithResponses(server, append(options[:len(options):len(options)], authorized(key))...)
}

// authorized sends the key with every request, repeats requests and makes errors of refusals.
func authorized(key string) ClientOption {
	return func(c *Client) error {
		again, ok := c.Client.(repeating)
		if !ok {
			again = repeating{c.Client, attempts}
		}
		if again.next == nil {
			again.next = http.DefaultClient
		}
		c.Client = refusing{again}
		c.RequestEditors = append(c.RequestEditors, func(_ context.Context, r *http.Request) error {
			r.Header.Set("X-API-Key", key)
			return nil
		})
		return nil
	}
}

// Fault is an answer of 400 and above.
type Fault struct {
	Status    int    `json:"-"`     // of HTTP
	Code      string `json:"code"`  // stable, such as read_only_key; "" when it was not Registrar that answered
	Message   string `json:"error"` // for people: what is wrong and how to put it right
	Field     string `json:"field"` // of the request, where one is at fault
	RequestID string `json:"-"`     // to quote when asking about the request

	// RetryAfter is how long the answer asks to wait, 0 when it does not.
	RetryAfter time.Duration `json:"-"`
}

func (f *Fault) Error() string {
	return fmt.Sprintf("registrar: %d %s: %s", f.Status, cmp.Or(f.Code, http.StatusText(f.Status)), f.Message)
}

// Retry says whether the same request may succeed later than the client itself has tried: after too many
// requests, and after an error of the server. Anything else has to be changed first.
func (f *Fault) Retry() bool {
	return f.Status == http.StatusTooManyRequests || f.Status >= http.StatusInternalServerError
}

// refusing hands requests on and makes a Fault of answers that are refusals.
type refusing struct{ next HttpRequestDoer }

// mostOfFault is what is read of a refusal, in bytes.
const mostOfFault = 1 << 20

// Do implements HttpRequestDoer.
func (d refusing) Do(r *http.Request) (*http.Response, error) {
	res, err := d.next.Do(r)
	if err != nil || res.StatusCode < http.StatusBadRequest {
		return res, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(res.Body, mostOfFault))
	if err != nil {
		return nil, err
	}
	f := &Fault{}
	if json.Unmarshal(text, f) != nil { // a proxy answered
		f = &Fault{Message: strings.TrimSpace(string(text))}
	}
	f.Status, f.RequestID, f.RetryAfter = res.StatusCode, res.Header.Get("X-Request-Id"), retryAfter(res)
	return nil, f
}

// Student is what the API says of the student, whether the account is new or not.
func (r *ProvisionStudentResponse) Student() *Provisioned { return cmp.Or(r.JSON201, r.JSON200) }

// Work is the assignment, whether it was made now or was there.
func (r *AssignWorkResponse) Work() *Assigned { return cmp.Or(r.JSON201, r.JSON200) }

// Run is the import, whether it was applied or is held for a person to look at.
func (r *ImportRosterResponse) Run() *RosterRun { return cmp.Or(r.JSON200, r.JSON202) }

// Lookup finds one student by email; a [*Fault] with the status 404 says that the
// organization has none.
func (c *ClientWithResponses) Lookup(ctx context.Context, email string) (*StudentLookup, error) {
	answer, err := c.StudentsWithResponse(ctx, &StudentsParams{Email: &email})
	if err != nil {
		return nil, err
	}
	if answer.JSON200 == nil {
		return nil, unexpected(answer.HTTPResponse)
	}
	found, err := answer.JSON200.AsStudentLookup()
	if err != nil {
		return nil, err
	}
	return &found, nil
}

// unexpected is the error of an answer that is neither of those documented nor a refusal.
func unexpected(res *http.Response) error {
	return fmt.Errorf("registrar: unexpected answer %s of %s", res.Status, res.Request.URL.Path)
}
