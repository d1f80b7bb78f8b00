package edge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

func TestFieldsThatStandTwice(t *testing.T) {
	wide := func(last string) string {
		var b strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&b, `"f%d": %d, `, i, i)
		}
		return `{` + b.String() + last + `: 0}`
	}
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"none":                         {`{"a": 1, "b": {"a": 1}, "c": [{"a": 1}, {"a": 1}], "d": "a", "e": ["a", "a", {}, []]}`, nil},
		"at the top":                   {`{"a": 1, "b": 2, "a": 1}`, []string{"a"}},
		"three times is reported once": {`{"a": 1, "a": 2, "a": 3}`, []string{"a"}},
		"with null":                    {`{"a": 1, "a": null}`, []string{"a"}},
		"inside an object":             {`{"a": {"b": 1, "c": {"d": 1, "d": 2}, "b": 3}, "e": {"b": 1}}`, []string{"a.c.d", "a.b"}},
		"inside a list":                {`{"a": [{"b": 1}, [0, {"b": 1, "b": 2}]]}`, []string{"a[1][1].b"}},
		"an object after its twin":     {`{"a": {"b": 1, "b": 2}, "a": 1}`, []string{"a.b", "a"}},
		"in an escape":                 {`{"email": 1, "\u0065mail": 2}`, []string{"email"}},
		"with escapes that differ":     {`{"a\"": 1, "a\\": 2, "a\n": 3, "a": 4}`, nil},
		"empty names":                  {`{"": 1, "": 2}`, []string{""}},
		"in another case":              {`{"email": 1, "Email": 2, "EMAIL": 3}`, nil},
		"blanks everywhere":            {" {\n\"a\"\t:\r1 ,\n \"a\" : [ ] , \"b\" : [ 1 , { } ] } \n", []string{"a"}},
		"in what nobody reads":         {`{"unknown": {"x": true, "x": false}}`, []string{"unknown.x"}},
		"among many names":             {wide(`"f999"`), []string{"f999"}},
		"among many, the first ones":   {wide(`"f0"`), []string{"f0"}},
		"among many, none":             {wide(`"f1000"`), nil},
	} {
		_, err := readBody(t, c.body, "application/json")
		var got []string
		var f *fault.Error
		if errors.As(err, &f) {
			for _, each := range f.All() {
				got = append(got, each.Field)
				if check.Equal(t, "each.Code", each.Code, "sent_twice", "%s: %+v", name, each) &&
					check.Equal(t, "each.Kind", each.Kind, fault.Invalid, "%s: %+v", name, each) {
					check.True(t, "the message begins with its field", strings.HasPrefix(each.Message, each.Field+": "), "%s: %+v", name, each)
				}
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q (%v)", name, got, c.want, err)
		}
	}
}

// What a hostile body names twice fills no answer.
func TestNamesThatStandTwiceAreToldUpToAMeasure(t *testing.T) {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, `"%d%s": 1, "%d%s": 2, `, i, strings.Repeat("x", 300), i, strings.Repeat("x", 300))
	}
	_, err := readBody(t, `{`+b.String()+`"z": 1}`, "application/json")
	var f *fault.Error
	if check.True(t, "the error is a fault", errors.As(err, &f), "%d faults, %v", len(f.All()), err) &&
		check.Equal(t, "number of faults", len(f.All()), mostTwice, "%d faults, %v", len(f.All()), err) {
		check.True(t, "length of the message is at most 300", len(f.Message) <= 300, "%d faults, %v", len(f.All()), err)
	}
}

func FuzzNamedTwice(f *testing.F) {
	for _, seed := range []string{`{"a": 1, "a": 2}`, `{"a": {"b": [1, {"c": "\"", "c": 1}]}}`, `{"\u0061": 1, "a": "\\"}`, `{"\ud800": 1, "\ud801": 2}`, `{"":-0.5e1}`, " {\t} "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := parseObject([]byte(text))
		if err != nil && !fault.Has(err, "sent_twice") {
			return
		}
		if found, want := err != nil, decodesTwice(t, json.NewDecoder(strings.NewReader(text))); found != want {
			t.Errorf("%q: found = %t, want %t", text, found, want)
		}
	})
}

// decodesTwice reads one value by tokens and says whether an object of it has a name twice.
func decodesTwice(t *testing.T, d *json.Decoder) (twice bool) {
	token := func() json.Token {
		next, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	switch token() {
	case json.Delim('{'):
		names := map[json.Token]bool{}
		for d.More() {
			name := token()
			twice = names[name] || twice
			names[name] = true
			twice = decodesTwice(t, d) || twice
		}
		token()
	case json.Delim('['):
		for d.More() {
			twice = decodesTwice(t, d) || twice
		}
		token()
	}
	return twice
}

// Records are read as encoding/json would read them.
func FuzzRecords(f *testing.F) {
	for _, seed := range []string{`[{"a": 1, "b" : [ ] }, 7 , null, "x", [ {} ], { }]`, `[{"a\"\\": "\\\""}]`, ` [ ] `, `{}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := readBody(t, `{"r": `+text+`}`, "application/json")
		var items []json.RawMessage
		if err != nil || json.Unmarshal([]byte(text), &items) != nil {
			return
		}
		records, err := b.Records("r", 100)
		check.Equal(check.Now(t), "the records are taken", err == nil, 1 <= len(items) && len(items) <= 100, "%q: %v", text, err)
		for i, record := range records {
			var want map[string]json.RawMessage
			bad := json.Unmarshal(items[i], &want) != nil || want == nil
			if check.Equal(t, "the record has a fault", record.FirstFault() != nil, bad, "%s reads as %s", items[i], record.fields) {
				same := func(a jsontext.Value, b json.RawMessage) bool { return bytes.Equal(a, b) }
				check.True(t, "its fields are as encoding/json reads them", maps.EqualFunc(record.fields, want, same), "%s reads as %s", items[i], record.fields)
			}
		}
	})
}

// BenchmarkRecords reads a call of 1,000 events.
func BenchmarkRecords(b *testing.B) {
	event := `{"organization": "demo", "user_id": 1000, "at": "2026-11-21T09:30:00+00:00", "kind": "page_view"}`
	text := `{"events": [` + event + strings.Repeat(", "+event, 999) + `]}`
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		body, err := ReadLargeBody(httptest.NewRecorder(), httptest.NewRequestWithContext(b.Context(), "POST", "/", strings.NewReader(text)), 4)
		if err != nil {
			b.Fatal(err)
		}
		records, err := body.Records("events", 1000)
		check.NoError(check.Now(b), err, "%v %v", len(records), err)
		check.Equal(check.Now(b), "number of records", len(records), 1000, "%v %v", len(records), err)
	}
}
