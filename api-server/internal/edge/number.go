package edge

import (
	"strconv"
	"strings"

	"github.com/registrar-dev/registrar/internal/kit/decimal"
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

// numberText is the one text that a JSON number has however it is written, exactly and without
// an exponent: 7.0 is 7, 1e1 is 10 and 7.50 is 7.5. ok is false where it is longer than most.
func numberText(raw string, most int) (s string, ok bool) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(raw), "e")
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0", true
	}
	power := 0
	if exponent != "" {
		var err error
		if power, err = strconv.Atoi(exponent); err != nil || power > most+len(raw) || power < -most-len(raw) {
			return "", false
		}
	}
	kept := strings.TrimRight(digits, "0")
	power += len(digits) - len(kept) - len(fraction) // the number is kept × 10^power
	switch point := len(kept) + power; {
	case power >= 0:
		s = kept + strings.Repeat("0", power)
	case point <= 0:
		s = "0." + strings.Repeat("0", -point) + kept
	default:
		s = kept[:point] + "." + kept[point:]
	}
	if negative {
		s = "-" + s
	}
	return s, len(s) <= most
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
