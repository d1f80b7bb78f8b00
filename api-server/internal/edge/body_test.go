package edge

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

func readBody(t *testing.T, text string, contentType string) (*Body, error) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(text))
	r.Header.Set("Content-Type", contentType)
	return ReadBody(httptest.NewRecorder(), r)
}

func parse(t *testing.T, text string) *Body {
	t.Helper()
	b, err := readBody(t, text, "application/json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBodiesThatAreNoJSONObject(t *testing.T) {
	for name, c := range map[string]struct{ body, code, says string }{
		"empty":            {"", "body_missing", "JSON object"},
		"blank":            {" \n ", "body_missing", "JSON object"},
		"broken off":       {`{"a": 1`, "invalid_json", "line 1, column"},
		"broken in line":   {"{\n  \"a\": 1,\n  b: 2}", "invalid_json", "line 3, column 3"},
		"two values":       {`{} {}`, "invalid_json", "after top-level value"},
		"a list":           {`[1]`, "not_an_object", "a list"},
		"a string":         {`"x"`, "not_an_object", "a string"},
		"null":             {`null`, "not_an_object", "null"},
		"a number":         {` 7`, "not_an_object", "a number"},
		"broken UTF-8":     {"{\"a\": \"\xff\"}", "invalid_json", "UTF-8"},
		"the NUL":          {`{"a": "x\u0000"}`, "invalid_json", `\u0000`},
		"the NUL in a key": {`{"\u0000": 1}`, "invalid_json", `\u0000`},
		"too deep":         {strings.Repeat(`{"a":`, 20_000), "invalid_json", "depth"},
	} {
		_, err := readBody(t, c.body, "application/json")
		var f *fault.Error
		if check.True(t, "the error is a fault", errors.As(err, &f), "%s: %v", name, err) {
			check.Equal(t, "kind", f.Kind, fault.Invalid, "%s: %+v", name, f)
			check.Equal(t, "code", f.Code, c.code, "%s: %+v", name, f)
			check.Contains(t, "the message", f.Message, c.says, "%s", name)
		}
	}
	if _, err := readBody(t, `{"a": "\\u0000"}`, "application/json"); err != nil {
		t.Errorf("an escaped backslash before u0000: %v", err)
	}
	if _, err := readBody(t, `{"a": "`+strings.Repeat("x", maxBody<<20)+`"}`, "application/json"); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("over 1 MiB: %v", err)
	}
	_, err := readBody(t, "a=1", "application/x-www-form-urlencoded")
	check.Contains(t, "the error", fmt.Sprint(err), "Content-Type is application/x-www-form-urlencoded", "a form")
	if b, err := readBody(t, "\xef\xbb\xbf{\"a\": 1}", "application/json"); check.NoError(t, err, "behind a byte order mark") {
		check.True(t, "the field is found", b.Has("a"), "behind a byte order mark")
	}
	for encoding, taken := range map[string]bool{"": true, "identity": true, "gzip": false, "br": false, "gzip, identity": false} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader("{}"))
		r.Header.Set("Content-Encoding", encoding)
		_, err := ReadBody(httptest.NewRecorder(), r)
		if taken {
			check.NoError(t, err, "Content-Encoding %q", encoding)
		} else {
			check.True(t, "the fault is unsupported_content_encoding", fault.Has(err, "unsupported_content_encoding"), "Content-Encoding %q: %v", encoding, err)
		}
	}
	if _, err := readBody(t, "{}", ""); err != nil {
		t.Errorf("without Content-Type: %v", err)
	}
}

// show reads the field "f" of a body and writes what it got: a value, nil, or the fault's code.
func show[T any](b *Body, got *T) string {
	var f *fault.Error
	switch err := b.Err(); {
	case errors.As(err, &f):
		if got != nil || f.Field != "f" || !strings.HasPrefix(f.Message, "f: ") {
			return fmt.Sprintf("broken fault %+v with value %v", f, got)
		}
		return f.Code
	case got == nil:
		return "nil"
	}
	return fmt.Sprint(*got)
}

func TestFields(t *testing.T) {
	text := func(b *Body) string { return show(b, b.Text("f", 3)) }
	secret := func(b *Body) string { return show(b, b.Secret("f")) }
	label := func(b *Body) string { return show(b, b.Label("f", 3)) }
	long := func(b *Body) string { return show(b, b.Label("f", 255)) }
	boolean := func(b *Body) string { return show(b, b.Bool("f")) }
	number := func(b *Body) string { return show(b, b.Int("f", 1, 120)) }
	date := func(b *Body) string { return show(b, b.Date("f")) }
	choice := func(b *Body) string { return show(b, b.Choice("f", "full", "read_only")) }
	list := func(b *Body) string {
		got := b.List("f")
		if got == nil {
			return show[[]string](b, nil)
		}
		if b.Err() != nil {
			return show[[]string](b, nil)
		}
		return fmt.Sprintf("%q", got)
	}
	for _, c := range []struct {
		name, value string
		read        func(*Body) string
		want        string
	}{
		{"text", `" abc "`, text, "abc"}, {"text: three characters in six bytes", `"äöü"`, text, "äöü"},
		{"text: long", `"abcd"`, text, "too_long"}, {"text: blank", `" "`, text, "nil"}, {"text: null", `null`, text, "nil"},
		{"text: number", `1`, text, "wrong_type"}, {"text: object", `{}`, text, "wrong_type"},
		{"secret keeps blanks", `" x "`, secret, " x "}, {"secret: empty", `""`, secret, "nil"}, {"secret: number", `1`, secret, "wrong_type"},
		{"label: text", `"7"`, label, "7"}, {"label: number", `7`, label, "7"}, {"label: long number", `1234`, label, "too_long"},
		{"label: whole float", `7.0`, label, "7"}, {"label: exponent", `1e1`, label, "10"}, {"label: capital exponent", `1.20E+2`, label, "120"},
		{"label: negative exponent", `700e-2`, label, "7"}, {"label: fraction", `7.50`, label, "7.5"}, {"label: small fraction", `5e-1`, label, "0.5"},
		{"label: negative", `-7.0`, label, "-7"}, {"label: nothing", `-0.00e9`, label, "0"}, {"label: a fraction that is long only as it is written", `7.0000`, label, "7"},
		{"label: huge", `1e3`, label, "too_long"}, {"label: too huge to be written", `1e999999999999999999999`, label, "too_long"},
		{"label: too small to be written", `1e-999999999`, label, "too_long"}, {"label: text stays as it is", `"7.0"`, label, "7.0"},
		{"label: more digits than a float has", `12345678901234567890123.0`, long, "12345678901234567890123"},
		{"label: a power of more digits than a float has", `1234567890123456789.01e2`, long, "123456789012345678901"},
		{"bool", `true`, boolean, "true"}, {"bool: word", `" YES "`, boolean, "true"}, {"bool: one", `1`, boolean, "true"},
		{"bool: zero in text", `"0"`, boolean, "false"}, {"bool: no", `"No"`, boolean, "false"}, {"bool: empty", `""`, boolean, "nil"},
		{"bool: null", `null`, boolean, "nil"}, {"bool: other word", `"on"`, boolean, "not_a_boolean"}, {"bool: two", `2`, boolean, "not_a_boolean"},
		{"int", `12`, number, "12"}, {"int: text", `"12"`, number, "12"}, {"int: whole float", `12.0`, number, "12"}, {"int: exponent", `1.2e1`, number, "12"},
		{"int: fraction", `12.5`, number, "not_a_whole_number"}, {"int: low", `0`, number, "not_a_whole_number"},
		{"int: high", `121`, number, "not_a_whole_number"}, {"int: huge", `1e400`, number, "not_a_whole_number"},
		{"int: hexadecimal", `"0x10"`, number, "not_a_whole_number"}, {"int: boolean", `true`, number, "not_a_whole_number"},
		{"date", `"2026-02-28"`, date, "2026-02-28"}, {"date: none such", `"2026-02-30"`, date, "not_a_date"}, {"date: number", `20260228`, date, "not_a_date"},
		{"choice", `"Read_Only"`, choice, "read_only"}, {"choice: other", `"write"`, choice, "not_a_choice"}, {"choice: list", `["full"]`, choice, "not_a_choice"},
		{"list", `["a", 7, " b ", ""]`, list, `["a" "7" "b"]`}, {"list: text", `"a, b,,7"`, list, `["a" "b" "7"]`}, {"list: number", `7`, list, `["7"]`},
		{"list: empty", `[]`, list, `[]`}, {"list: null", `null`, list, "nil"}, {"list: object inside", `[{}]`, list, "wrong_type"}, {"list: boolean", `true`, list, "wrong_type"},
	} {
		if got := c.read(parse(t, `{"f": `+c.value+`}`)); got != c.want {
			t.Errorf("%s: %s gives %s, want %s", c.name, c.value, got, c.want)
		}
		if got := c.read(parse(t, `{}`)); got != "nil" {
			t.Errorf("%s: absent gives %s", c.name, got)
		}
	}
}

func TestFaultsOfInnerObjectsNameTheWholePath(t *testing.T) {
	b := parse(t, `{"a": {"n": "x", "m": 1}, "l": [], "z": null}`)
	inner := b.Object("a")
	inner.Int("n", 1, 5)
	b.Required("name", "l")
	if check.True(t, "a list is no object", b.Object("l") == nil, "a list or null is read as an object") {
		check.True(t, "null is no object", b.Object("z") == nil, "a list or null is read as an object")
	}
	var f *fault.Error
	if !errors.As(b.Err(), &f) {
		t.Fatal("no fault")
	}
	var fields []string
	for _, each := range f.All() {
		fields = append(fields, each.Field)
	}
	if want := []string{"a.n", "name", "l"}; !slices.Equal(fields, want) {
		t.Fatalf("%q, want %q", fields, want)
	}
	if check.True(t, "null clears", b.Cleared("z"), "Cleared or Names") &&
		check.False(t, "a value clears", b.Cleared("a"), "Cleared or Names") &&
		check.False(t, "what is not sent clears", b.Cleared("nowhere"), "Cleared or Names") {
		check.Slices(t, "names", b.Names(), []string{"a", "l", "z"}, "Cleared or Names")
	}
}

func FuzzReadBody(f *testing.F) {
	for _, seed := range []string{`{}`, `{"f": "x"}`, `{"f": [1, "a"]}`, `{"f": {"f": 1e9}}`, "{\"f\": \"\\u0000\"}", `[`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := readBody(t, text, "application/json")
		if err != nil {
			if fault.KindOf(err) == fault.Internal {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for _, s := range []*string{b.Text("f", 10), b.Label("f", 10)} {
			if s != nil {
				check.True(check.Now(t), "the text is not empty", *s != "", "%q", text)
				check.Lacks(check.Now(t), "the text", *s, "\x00", "%q", text)
			}
		}
		b.Bool("f")
		b.Date("f")
		b.List("f")
		if n := b.Int("f", 1, 5); n != nil {
			check.OneOf(check.Now(t), "the number", *n, []int{1, 2, 3, 4, 5}, "%q", text)
		}
		if inner := b.Object("f"); inner != nil {
			inner.Text("f", 5)
		}
	})
}

// A time that cannot be stored and written again is none.
func TestTimestampsHaveAYearThatCanBeWritten(t *testing.T) {
	for raw, right := range map[string]bool{
		`"2027-03-31T09:30:00+00:00"`: true,
		`"0001-01-01T00:00:00Z"`:      true,
		`"0001-01-01T00:00:00+01:00"`: false, // the year before, in UTC
		`"9998-12-31T23:59:59Z"`:      true,
		`"9999-01-01T00:00:00Z"`:      false,
		`"2027-03-31"`:                false,
		`7`:                           false,
	} {
		b := parse(t, `{"at":`+raw+`}`)
		at := b.Timestamp("at")
		f := b.FirstFault()
		check.Equal(t, "there is a time", at != nil, right, "%s: %v", raw, at)
		check.Equal(t, "there is a fault", f != nil, !right, "%s: %v", raw, f)
		if f != nil {
			check.Equal(t, "code", f.Code, "not_a_timestamp", "%s", raw)
		}
	}
}
