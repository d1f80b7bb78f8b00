// Package decimal holds scores: decimal numbers with four places, exact where floating
// point is not. Sums and comparisons are those of integers, in Go and in PostgreSQL.
package decimal

import (
	"fmt"
	"strconv"
	"strings"
)

// Number is a decimal number in ten-thousandths, as columns whose names end in _e4 hold it.
type Number int64

// One is the number 1.
const One Number = 10_000

// Max bounds what Parse reads: far above any score, and small enough that a product with
// 100 times One does not overflow.
const Max = 1_000_000 * One

// Whole is n.
func Whole(n int64) Number { return Number(n) * One }

// Parse reads a JSON number, such as 6.5, 120 or 1.2e2, with at most four decimals and
// between -Max and Max.
func Parse(text string) (Number, error) {
	mantissa, exponent, err := cut(text)
	if err != nil {
		return 0, err
	}
	sign := Number(1)
	if rest, ok := strings.CutPrefix(mantissa, "-"); ok {
		sign, mantissa = -1, rest
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" && whole != "" {
		return 0, nil
	}
	places := len(fraction) - exponent
	for places > 4 && strings.HasSuffix(digits, "0") {
		digits, places = digits[:len(digits)-1], places-1
	}
	if places > 4 || places < -10 {
		return 0, fmt.Errorf("%s has more than four decimals or is too large", text)
	}
	n, err := strconv.ParseUint(digits+strings.Repeat("0", 4-places), 10, 63)
	if err != nil || whole == "" || Number(n) > Max {
		return 0, fmt.Errorf("%s is no number up to %v", text, Max)
	}
	return sign * Number(n), nil
}

// cut takes the exponent off.
func cut(text string) (mantissa string, exponent int, err error) {
	at := strings.IndexAny(text, "eE")
	if at < 0 {
		return text, 0, nil
	}
	exponent, err = strconv.Atoi(strings.TrimPrefix(text[at+1:], "+"))
	if err != nil || exponent < -30 || exponent > 30 {
		return "", 0, fmt.Errorf("%s is no number", text)
	}
	return text[:at], exponent, nil
}

// String writes the number without needless zeros: 6.5, 120.
func (n Number) String() string { return string(n.text()) }

// MarshalJSON writes a JSON number.
func (n Number) MarshalJSON() ([]byte, error) { return n.text(), nil }

// UnmarshalJSON reads a JSON number.
func (n *Number) UnmarshalJSON(b []byte) (err error) {
	*n, err = Parse(string(b))
	return err
}

func (n Number) text() (b []byte) {
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	b = strconv.AppendInt(b, int64(n/One), 10)
	if rest := n % One; rest != 0 {
		digits := strconv.Itoa(int(One + rest))[1:]
		b = append(append(b, '.'), strings.TrimRight(digits, "0")...)
	}
	return b
}

// Percent is part ÷ whole × 100, rounded to two decimals, half up; 0 when whole is not
// positive. part is not negative.
func Percent(part, whole Number) Number {
	if whole <= 0 {
		return 0
	}
	return Number((2*int64(part)*100*100+int64(whole))/(2*int64(whole))) * (One / 100)
}

// RoundTo is the multiple of step nearest to n, half up. n is not negative.
func (n Number) RoundTo(step Number) Number { return (2*n + step) / (2 * step) * step }

// MeanTo is the mean of the numbers, rounded once to a multiple of step, half up. The
// numbers are not negative; the mean of none is 0.
func MeanTo(step Number, of ...Number) Number {
	if len(of) == 0 {
		return 0
	}
	// Sum/len nearest to k·step is Sum nearest to k·(step·len).
	count := Number(len(of))
	return Sum(of...).RoundTo(step*count) / count
}

// Sum adds up.
func Sum(of ...Number) Number {
	var sum Number
	for _, n := range of {
		sum += n
	}
	return sum
}
