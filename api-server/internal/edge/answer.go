package edge

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// JSON writes body with the status.
func JSON(w http.ResponseWriter, status int, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	writeText(w, status, append(text, '\n'))
	return nil
}

// writeText writes a whole body that is JSON already.
func writeText(w http.ResponseWriter, status int, text []byte) {
	describe(w)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that has gone is no fault
}

// describe sets the headers of every JSON answer.
func describe(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// errorBody is the body of every error (reference: errors#error-body).
type errorBody struct {
	Status string      `json:"status"`
	Error  string      `json:"error"`
	Code   string      `json:"code"`
	Field  string      `json:"field,omitempty"`
	Errors []errorItem `json:"errors,omitempty"` // of a request that is refused as wrong: all of them
}

type errorItem struct {
	Error string `json:"error"`
	Code  string `json:"code"`
	Field string `json:"field,omitempty"`
}

// statusOf is the one place where a kind of fault becomes an HTTP status.
func statusOf(k fault.Kind) int {
	switch k {
	case fault.Invalid:
		return http.StatusBadRequest
	case fault.Unauthenticated:
		return http.StatusUnauthorized
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Conflict:
		return http.StatusConflict
	case fault.TooLarge:
		return http.StatusRequestEntityTooLarge
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	case fault.Internal:
	}
	return http.StatusInternalServerError
}

// refusal is a fault whose status no kind has.
type refusal struct {
	status int
	fault  *fault.Error
}

// Error implements error.
func (r *refusal) Error() string { return r.fault.Error() }

// Unwrap gives errors.As the fault.
func (r *refusal) Unwrap() error { return r.fault }

// answeredWith is the status of an error's answer.
func answeredWith(err error) int {
	var r *refusal
	if errors.As(err, &r) {
		return r.status
	}
	return statusOf(shown(err).Kind)
}

// StatusGone is what logs and metrics show for a request that was given up because its
// client went away.
const StatusGone = 499

var (
	errInternal = fault.New(fault.Internal, "internal", "unexpected error; nothing is wrong with the request, and it is safe to send it again as it is")
	errNoText   = fault.New(fault.Invalid, "invalid", "the request contains a NUL character, or text that is not UTF-8; send it without")
	errAway     = fault.New(fault.Unavailable, "unavailable", "the service cannot reach its database; send the same request again later")
)

// writeFault writes err as the body of an error. What is no fault, or an internal one,
// shows nothing of itself; its text goes to the access log.
func writeFault(w http.ResponseWriter, r *http.Request, err error) {
	status, f := decide(w, r, err)
	if status == StatusGone {
		w.WriteHeader(status)
		return
	}
	_ = JSON(w, status, bodyOf(f)) // strings always encode
}

// Explain is writeFault for a caller that writes the body itself: the answer's status and the
// text that may be shown.
func Explain(w http.ResponseWriter, r *http.Request, err error) (status int, text string) {
	status, f := decide(w, r, err)
	return status, f.Message
}

// decide is what err is answered with. A body that did not arrive is the cause of whatever failed.
func decide(w http.ResponseWriter, r *http.Request, err error) (status int, f *fault.Error) {
	if why := failedArrival(r); why != nil {
		err = why
	}
	err = overdue(r, err)
	note(r, err)
	f = prepare(w, err)
	if status = answeredWith(err); gone(r, err, status) {
		status = StatusGone
	}
	return status, f
}

// gone says whether an answer is nobody's failure, because its client has hung up: what was under way
// for it ends with errors of all kinds.
func gone(r *http.Request, err error, status int) bool {
	if errors.Is(err, errHungUp) {
		return true
	}
	if rec, ok := r.Context().Value(recordKey{}).(*record); ok && rec.panicked {
		return false
	}
	return r.Context().Err() != nil && !late(r) && (status >= http.StatusInternalServerError || errors.Is(err, context.Canceled))
}

// Refuse answers with a status that no kind of fault has.
func Refuse(w http.ResponseWriter, r *http.Request, status int, code, text string) {
	note(r, errors.New(text))
	_ = JSON(w, status, errorBody{Status: "error", Error: text, Code: code}) // strings always encode
}

// RetryAfter says when the request may come again, in whole seconds.
func RetryAfter(w http.ResponseWriter, d time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int((d+time.Second-1)/time.Second))))
}

// prepare is what of err may be shown, with its headers set.
func prepare(w http.ResponseWriter, err error) *fault.Error {
	f := shown(err)
	if f.Kind == fault.Unauthenticated {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if f.Kind == fault.Unavailable && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfterSeconds))
	}
	return f
}

const retryAfterSeconds = 2

func shown(err error) *fault.Error {
	var f *fault.Error
	if errors.As(err, &f) && f.Kind != fault.Internal {
		return f
	}
	switch {
	case pg.Away(err):
		return errAway
	case pg.Unreadable(err):
		return errNoText
	}
	return errInternal
}

func bodyOf(f *fault.Error) errorBody {
	body := errorBody{Status: "error", Error: f.Message, Code: f.Code, Field: f.Field}
	if f.Kind == fault.Invalid {
		for _, e := range f.All() {
			body.Errors = append(body.Errors, errorItem{e.Message, e.Code, e.Field})
		}
	}
	return body
}
