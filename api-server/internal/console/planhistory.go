package console

import (
	"fmt"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/plan"
)

// planEntry is a line of a plan's history in words.
type planEntry struct {
	At   time.Time
	Who  string
	Key  bool // Who is an API key's name
	What string
}

func newPlanEntry(e plan.Entry) planEntry {
	shown := planEntry{At: e.At, Who: e.Actor, What: describe(e)}
	switch e.Actor {
	case plan.ActorSchedule:
		shown.Who = "the schedule"
	case plan.ActorPlatform:
		shown.Who = "the platform"
	default:
		shown.Key = true
	}
	return shown
}

// describe says what happened. An event that a later version of the program wrote is shown by
// its name.
func describe(e plan.Entry) string {
	d := detail(e.Detail)
	if name, about := strings.CutPrefix(e.Event, "test_"); about && d.has("slot") {
		return d.describeTest(name)
	}
	switch e.Event {
	case "created":
		return "started the plan, with " + d.list("changes")
	case "updated":
		return "changed " + d.list("changes")
	case "closed":
		if d.has("reason") {
			return "closed the plan: " + d.text("reason")
		}
		return "turned the plan off"
	case "paused":
		return "paused the plan"
	case "resumed":
		return "resumed the plan"
	case "test_skipped":
		return "skipped the next test"
	case "test_opened_today":
		return "opened the next test on this day"
	case "official_result":
		return "recorded the official result: " + d.text("score") + " on " + d.text("date")
	case "drill":
		return fmt.Sprintf("gave the drill “%s” (%s) after test %s, due %s", d.text("title"), d.section(), d.text("slot"), d.text("due_on"))
	case "pace":
		return "moved the pace from " + d.text("from") + " to " + d.text("to")
	case "at_risk":
		if d.text("at_risk") == "true" {
			return "found the plan at risk"
		}
		return "found the plan no longer at risk"
	}
	return e.Event
}

// detail is what a line of history was written with.
type detail map[string]any

func (d detail) has(name string) bool { return d[name] != nil }

func (d detail) text(name string) string { return fmt.Sprint(d[name]) }

func (d detail) section() string { return strings.ReplaceAll(d.text("section"), "_", " ") }

func (d detail) list(name string) string {
	all, _ := d[name].([]any)
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = strings.ReplaceAll(fmt.Sprint(one), "_", " ")
	}
	if len(names) == 0 {
		return "no change"
	}
	return strings.Join(names, ", ")
}

var testWords = map[string]string{
	"planned": "planned {test} for {opens} to {due}", "opened": "opened {test}, due {due}", "unfilled": "found no unseen paper for {test}",
	"due_earlier": "made {test} due earlier, on {due}", "missed": "found {test} missed; it was due {due}", "withdrawn": "took {test} back",
	"dropped": "gave {test} up, which was planned for {opens}", "started": "saw {test} begun",
	"held": "saw {test} handed in; its result is under review", "finished": "counted {test}: {score}",
}

func (d detail) describeTest(what string) string {
	words, known := testWords[what]
	if !known {
		words = what + " {test}"
	}
	test := "test " + d.text("slot") + " (" + strings.ReplaceAll(d.text("kind"), "_", " ")
	if d.has("section") {
		test += ", " + d.section()
	}
	return strings.NewReplacer("{test}", test+")", "{opens}", d.text("opens_on"), "{due}", d.text("due_on"), "{score}", d.text("score")).Replace(words)
}
