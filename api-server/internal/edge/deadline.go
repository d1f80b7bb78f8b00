package edge

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// requestTime is how long a request may be worked on. It is less than the server gives an
// answer to leave, so that the caller still learns of it; no statement goes on for nobody.
const requestTime = 50 * time.Second

var errOverdue = fault.New(fault.Unavailable, "overdue", "the request took too long and was given up; send the same request again later")

type deadlineKey struct{}

// withDeadline ends the context of a request that takes too long.
func withDeadline(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		timer := time.AfterFunc(requestTime, func() { cancel(errOverdue) })
		defer timer.Stop()
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, deadlineKey{}, timer)))
	})
}

// Extend gives a request that legitimately takes longer so much time from now on. The
// connection's own deadlines are another matter.
func Extend(ctx context.Context, d time.Duration) {
	if timer, ok := ctx.Value(deadlineKey{}).(*time.Timer); ok && timer.Stop() { // else it is over already
		timer.Reset(d)
	}
}

// late says whether the request's context has ended because its time was over.
func late(r *http.Request) bool { return errors.Is(context.Cause(r.Context()), errOverdue) }

// overdue tells an error that comes of the request's deadline from others.
func overdue(r *http.Request, err error) error {
	if late(r) && fault.KindOf(err) == fault.Internal {
		return errOverdue.Because(err)
	}
	return err
}
