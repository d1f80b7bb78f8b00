package edge

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

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
		return nil, explainContentType(r, err)
	}
	if err := namedTwice(text); err != nil {
		return nil, err
	}
	return &Body{fields: fields, faults: &fault.List{}}, nil
}

// Records reads a list of 1 to most objects, each with faults of its own: what is wrong
// with one is told of that one alone. Invalid when the list itself is wrong.
func (b *Body) Records(field string, most int) ([]*Body, error) {
	items := listed(b.raw(field))
	if len(items) == 0 || len(items) > most {
		return nil, fault.Field(field, "not_a_list", "%s: send a list of 1 to %d objects", field, most)
	}
	records := make([]*Body, len(items))
	for i, item := range items {
		records[i] = newRecord(item)
	}
	return records, nil
}

func newRecord(item json.RawMessage) *Body {
	b := &Body{faults: &fault.List{}}
	if item[0] != '{' {
		_ = b.faults.Add(fault.New(fault.Invalid, "not_an_object", "the record is %s; send an object", kindOf(item)))
		return b
	}
	b.fields = map[string]json.RawMessage{}
	w := walk{raw: item}
	w.members(func(name []byte) {
		start := w.at
		w.value()
		b.fields[string(name)] = item[start:w.at]
	})
	return b
}

// listed are the entries of raw; nil where it is no list.
func listed(raw json.RawMessage) []json.RawMessage {
	if len(raw) == 0 || raw[0] != '[' {
		return nil
	}
	var items []json.RawMessage
	w := walk{raw: raw}
	w.entries(func(int) {
		w.next()
		start := w.at
		w.value()
		items = append(items, raw[start:w.at])
	})
	return items
}

// FirstFault is what Err found first, as one fault; nil when everything was right.
func (b *Body) FirstFault() *fault.Error {
	var f *fault.Error
	errors.As(b.faults.Err(), &f)
	return f
}

// Timestamp reads a time of day on a date, with its offset from UTC; see ParseTimestamp.
func (b *Body) Timestamp(field string) *time.Time {
	raw := b.raw(field)
	if raw == nil {
		return nil
	}
	if raw[0] == '"' {
		if t, err := ParseTimestamp(strings.TrimSpace(text(raw))); err == nil {
			return &t
		}
	}
	b.Fault(field, "not_a_timestamp", "send a timestamp with its offset, such as 2027-03-31T09:30:00+00:00")
	return nil
}
