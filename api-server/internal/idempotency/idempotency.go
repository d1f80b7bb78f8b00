// Package idempotency answers a POST that carries an Idempotency-Key once: whoever sends
// the same request with the same key again within a day gets the first answer, also while
// the first is still being worked on.
//
// The first request takes the key by a row in PostgreSQL, works, and stores its answer. Kept are the
// answers that nothing but the request decided: what was done (2xx), and refusals of the body itself.
// Whatever else is refused may succeed later, so it is worked on again. What is kept of an organization is
// bounded (reference: conventions#repeats). A process that dies stops saying that it is alive, and
// whoever asks next takes the key over.
package idempotency

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/replay"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Header names the key, Replayed marks an answer that was given before.
const (
	Header   = "Idempotency-Key"
	Replayed = "Idempotency-Replayed"
)

// Middleware keeps first answers.
type Middleware struct {
	DB    *pg.DB
	Clock clock.Clock
	Box   *seal.Box
	// Organization is whom the request speaks for: keys of two organizations never meet.
	Organization func(*http.Request) id.Organization
	Bounds       replay.Bounds // of what is kept for an organization
}

const (
	patience = 25 * time.Second // how long a repeat waits for the first answer
	maxBody  = 1 << 20          // of requests and answers; what is larger is not kept

	// A larger refusal is not kept: it is many times as long as what was sent, and the same again.
	maxRefusal = 4 << 10
)

var keyForm = regexp.MustCompile(`^[\x21-\x7e]{1,255}$`)

var (
	errKey = fault.New(fault.Invalid, "invalid_idempotency_key",
		"Idempotency-Key: send 1 to 255 printable ASCII characters without blanks, such as a UUID")
	errBusy = fault.New(fault.Conflict, "idempotency_key_in_use",
		"the first request with this Idempotency-Key is still being worked on; send the same request again later")
)

// Middleware does it for the requests of next that change something.
func (k *Middleware) Middleware(next http.Handler) http.Handler {
	return edge.Handle(func(w http.ResponseWriter, r *http.Request) error {
		key := r.Header.Get(Header)
		if key == "" || r.Method != http.MethodPost && r.Method != http.MethodDelete {
			next.ServeHTTP(w, r)
			return nil
		}
		if !keyForm.MatchString(key) {
			return errKey
		}
		sums, whole, err := fingerprint(r)
		if err != nil {
			return err
		}
		if !whole { // such an upload is safe to repeat by itself
			next.ServeHTTP(w, r)
			return nil
		}
		return k.once(w, r, next, replay.Attempt{Organization: k.Organization(r), Key: key, Request: sums[0], Holder: uuid.New()}, sums)
	})
}

// meaning begins the headers that say what is to be done with a body.
const meaning = "X-Roster-"

// place is where the answer is sealed for.
func place(a replay.Attempt) string {
	return fmt.Sprintf("idempotency_keys/%d/%s", a.Organization, a.Key)
}

// fingerprint reads the body and puts it back. whole is false when it is too large. A repeat may meet another version than the
// first request, so what is in sums stays as it is: the first is written, and all are known.
func fingerprint(r *http.Request) (sums [][]byte, whole bool, err error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, false, nil // for the handler to say
	}
	if err != nil {
		return nil, false, fault.New(fault.Invalid, "body_unreadable", "the body broke off; send the whole request again").Because(err)
	}
	rest := r.Body
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	// The second is that of versions which told a path from the same one with a slash at its end.
	for _, path := range []string{strings.TrimSuffix(r.URL.Path, "/"), r.URL.Path} {
		sum := sha256.New()
		fmt.Fprintf(sum, "%s %s\n%s\n", r.Method, path, r.URL.RawQuery)
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			if strings.HasPrefix(name, meaning) {
				fmt.Fprintf(sum, "%s: %q\n", name, r.Header[name])
			}
		}
		sum.Write(body)
		sums = append(sums, sum.Sum(nil))
	}
	return sums, len(body) <= maxBody, nil
}

// once works on the request if nobody did, and else answers as the first time. sums are its fingerprints.
func (k *Middleware) once(w http.ResponseWriter, r *http.Request, next http.Handler, a replay.Attempt, sums [][]byte) error {
	over := time.NewTimer(patience)
	defer over.Stop()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 500*time.Millisecond) {
		found, mine, err := replay.Take(r.Context(), k.DB, a, k.Clock())
		switch {
		case err != nil:
			return err
		case mine:
			return k.work(w, r, next, a)
		case !slices.ContainsFunc(sums, func(sum []byte) bool { return bytes.Equal(found.Request, sum) }):
			edge.Refuse(w, r, http.StatusUnprocessableEntity, "idempotency_key_reused",
				"Idempotency-Key: it was used for another request; use a new key for each request")
			return nil
		case found.Status != nil:
			return k.replay(w, r, a, found)
		}
		select {
		case <-time.After(pause):
		case <-over.C:
			return errBusy
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
}

func (k *Middleware) replay(w http.ResponseWriter, r *http.Request, a replay.Attempt, found replay.Found) error {
	body, err := k.Box.Open(r.Context(), found.Sealed, place(a))
	if err != nil {
		return err
	}
	edge.Annotate(r.Context(), "idempotency_key", "replayed")
	h := w.Header()
	h.Set("Content-Type", found.ContentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set(Replayed, "true")
	w.WriteHeader(*found.Status)
	_, _ = w.Write(body) // the client may be gone
	return nil
}

// work lets next answer, and keeps the answer.
func (k *Middleware) work(w http.ResponseWriter, r *http.Request, next http.Handler, a replay.Attempt) error {
	stop := k.live(r.Context(), a)
	copied := &copier{ResponseWriter: w}
	settled := false
	defer func() {
		stop()
		if !settled { // a panic, or an answer that is not kept
			k.drop(r.Context(), a)
		}
	}()
	next.ServeHTTP(copied, r)
	if !copied.kept(edge.Refusal(r.Context())) {
		return nil
	}
	ctx, cancel := settling(r.Context())
	defer cancel()
	sealed, err := k.Box.Seal(ctx, copied.body.Bytes(), place(a))
	if err == nil {
		err = replay.Keep(ctx, k.DB, a, copied.status, w.Header().Get("Content-Type"), sealed)
	}
	settled = err == nil
	if err != nil { // the answer has left: what can still be done is to let the key go
		edge.Annotate(r.Context(), "idempotency_key", err.Error())
		return nil
	}
	if rand.Float64() < k.Bounds.Share(len(sealed)) {
		if err := replay.Trim(ctx, k.DB, a.Organization, k.Bounds); err != nil { // the next one tries again
			edge.Annotate(r.Context(), "idempotency_key", err.Error())
		}
	}
	return nil
}

// live says again and again that the work goes on, until stop.
func (k *Middleware) live(ctx context.Context, a replay.Attempt) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range clock.Ticks(ctx, replay.Beat) {
			_ = replay.Alive(ctx, k.DB, a) // the next beat tries again
		}
	}()
	return func() { cancel(); <-done }
}

// drop lets the next request with the key begin again.
func (k *Middleware) drop(ctx context.Context, a replay.Attempt) {
	ctx, cancel := settling(ctx)
	defer cancel()
	if err := replay.Release(ctx, k.DB, a); err != nil {
		edge.Annotate(ctx, "idempotency_key", err.Error()) // it is free after a silence
	}
}

// settling outlives a client that has gone.
func settling(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

// copier keeps a copy of an answer.
type copier struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
	long   bool
}

// WriteHeader implements http.ResponseWriter.
func (c *copier) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (c *copier) Write(p []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	if c.long = c.long || c.body.Len()+len(p) > maxBody; !c.long {
		c.body.Write(p)
	}
	return c.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the writer.
func (c *copier) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// kept says whether the answer is one that a repeat may get: refusal is what it was refused with. One that
// was made is kept also where the client was gone by then: it is the one who will ask again.
func (c *copier) kept(refusal error) bool {
	switch {
	case c.long || c.status < 200:
		return false
	case c.status < 300:
		return true
	}
	return fault.Lasts(refusal) && c.body.Len() <= maxRefusal
}
