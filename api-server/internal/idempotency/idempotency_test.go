package idempotency_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/api-server/internal/idempotency"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/replay"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
)

// A client that hangs up while it is answered will ask again, and nothing but the first
// answer has the password that was generated.
func TestTheAnswerToAClientThatHungUpIsKept(t *testing.T) {
	t.Parallel()
	k := newMiddleware(t)
	times := 0
	ask := func(ctx context.Context, hangUp func()) *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		k.Middleware(edge.Handle(func(w http.ResponseWriter, _ *http.Request) error {
			times++
			hangUp()
			return edge.JSON(w, http.StatusCreated, map[string]int{"time": times})
		})).ServeHTTP(answer, request(ctx))
		return answer
	}
	ctx, cancel := context.WithCancel(t.Context())
	first := ask(ctx, cancel)
	again := ask(t.Context(), func() {})
	if check.Equal(t, "times", times, 1, "worked on %d times; answered %d %s, and first %s", times, again.Code, again.Body, first.Body) &&
		check.Equal(t, "again.Code", again.Code, http.StatusCreated, "worked on %d times; answered %d %s, and first %s", times, again.Code, again.Body, first.Body) {
		check.Equal(t, "the answer", again.Body.String(), first.Body.String(), "worked on %d times; answered %d %s, and first %s", times, again.Code, again.Body, first.Body)
	}
}

// Work that was given up with the client has no answer that a repeat could get.
func TestWorkThatWasGivenUpIsDoneAnew(t *testing.T) {
	t.Parallel()
	k := newMiddleware(t)
	ctx, cancel := context.WithCancel(t.Context())
	k.Middleware(edge.Handle(func(_ http.ResponseWriter, r *http.Request) error {
		cancel()
		return r.Context().Err()
	})).ServeHTTP(httptest.NewRecorder(), request(ctx))
	answer := httptest.NewRecorder()
	k.Middleware(edge.Handle(func(w http.ResponseWriter, _ *http.Request) error {
		return edge.JSON(w, http.StatusCreated, "done")
	})).ServeHTTP(answer, request(t.Context()))
	if check.Equal(t, "answer.Code", answer.Code, http.StatusCreated, "answered %d %s", answer.Code, answer.Body) {
		check.Equal(t, "Idempotency-Replayed", answer.Header().Get(idempotency.Replayed), "", "answered %d %s", answer.Code, answer.Body)
	}
}

// However many requests an organization sends with keys, what is kept of them is bounded, and the last
// answers are among it. Reference: conventions#repeats, limits#fields.
func TestWhatIsKeptIsBounded(t *testing.T) {
	t.Parallel()
	k := newMiddleware(t)
	k.Bounds = replay.Bounds{Answers: 5, Bytes: 1 << 20}
	times := 0
	handler := k.Middleware(edge.Handle(func(w http.ResponseWriter, _ *http.Request) error {
		times++
		return edge.JSON(w, http.StatusCreated, map[string]int{"time": times})
	}))
	ask := func(n int) string {
		r, answer := request(t.Context()), httptest.NewRecorder()
		r.Header.Set(idempotency.Header, fmt.Sprint("order-", n))
		handler.ServeHTTP(answer, r)
		return answer.Header().Get(idempotency.Replayed)
	}
	for n := range 20 {
		ask(n)
	}
	var kept int
	if err := k.DB.QueryRow(t.Context(), `SELECT count(*) FROM idempotency_keys`).Scan(&kept); err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "kept", kept, 5, "answers of 20 requests")
	check.Equal(t, "the last", ask(19), "true", "it is not replayed")
	check.Equal(t, "the first", ask(0), "", "it is still there")
}

func request(ctx context.Context) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{}`)).WithContext(ctx)
	r.Header.Set(idempotency.Header, "order-7")
	return r
}

func newMiddleware(t *testing.T) *idempotency.Middleware {
	t.Helper()
	box := sealtest.New(t)
	f := flowtest.New(t)
	org := f.Organization("o").ID
	return &idempotency.Middleware{DB: f.Database, Clock: clock.System, Box: box, Organization: func(*http.Request) id.Organization { return org },
		Bounds: replay.Bounds{Answers: 1000, Bytes: 1 << 20}}
}
