package server_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/openapi"
)

// rounds is how many requests each operation gets, a quarter of them with -short. The requests are the
// same in every run: what one finds can be found again.
const rounds = 60

// TestHostileRequests sends every operation of both documents requests that are nearly
// right and requests that are rubbish. Whatever is sent, the answer is one that the
// document describes (the clients see to that), and never a 500.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	n := rounds
	if testing.Short() {
		n /= 4
	}
	e := apitest.New(t)
	north := e.Organization(t, "north")
	north.Full.Post(t, "provision/student/", `{"email": "asha@north-institute.org", "first_name": "Asha", "courses": ["ielts"]}`).Want(t, http.StatusCreated)
	for name, c := range map[string]struct {
		document []byte
		client   *apitest.Client
	}{"partner": {openapi.Partner(), north.Full.Freely()}, "platform": {openapi.Platform(), e.Platform.Freely()}} {
		doc, err := openapi3.NewLoader().LoadFromData(c.document)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range doc.Paths.InMatchingOrder() {
			item := doc.Paths.Value(path)
			for method, op := range item.Operations() {
				t.Run(name+" "+method+" "+path, func(t *testing.T) {
					a := newAttacker(method + path)
					for range n {
						parameters := slices.Concat(item.Parameters, op.Parameters)
						target := a.target(path, parameters)
						answer := a.headers(c.client, parameters).Do(t, method, target, a.body(op))
						if answer.Status >= 500 {
							t.Errorf("%s %s: %d %s", method, target, answer.Status, answer.Body)
						}
					}
				})
			}
		}
	}
}

// attacker draws requests from documents.
type attacker struct{ *rand.Rand }

func newAttacker(seed string) attacker {
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed)) // never fails
	return attacker{rand.New(rand.NewPCG(h.Sum64(), 1))}
}

// rubbish is what no field wants, and what broke other services.
var rubbish = []any{nil, "", " ", "0", -1, 0, 1e308, 9007199254740993, 1.5, true, false, []any{}, map[string]any{}, "null", "NaN", "Infinity",
	"\u0000", "a\u0000b", "\u202Eevil", "'; DROP TABLE accounts; --", "<script>alert(1)</script>", "../../etc/passwd", "%00", "%", "{{7*7}}",
	"2026-02-30", "9999-12-31", "0001-01-01", "10000-01-01", "-0001-01-01", "2026-11-21T24:00:00Z", "2026-11-21T10:00:00 05:30",
	"2026-11-21T10:00:00+99:99", "Local", "Asia/Kolkata", "a@b", "ASHA@north-institute.org", "ünïcode@exämple.org", "99999999999999999999",
	strings.Repeat("x", 300), strings.Repeat("9", 400), []any{nil}, []any{map[string]any{"a": 1}}, []any{1, "2", 3.5}, "1,2,,3", "ielts, SAT ,ielts",
	map[string]any{"a": map[string]any{"b": []any{}}}}

func (a attacker) rubbish() any { return rubbish[a.IntN(len(rubbish))] }

// target fills the path's parameters and adds some of the query's.
func (a attacker) target(path string, parameters openapi3.Parameters) string {
	query := url.Values{}
	for _, ref := range parameters {
		p := ref.Value
		value := fmt.Sprint(a.value(p.Schema, 0))
		if a.IntN(4) == 0 {
			value = fmt.Sprint(a.rubbish())
		}
		switch p.In {
		case openapi3.ParameterInPath:
			path = strings.Replace(path, "{"+p.Name+"}", url.PathEscape(a.pathValue(p.Name, value)), 1)
		case openapi3.ParameterInQuery:
			if a.IntN(3) > 0 {
				query.Add(p.Name, value)
			}
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// headers adds some of the documented ones to the client's.
func (a attacker) headers(c *apitest.Client, parameters openapi3.Parameters) *apitest.Client {
	for _, ref := range parameters {
		p := ref.Value
		if p.In != openapi3.ParameterInHeader || a.IntN(2) == 0 {
			continue
		}
		value := strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return -1 // no HTTP client sends it
			}
			return r
		}, fmt.Sprint(a.value(p.Schema, 0)))
		c = c.With(p.Name, value)
	}
	return c
}

// pathValue is mostly something that exists, or else the request would end at the door.
func (a attacker) pathValue(name, value string) string {
	known := map[string]string{"slug": "north", "id": "1", "user_id": "1", "email": "asha@north-institute.org", "name": "ielts"}
	if v, ok := known[name]; ok && a.IntN(5) > 0 {
		return v
	}
	if value == "" || value == "." || value == ".." {
		return "x"
	}
	return value
}

// body is nil where the operation takes none.
func (a attacker) body(op *openapi3.Operation) any {
	if op.RequestBody == nil {
		return nil
	}
	media := op.RequestBody.Value.Content.Get("application/json")
	if media == nil {
		return "neither a roster nor JSON"
	}
	value := a.value(media.Schema, 0)
	if a.IntN(10) == 0 {
		value = a.rubbish()
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // rubbish is made of what JSON has
	}
	if a.IntN(15) == 0 && len(text) > 2 {
		text = text[:a.IntN(len(text))] // cut short
	}
	return string(text)
}

// value draws a value of the schema, in which now and then something is wrong.
func (a attacker) value(ref *openapi3.SchemaRef, depth int) any {
	if ref == nil || ref.Value == nil || depth > 6 || a.IntN(12) == 0 {
		return a.rubbish()
	}
	s := ref.Value
	switch {
	case len(s.Enum) > 0:
		return s.Enum[a.IntN(len(s.Enum))]
	case len(s.OneOf) > 0:
		return a.value(s.OneOf[a.IntN(len(s.OneOf))], depth+1)
	case len(s.AnyOf) > 0:
		return a.value(s.AnyOf[a.IntN(len(s.AnyOf))], depth+1)
	case s.Type.Includes("array"):
		list := make([]any, a.IntN(4))
		for i := range list {
			list[i] = a.value(s.Items, depth+1)
		}
		return list
	case s.Type.Includes("boolean"):
		return a.IntN(2) == 0
	case s.Type.Includes("integer"), s.Type.Includes("number"):
		return a.number(s)
	case s.Type.Includes("string"):
		return a.text(s)
	}
	return a.object(s, depth)
}

func (a attacker) object(s *openapi3.Schema, depth int) map[string]any {
	object := map[string]any{}
	for _, part := range s.AllOf {
		if inner, ok := a.value(part, depth).(map[string]any); ok {
			for k, v := range inner {
				object[k] = v
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) { // in one order, or the next draws would differ
		property := s.Properties[name]
		if slices.Contains(s.Required, name) || a.IntN(3) > 0 {
			object[name] = a.value(property, depth+1)
		}
	}
	if a.IntN(5) == 0 {
		object["unheard_of"] = a.rubbish()
	}
	return object
}

func (a attacker) number(s *openapi3.Schema) any {
	low, high := 0.0, 20.0
	if s.Min != nil {
		low = *s.Min
	}
	if s.Max != nil {
		high = *s.Max
	}
	n := int64(low) + a.Int64N(max(1, int64(high-low)+1))
	return []any{n, n, n, low - 1, high + 1, fmt.Sprint(n), float64(n) + 0.5}[a.IntN(7)]
}

func (a attacker) text(s *openapi3.Schema) any {
	switch {
	case s.Format == "date" || strings.Contains(s.Description, "YYYY-MM-DD"):
		return fmt.Sprintf("20%02d-%02d-%02d", 20+a.IntN(12), 1+a.IntN(13), 1+a.IntN(31))
	case s.Format == "date-time":
		return fmt.Sprintf("2026-11-%02dT%02d:00:00+05:30", 1+a.IntN(31), a.IntN(25))
	case s.Format == "email":
		return fmt.Sprintf("student-%d@north-institute.org", a.IntN(5))
	case s.Format == "uri":
		return []any{"https://hooks.north-institute.org/", "https://10.0.0.1/", "//x", "https://[::1"}[a.IntN(4)]
	}
	return []any{"north", "ielts", "Asha", "1", "2026-11-21", "UTC", "https://hooks.north-institute.org/x"}[a.IntN(7)]
}
