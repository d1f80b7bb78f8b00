package wire_test

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// A result of the list is written by hand: it must be what encoding/json makes of it, down
// to a field that is new.
func TestAResultIsWrittenAsByEncodingJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := drawResult(rt)
		want, err := json.Marshal(r)
		if err != nil {
			rt.Fatal(err)
		}
		if got := r.AppendJSON([]byte("x")); string(got) != "x"+string(want) {
			rt.Fatalf("got  %s\nwant %s", got[1:], want)
		}
	})
}

func drawResult(rt *rapid.T) *wire.Result {
	text := func(name string) string {
		return rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z<>&"\\ é\x00-\x1f]{0,12}`)).Draw(rt, name)
	}
	number := func(name string) decimal.Number {
		return decimal.Number(rapid.Int64Range(-int64(decimal.Max), int64(decimal.Max)).Draw(rt, name))
	}
	stamp := func(name string) *clock.Timestamp {
		zone := time.FixedZone("", rapid.IntRange(-14*60, 14*60).Draw(rt, name+"'s zone")*60)
		at := time.Unix(rapid.Int64Range(-1<<33, 1<<35).Draw(rt, name), rapid.Int64Range(0, 999_999_999).Draw(rt, name+"'s fraction"))
		if rapid.Bool().Draw(rt, name+" is there") {
			return clock.Stamp(at, zone)
		}
		return nil
	}
	r := &wire.Result{FinalResult: wire.FinalResult{ID: text("id"), Kind: catalog.Kind(text("kind")),
		Student: wire.Person{UserID: id.User(rapid.Int64().Draw(rt, "user")), Email: student.Email(text("email")), FirstName: text("first"), LastName: text("last")},
		Item:    wire.ResultItem{ID: id.Item(rapid.Int64().Draw(rt, "item")), Title: text("title"), Type: text("type"), TypeLabel: text("label")},
		Attempt: result.Attempt(text("attempt")), StartedAt: stamp("started"), CompletedAt: stamp("completed"), ReleasedAt: stamp("released"),
		Score: number("score"), MaxScore: number("max"), Percentage: number("percentage"), ScoreLabel: text("score label"), ResultURL: text("url")}}
	if rapid.Bool().Draw(rt, "sections") {
		sections, err := json.MarshalIndent(map[string]any{text("section"): number("score of it"), "reading": text("words")}, "", rapid.SampledFrom([]string{"", " "}).Draw(rt, "indent"))
		if err != nil {
			rt.Fatal(err)
		}
		r.Sections = sections
	}
	if rapid.Bool().Draw(rt, "practiced") {
		practiced := text("section practiced")
		r.SectionPracticed = &practiced
	}
	return r
}
