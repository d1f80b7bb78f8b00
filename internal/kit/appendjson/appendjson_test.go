package appendjson_test

import (
	"encoding/json"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/appendjson"
)

func FuzzStringIsAsByEncodingJSON(f *testing.F) {
	for _, s := range []string{"", "plain", `"quoted" \ <b> & 'c'`, "tab\tnewline\nnul\x00", "é 学 🎓", "\u2028\u2029", "\xff broken", "\x7f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendjson.String([]byte("x"), s); string(got) != "x"+string(want) {
			t.Errorf("%q is %s, want %s", s, got[1:], want)
		}
	})
}

func FuzzRawIsAsByEncodingJSON(f *testing.F) {
	for _, s := range []string{`{}`, `{"listening":6.5,"a b":[1, 2]}`, " null ", `"<é\u2028>"`, `-1.5e+7`, "[\n]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) {
			t.Skip()
		}
		want, err := json.Marshal(json.RawMessage(s))
		if err != nil {
			t.Fatal(err)
		}
		if got := appendjson.Raw(nil, json.RawMessage(s)); string(got) != string(want) {
			t.Errorf("%s is %s, want %s", s, got, want)
		}
	})
}

func TestOr(t *testing.T) {
	t.Parallel()
	n := 7
	if got := string(appendjson.Or(appendjson.Or(nil, &n, appendjson.Int[int]), nil, appendjson.Int[int])); got != "7null" {
		t.Error(got)
	}
	if got := string(appendjson.Raw(nil, nil)); got != "null" {
		t.Error(got)
	}
}
