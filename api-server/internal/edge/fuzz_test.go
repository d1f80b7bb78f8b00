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
		if found := read(t, b, raw); found && b.Err() != nil {
			t.Errorf("%s: a value and the fault %v", raw, b.Err())
		} else if !found && b.Err() == nil && b.Has("f") && strings.Trim(raw, " \n\t\r") != "[]" && len(b.Names()) == 1 {
			t.Errorf("%s: neither a value nor a fault", raw)
		}
	})
}

func FuzzText(f *testing.F) {
	fuzz(f, func(t *testing.T, b *edge.Body, raw string) bool {
		s := b.Text("f", 20)
		var value string
		if json.Unmarshal([]byte(raw), &value) == nil && s != nil && *s != strings.TrimSpace(value) {
			t.Errorf("%s reads as %q", raw, *s)
		}
		if s != nil && (*s != strings.TrimSpace(*s) || *s == "" || utf8.RuneCountInString(*s) > 20 || !utf8.ValidString(*s)) {
			t.Errorf("%s reads as %q", raw, *s)
		}
		return s != nil
	})
}

func FuzzLabel(f *testing.F) {
	fuzz(f, func(t *testing.T, b *edge.Body, raw string) bool {
		s := b.Label("f", 20)
		if s != nil && (*s == "" || utf8.RuneCountInString(*s) > 20) {
			t.Errorf("%s reads as %q", raw, *s)
		}
		var number json.Number
		if s != nil && raw[0] != '"' && json.Unmarshal([]byte(raw), &number) == nil && len(number) < 50 {
			sent, _ := new(big.Rat).SetString(string(number))
			if read, ok := new(big.Rat).SetString(*s); check.True(t, "ok", ok, "%s reads as %q", raw, *s) {
				check.Equal(t, "read.Cmp(sent)", read.Cmp(sent), 0, "%s reads as %q", raw, *s)
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
		if n != nil && (*n < 1 || *n > 120) {
			t.Errorf("%s reads as %d", raw, *n)
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
			if check.True(t, "s != \"\"", s != "", "%s holds %q", raw, s) {
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
		if d != nil && !strings.Contains(raw, d.String()) && !strings.Contains(raw, `\u`) {
			t.Errorf("%s reads as %v", raw, d)
		}
		return d != nil
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
			if n := inner.Number(name); n == nil && inner.Has(name) && b.Err() == nil {
				t.Errorf("%s: neither a number nor a fault of %q", raw, name)
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
				check.True(t, "again.Equal(at)", again.Equal(at), "%q is %s, which is read as %s, %v", text, written, again, err)
			}
		}
	})
}
