package edge

import (
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// Number reads a number with at most four decimals; "6.5" is taken for 6.5.
func (b *Body) Number(field string) *decimal.Number {
	raw := b.raw(field)
	if raw == nil {
		return nil
	}
	digits := string(raw)
	if raw[0] == '"' {
		digits = strings.TrimSpace(text(raw))
	}
	if n, err := decimal.Parse(digits); err == nil {
		return &n
	}
	b.Fault(field, "not_a_number", "send a number with at most four decimals")
	return nil
}

// Numbers reads an object of numbers.
func (b *Body) Numbers(field string) map[string]decimal.Number {
	inner := b.Object(field)
	if inner == nil {
		return nil
	}
	numbers := make(map[string]decimal.Number, len(inner.fields))
	for _, name := range inner.Names() { // faults in one order
		if n := inner.Number(name); n != nil {
			numbers[name] = *n
		}
	}
	return numbers
}

// ParseTimestamp reads an instant in RFC 3339; its year has to be one that can be stored
// and written again.
func ParseTimestamp(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err == nil && (t.UTC().Year() < 1 || t.UTC().Year() > 9998) {
		err = fault.New(fault.Invalid, "not_a_timestamp", "the year of %s is out of range", s)
	}
	return t, err
}
