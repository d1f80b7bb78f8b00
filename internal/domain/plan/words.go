package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Words say what happened, as a sentence without its subject, the actor. An event that a later version of
// the program wrote is called by its name.
func (e Entry) Words() string {
	d := detail(e.Detail)
	if name, about := strings.CutPrefix(e.Event, "test_"); about && d.has("slot") {
		return d.describeTest(name)
	}
	switch e.Event {
	case "created":
		return "started the plan, with " + d.list("changes")
	case "updated":
		return "changed " + d.changes()
	case "closed":
		if d.has("reason") {
			return "closed the plan: " + closedWords(d.text("reason"))
		}
		return "turned the plan off"
	case "paused":
		return "paused the plan"
	case "resumed":
		return "resumed the plan"
	case "official_result":
		return "recorded the official result: " + d.text("score") + " on " + d.text("date")
	case "drill":
		return fmt.Sprintf("gave the drill “%s” (%s) after test %s, due %s", d.text("title"), d.section(), d.text("slot"), d.text("due_on"))
	case "drill_withdrawn":
		return fmt.Sprintf("took the drill “%s” (%s) back", d.text("title"), d.section())
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
	"planned": "planned {test} for {opens} to {due}", "opened": "opened {test}, due {due}", "unfilled": "found no unseen {paper} for {test}",
	"due_earlier": "made {test} due earlier, on {due}", "missed": "found {test} missed; it was due {due}", "withdrawn": "took {test} back",
	"dropped": "gave {test} up, which was planned for {opens}", "started": "saw {test} begun",
	"held": "saw {test} handed in; its result is under review", "finished": "counted {test}: {score}",
	"remarked": "counted {test} again: {score} in place of {was}", "skipped": "skipped {test}", "opened_today": "opened {test} on this day",
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
	paper := "whole test"
	if d.has("section") {
		paper = d.section() + " paper"
	}
	text := strings.NewReplacer("{test}", test+")", "{paper}", paper, "{opens}", d.text("opens_on"), "{due}", d.text("due_on"),
		"{score}", d.text("score"), "{was}", d.text("was")).Replace(words)
	if d.has("late") {
		text += ", late"
	}
	return text
}

// closedWords say why the schedule has closed a plan.
func closedWords(reason string) string {
	switch reason {
	case AccessOver:
		return "access is over"
	case ExamOver:
		return "the exam is over"
	}
	return reason
}

// changes are the changed settings with what each was and is.
func (d detail) changes() string {
	values, known := d["values"].(map[string]any)
	if !known {
		return d.list("changes")
	}
	var all []string
	for _, name := range strings.Split(d.list("changes"), ", ") {
		one := name
		if v, ok := values[strings.ReplaceAll(name, " ", "_")].(map[string]any); ok {
			one += " from " + value(v["from"]) + " to " + value(v["to"])
		}
		all = append(all, one)
	}
	return strings.Join(all, "; ")
}

// value is a setting's value in words.
func value(v any) string {
	var parts []string
	switch v := v.(type) {
	case nil:
	case bool:
		if v {
			return "on"
		}
		return "off"
	case []any:
		for _, one := range v {
			parts = append(parts, fmt.Sprint(one))
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, strings.ReplaceAll(name, "_", " ")+" "+fmt.Sprint(v[name]))
		}
	default:
		return fmt.Sprint(v)
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
