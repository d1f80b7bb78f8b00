package edge_test

import (
	"encoding/json"
	"math/big"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

// seeds are the values of one field in JSON, in the accepted forms and others.
var seeds = []string{`null`, `""`, `" "`, `"x"`, `" Ana "`, `1`, `-0`, `1.0`, `1.5`, `1e2`, `"12"`, `"12.0"`, `"0x1"`, `"yes"`, `"FALSE"`, `true`, `[]`,
	`[1, "2", null, {}]`, `"371, 380"`, `[371, 380]`, `{}`, `{"a": 1}`, `"2027-02-29"`, `"2027-02-28"`, `"ielts,,TOEFL "`, `"\u0000"`, `"ä\ud800"`, `9007199254740993`, `1e400`}

// fuzz lets read look at any value. A reader either finds a value or adds a fault, and
// leaves both only where nothing was sent.
func fuzz(f *testing.F, read func(t *testing.T, b *edge.Body, raw string) (found bool)) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(`{"f": `+raw+`}`))
		b, err := edge.ReadBody(httptest.NewRecorder(), r)
		if err != nil {
			return // no JSON
		}
		found := read(t, b, raw)
		if found {
			check.NoError(t, b.Err(), "a value and a fault: %s", raw)
			return
		}
		if strings.Trim(raw, " \n\t\r") == "[]" || len(b.Names()) != 1 {
			return // nothing is sent, or more than f
		}
		if b.Has("f") {
			check.True(t, "there is a value or a fault", b.Err() != nil, "%s", raw)
		}
	})
}

func FuzzText(f *testing.F) {
	fuzz(f, func(t *testing.T, b *edge.Body, raw string) bool {
		s := b.Text("f", 20)
		if s == nil {
			return false
		}
		var value string
		if json.Unmarshal([]byte(raw), &value) == nil {
			check.Equal(t, "the text", *s, strings.TrimSpace(value), "%s", raw)
		}
		check.Equal(t, "the text", *s, strings.TrimSpace(*s), "%s", raw)
		check.True(t, "the text is UTF-8", utf8.ValidString(*s), "%s reads as %q", raw, *s)
		wantLength(t, *s, raw)
		return true
	})
}

// wantLength checks that a text of at most 20 characters was read.
func wantLength(t *testing.T, text, raw string) {
	t.Helper()
	check.True(t, "the text is not empty", text != "", "%s", raw)
	check.True(t, "the text has at most 20 characters", utf8.RuneCountInString(text) <= 20, "%s reads as %q", raw, text)
}

func FuzzLabel(f *testing.F) {
	fuzz(f, func(t *testing.T, b *edge.Body, raw string) bool {
		s := b.Label("f", 20)
		if s != nil {
			wantLength(t, *s, raw)
		}
		var number json.Number
		if s != nil && raw[0] != '"' && json.Unmarshal([]byte(raw), &number) == nil && len(number) < 50 {
			sent, _ := new(big.Rat).SetString(string(number))
			if read, ok := new(big.Rat).SetString(*s); check.True(t, "the label is a number", ok, "%s reads as %q", raw, *s) {
				check.Equal(t, "the label's number compared with what was sent", read.Cmp(sent), 0, "%s reads as %q", raw, *s)
			}
		}
		return s != nil
	})
}

func FuzzBool(f *testing.F) {
	fuzz(f, func(_ *testing.T, b *edge.Body, _ string) bool { return b.Bool("f") != nil })
}

func FuzzInt(f *testing.F) {
	fuzz(f, func(t *testing.T, b *edge.Body, raw string) bool {
		n := b.Int("f", 1, 120)
		if n != nil {
			check.Equal(t, "the number", *n, min(max(*n, 1), 120), "%s", raw)
		}
		return n != nil
	})
}

func FuzzIDs(f *testing.F) {
	fuzz(f, func(t *testing.T, b *edge.Body, raw string) bool {
		ids := b.IDs("f")
		for _, n := range ids {
			if n < 1 {
				t.Errorf("%s reads as %v", raw, ids)
			}
		}
		return b.Err() == nil
	})
}

func FuzzList(f *testing.F) {
	fuzz(f, func(t *testing.T, b *edge.Body, raw string) bool {
		for _, s := range b.List("f") {
			if check.True(t, "there is a text", s != "", "%s holds %q", raw, s) {
				check.Equal(t, "s", s, strings.TrimSpace(s), "%s holds %q", raw, s)
			}
		}
		return b.Err() == nil
	})
}

func FuzzChoice(f *testing.F) {
	fuzz(f, func(_ *testing.T, b *edge.Body, _ string) bool { return b.Choice("f", "link", "set") != nil })
}

func FuzzDate(f *testing.F) {
	fuzz(f, func(t *testing.T, b *edge.Body, raw string) bool {
		d := b.Date("f")
		if d == nil {
			return false
		}
		if !strings.Contains(raw, `\u`) { // else its digits are escaped
			check.Contains(t, "what was sent", raw, d.String(), "read as a date")
		}
		return true
	})
}

func FuzzNumber(f *testing.F) {
	fuzz(f, func(t *testing.T, b *edge.Body, raw string) bool {
		n := b.Number("f")
		if n != nil {
			if again, err := decimal.Parse(n.String()); check.NoError(t, err, "%s reads as %v, which reads as %v, %v", raw, n, again, err) {
				check.Equal(t, "again", again, *n, "%s reads as %v, which reads as %v, %v", raw, n, again, err)
			}
		}
		return n != nil
	})
}

func FuzzObject(f *testing.F) {
	fuzz(f, func(t *testing.T, b *edge.Body, raw string) bool {
		inner := b.Object("f")
		if inner == nil {
			return false
		}
		for _, name := range inner.Names() {
			n := inner.Number(name)
			if n == nil && inner.Has(name) {
				check.True(t, "there is a fault", b.Err() != nil, "%s: %q is no number", raw, name)
			}
		}
		return b.Err() == nil
	})
}

func FuzzSecret(f *testing.F) {
	fuzz(f, func(_ *testing.T, b *edge.Body, raw string) bool {
		return b.Secret("f") != nil || strings.Trim(raw, " \n\t\r") == `""` || b.Err() == nil
	})
}

// An instant is one that can be written in any zone with a year of four digits, and read again.
func FuzzParseInstant(f *testing.F) {
	for _, s := range []string{"", "2027-02-28T12:00:00Z", "2027-02-28T12:00:00+05:30", "2027-02-28T12:00:00.123456789-12:00", "2027-02-29T12:00:00Z", "2027-02-28T24:00:00Z",
		"2027-02-28T12:00:00+99:99", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "2027-02-28T12:00:00 05:30", "2027-02-28", "2016-12-31T23:59:60Z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, err := clock.ParseInstant(text, nil)
		if err != nil {
			return
		}
		for _, hours := range []int{-12, 0, 14} {
			written := at.In(time.FixedZone("", hours*3600)).Format(time.RFC3339Nano)
			if again, err := time.Parse(time.RFC3339, written); check.NoError(t, err, "%q is %s, which is read as %s, %v", text, written, again, err) {
				check.True(t, "the time reads as it was written", again.Equal(at), "%q is %s, which is read as %s, %v", text, written, again, err)
			}
		}
	})
}
