// Package fault is the one error model of Registrar.
//
// A domain rule or a flow returns a *Error when the caller can do something about
// it; every other error is an internal one, whose text never leaves the process.
// Each edge (HTTP, queue, operator) maps the eight Kinds in one table of its own.
package fault

import (
	"errors"
	"fmt"
	"slices"
)

// Kind says whose fault it is and whether a repeat can help. The set is closed.
type Kind uint8

// The eight kinds. The zero value is Internal, so a forgotten kind never leaks a text.
const (
	Internal        Kind = iota // our fault; safe to repeat
	Invalid                     // the request is wrong; repeating it unchanged cannot help
	Unauthenticated             // no key, a wrong key or a revoked one
	Forbidden                   // a valid caller who may not do this
	NotFound                    // no such thing in the caller's organization
	Conflict                    // the thing exists, but its state refuses the request
	TooLarge                    // more than a stated limit
	Unavailable                 // a dependency is away or overloaded; repeat later
)

// Kinds lists every kind, for the tables that must map all of them.
func Kinds() []Kind {
	return []Kind{Internal, Invalid, Unauthenticated, Forbidden, NotFound, Conflict, TooLarge, Unavailable}
}

// String names the kind in logs and metrics.
func (k Kind) String() string {
	switch k {
	case Invalid:
		return "invalid"
	case Unauthenticated:
		return "unauthenticated"
	case Forbidden:
		return "forbidden"
	case NotFound:
		return "not_found"
	case Conflict:
		return "conflict"
	case TooLarge:
		return "too_large"
	case Unavailable:
		return "unavailable"
	case Internal:
		return "internal"
	}
	return "internal"
}

// Error is a fault that the caller may read.
type Error struct {
	Kind    Kind
	Code    string   // stable and documented, e.g. "unknown_course_type"
	Field   string   // the request field at fault, "" when none is
	Message string   // names the field and the fix; safe to show
	Err     error    // the cause, for logs alone
	Also    []*Error // found beside it, in the order of the request
	Lasts   bool     // nothing but the request decided it: sent again, it is refused again
}

// Error implements error. It is the message alone: the cause stays inside.
func (e *Error) Error() string { return e.Message }

// Unwrap gives errors.Is and errors.As the cause.
func (e *Error) Unwrap() error { return e.Err }

// All lists this fault and the ones found beside it, first to last.
func (e *Error) All() []*Error {
	head := *e
	head.Also = nil
	return append([]*Error{&head}, e.Also...)
}

// New makes a fault that concerns no single field.
func New(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Field makes an Invalid fault about one request field.
func Field(field, code, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Because returns a copy of e that remembers its cause.
func (e *Error) Because(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

// Lasting marks the faults of err, if it has any, as ones that nothing but the request decided.
func Lasting(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	all := e.All()
	for i, one := range all {
		marked := *one
		marked.Lasts = true
		all[i] = &marked
	}
	head := all[0]
	head.Also = all[1:]
	return head
}

// Lasts says whether one of the faults of err lasts, which is enough for the request to be refused
// again.
func Lasts(err error) bool {
	var e *Error
	return errors.As(err, &e) && slices.ContainsFunc(e.All(), func(one *Error) bool { return one.Lasts })
}

// KindOf gives the kind of err: Internal for whatever is no fault.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Internal
}

// Has says whether err is a fault with the code.
func Has(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// Most is how many faults a List keeps: a request with very many entries that are wrong
// must not become an answer of many times its size.
const Most = 100

// List gathers the faults of one request, so that a caller learns all of them at once;
// beyond the first Most they are dropped. The zero value is ready.
type List struct{ all []*Error }

// Add adds err if it is a fault. It returns err when it is neither nil nor a fault.
func (l *List) Add(err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	if room := Most - len(l.all); room > 0 {
		all := e.All()
		l.all = append(l.all, all[:min(len(all), room)]...)
	}
	return nil
}

// Copy is a list of its own that begins with what was found.
func (l *List) Copy() *List { return &List{all: slices.Clone(l.all)} }

// Has says whether a fault of the field was found.
func (l *List) Has(field string) bool {
	return slices.ContainsFunc(l.all, func(e *Error) bool { return e.Field == field })
}

// Err is nil when nothing was found, else the first fault with the others in Also.
func (l *List) Err() error {
	if len(l.all) == 0 {
		return nil
	}
	first := *l.all[0]
	first.Also = append([]*Error(nil), l.all[1:]...)
	return &first
}
