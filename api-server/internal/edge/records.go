package edge

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// ReadLargeBody is ReadBody for a body of at most maxMiB MiB.
func ReadLargeBody(w http.ResponseWriter, r *http.Request, maxMiB int) (*Body, error) {
	text, err := readUpTo(w, r, maxMiB)
	if err != nil {
		return nil, err
	}
	fields, err := parseObject(text)
	if err != nil {
		return nil, fault.Lasting(explainContentType(r, err))
	}
	return &Body{fields: fields, read: map[string]bool{}, faults: &fault.List{}}, nil
}

// Records reads a list of 1 to most objects, each with faults of its own: what is wrong
// with one is a fault of that one alone. Invalid when the list itself is wrong.
func (b *Body) Records(field string, most int) ([]*Body, error) {
	var records []*Body
	if raw := b.raw(field); raw != nil && raw.Kind() == '[' {
		d := decode(raw)
		_, _ = d.ReadToken() // the bracket
		for d.more() && len(records) <= most {
			records = append(records, newRecord(d))
		}
	}
	if len(records) == 0 || len(records) > most {
		return nil, fault.Field(field, "not_a_list", "%s: send a list of 1 to %d objects", field, most)
	}
	return records, nil
}

// newRecord reads the next value.
func newRecord(d decoder) *Body {
	b := &Body{faults: &fault.List{}}
	if kind := d.PeekKind(); kind != '{' {
		_ = b.faults.Add(fault.New(fault.Invalid, "not_an_object", "the record is %s; send an object", kindOf(kind)))
	}
	b.fields, _ = d.fields()
	return b
}

// FirstFault is what Err found first, as one fault; nil when everything was right.
func (b *Body) FirstFault() *fault.Error {
	var f *fault.Error
	errors.As(b.faults.Err(), &f)
	return f
}

// Timestamp reads a point in time with its offset from UTC; see clock.ParseInstant.
func (b *Body) Timestamp(field string) *time.Time {
	raw := b.raw(field)
	if raw == nil {
		return nil
	}
	if raw[0] == '"' {
		if t, err := clock.ParseInstant(strings.TrimSpace(text(raw)), nil); err == nil {
			return &t
		}
	}
	b.Fault(field, "not_a_timestamp", "send a timestamp with its offset, such as 2027-03-31T09:30:00+00:00")
	return nil
}
