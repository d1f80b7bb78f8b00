package edge

import (
	"errors"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

func TestIDs(t *testing.T) {
	for body, want := range map[string][]int64{
		`{}`:                        {},
		`{"f": null}`:               {},
		`{"f": ""}`:                 {},
		`{"f": []}`:                 {},
		`{"f": 371}`:                {371},
		`{"f": 371.0}`:              {371},
		`{"f": "371, 380"}`:         {371, 380},
		`{"f": [371, " 380 ", ""]}`: {371, 380},
	} {
		b := parse(t, body)
		if got := b.IDs("f"); check.Slices(t, "the ids", got, want, "%s: %v, %v; want %v", body, got, b.Err(), want) {
			check.NoError(t, b.Err(), "%s: %v, %v; want %v", body, got, b.Err(), want)
		}
	}
	for body, code := range map[string]string{
		`{"f": 0}`: "not_an_id", `{"f": -1}`: "not_an_id", `{"f": 1.5}`: "not_an_id", `{"f": "one"}`: "not_an_id",
		`{"f": ["1 2"]}`: "not_an_id", `{"f": 1e300}`: "not_an_id", `{"f": true}`: "wrong_type", `{"f": [[1]]}`: "wrong_type",
	} {
		b := parse(t, body)
		b.IDs("f")
		var f *fault.Error
		if check.True(t, "the error is a fault", errors.As(b.Err(), &f), "%s: %v, want %s", body, b.Err(), code) &&
			check.Equal(t, "f.Code", f.Code, code, "%s: %v, want %s", body, b.Err(), code) {
			check.Equal(t, "f.Field", f.Field, "f", "%s: %v, want %s", body, b.Err(), code)
		}
	}
}
