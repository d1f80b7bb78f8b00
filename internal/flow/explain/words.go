package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/domain/webhook/history"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

func quoted(title string) string { return "“" + title + "”" }

// spaced turns a word of the wire into words.
func spaced[T ~string](word T) string { return strings.ReplaceAll(string(word), "_", " ") }

func capital(sentence string) string {
	first, size := utf8.DecodeRuneInString(sentence)
	return string(unicode.ToUpper(first)) + sentence[size:]
}

func ofCommand(e audit.Entry) Entry {
	return Entry{At: e.At, Kind: Command, Summary: capital(e.Action) + ": " + e.Target, By: actor(e.Actor)}
}

func actor(a audit.Actor) string {
	switch a.Kind {
	case audit.PartnerKey:
		return keyNamed(a.Name)
	case audit.PlatformKey:
		return byPlatform
	case audit.Schedule:
		return bySchedule
	case audit.Operator:
		return "the operator, for " + a.Name
	case audit.Staff, audit.Student, audit.Nobody:
	}
	return a.Name
}

const (
	byPlatform = "the platform"
	bySchedule = "the schedule"
)

func keyNamed(name string) string { return "the API key " + quoted(name) }

func importOf(source string, run any) string {
	return fmt.Sprintf("roster import %v of the source %s", run, quoted(source))
}

// effectWords say what each effect of a roster run does, in the order in which they are shown.
var effectWords = []struct {
	effect roster.Effects
	words  string
}{
	{roster.CreateAccount, "make the account"},
	{roster.CreateMembership, "add the person"},
	{roster.Activate, "make the membership active again"},
	{roster.Deactivate, "end the membership"},
	{roster.ChangeProfile, "change the email or the names"},
	{roster.CreateIdentity, "take in the external id"},
	{roster.ReplaceIdentity, "replace the external id"},
	{roster.DropIdentity, "forget the external id"},
	{roster.MarkPresent, "note that the person is in the file again"},
	{roster.MarkAbsent, "note that the person is missing from the file"},
}

func ofTouch(t roster.Touch) Entry {
	var effects []string
	for _, e := range effectWords {
		if t.Effects.Has(e.effect) {
			effects = append(effects, e.words)
		}
	}
	e := Entry{At: t.At, Kind: Roster, By: t.RequestedBy, IDs: IDs{RosterRun: t.Run}}
	e.Summary = capital(importOf(t.Source, t.Run)) + ": " + strings.Join(effects, ", ") + place(t.Line, t.ExternalID)
	var why []string
	if t.Undoes != 0 {
		why = append(why, fmt.Sprintf("It takes import %d back.", t.Undoes))
	}
	if t.Line == 0 && t.Effects.Has(roster.MarkAbsent) && t.Undoes == 0 {
		why = append(why, "The person is missing from a file that lists everybody.")
	}
	if t.BeforeID != "" {
		why = append(why, "The external id was "+t.BeforeID+".")
	}
	if t.BeforeEmail != "" && t.BeforeEmail != t.Email {
		why = append(why, "The email was "+t.BeforeEmail+".")
	}
	e.Reason = strings.Join(append(why, stateWords(t)...), " ")
	return e
}

// place is where in the file a person is.
func place(line int, externalID string) string {
	if line == 0 {
		return fmt.Sprintf(" (%s)", externalID)
	}
	return fmt.Sprintf(" (%s, line %d)", externalID, line)
}

// stateWords say how far a run has come that has not simply been applied.
func stateWords(t roster.Touch) (why []string) {
	switch t.State {
	case roster.Held:
		why = append(why, "Nothing was changed yet: the import is held until somebody approves it.")
		for _, r := range t.Reasons {
			why = append(why, sentence(r.Text))
		}
	case roster.Discarded:
		if t.DecidedBy == audit.Scheduled.Name {
			why = append(why, "Nothing was changed: the import was held, and ended by itself.")
			break
		}
		why = append(why, fmt.Sprintf("Nothing was changed: %s discarded the import.", cmp.Or(t.DecidedBy, "somebody")))
	case roster.Queued, roster.Applying:
		why = append(why, "The import is still under way.")
	case roster.Undone:
		why = append(why, "Another import has taken this one back.")
	case roster.Applied:
		if t.DecidedBy != "" {
			why = append(why, t.DecidedBy+" approved it.")
		}
	case roster.Uploading, roster.Previewed, roster.Refused:
	}
	return why
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(text string) string {
	if text = strings.TrimSpace(text); text == "" || strings.HasSuffix(text, ".") {
		return capital(text)
	}
	return capital(text) + "."
}

func ofRemark(m roster.Remark) Entry {
	e := Entry{At: m.At, Kind: Roster, IDs: IDs{RosterRun: m.Run}, Reason: sentence(m.Message)}
	e.Summary = fmt.Sprintf("%s remarked %s in %s%s", capital(importOf(m.Source, m.Run)), spaced(m.Code), m.File, place(m.Line, m.PersonExternalID))
	if m.Severity == roster.Error {
		e.Reason += " The row was not applied."
	}
	return e
}

func ofMembership(m membership) []Entry {
	joined := Entry{At: m.JoinedAt, Kind: Membership, Summary: "Became a student", IDs: IDs{RosterRun: m.Run}}
	if m.Role.Staff() {
		joined.Summary = fmt.Sprintf("Became a member, and is %s now", m.Role)
	}
	switch {
	case m.Run != 0:
		joined.Reason = sentence(importOf(m.Source, m.Run) + " added the person")
	case m.Via == org.ViaRoster:
		joined.Reason = "A roster import added the person."
	case m.Via == org.ViaLTI:
		joined.Reason = "A launch from the learning management system added the person."
	case m.Via == org.ViaStaff:
		joined.Reason = "The platform or staff added the person."
	case m.Via == org.ViaAPI:
		joined.Reason = "A provisioning call added the person."
	}
	if m.Role.Staff() {
		joined.Reason += " Lists, results and events leave staff out."
	}
	if m.Status != org.MemberInactive {
		return []Entry{joined}
	}
	left := Entry{At: m.UpdatedAt, Kind: Membership, Summary: "The membership became inactive"}
	if left.Reason = "The platform or staff ended it."; m.EndedBy != "" {
		left.Reason = fmt.Sprintf("A roster import of the source %s ended it: the person was missing from the file.", quoted(m.EndedBy))
	}
	return []Entry{left, joined}
}

// ofGrants adds what the calendar has done to each enrollment since.
func ofGrants(all []course.Grant, now time.Time, zone *time.Location) (entries []Entry) {
	made := -1 // the entry of the enrollment that grants belong to
	for _, g := range all {
		ids := IDs{Enrollment: g.ID, Course: g.Course.ID}
		switch {
		case g.Ref == "":
			made = len(entries)
			entries = append(entries, Entry{At: g.At, Kind: Enrollment, IDs: ids, Summary: "Enrolled in " + quoted(g.Course.Name), Reason: accessWords(g.Enrollment, clock.DateIn(now, zone))})
			entries = append(entries, byCalendar(g.Enrollment, ids, g.At, now, zone)...)
		case g.At.Equal(entries[made].At):
			entries[made].Reason += " The call's reference is " + g.Ref + "."
		default:
			entries = append(entries, Entry{At: g.At, Kind: Enrollment, IDs: ids, Summary: "Access to " + quoted(g.Course.Name) + " given or extended, for the reference " + g.Ref,
				Reason: "Another call with the reference does not extend it again."})
		}
	}
	return entries
}

func accessWords(e course.Enrollment, today clock.Date) string {
	words := fmt.Sprintf("The status is %s now, with access from %s to %s", spaced(e.Status(today)), e.StartDate, e.EndDate)
	if e.GracePeriodEnd != e.EndDate {
		words += fmt.Sprintf(" and a grace period until %s", e.GracePeriodEnd)
	}
	if e.State == course.Suspended && e.PartnerSuspended {
		words += "; your own API key suspended it and may resume it"
	}
	words += "."
	if e.Source != "" {
		words += " The label of its last call is " + quoted(e.Source) + "."
	}
	return words
}

// byCalendar are the days with which a running enrollment's status has changed by itself.
func byCalendar(e course.Enrollment, ids IDs, made, now time.Time, zone *time.Location) (entries []Entry) {
	if e.State != course.Running {
		return nil
	}
	title := quoted(e.Course.Name)
	on := func(day clock.Date, summary, reason string) {
		if at := clock.DayStart(day, zone); at.After(made) && !at.After(now) {
			entries = append(entries, Entry{At: at, Kind: Enrollment, IDs: ids, Summary: summary, Reason: reason})
		}
	}
	over := fmt.Sprintf("The end date was %s.", e.EndDate)
	on(e.StartDate, "Access to "+title+" began", "The start date was reached.")
	if e.GracePeriodEnd != e.EndDate {
		on(e.EndDate.AddDays(1), "The grace period of "+title+" began", over)
		over = fmt.Sprintf("The end date was %s, and the grace period ended on %s.", e.EndDate, e.GracePeriodEnd)
	}
	on(e.GracePeriodEnd.AddDays(1), "Access to "+title+" expired", over)
	return entries
}

func ofDecision(d plan.Decision) Entry {
	e := Entry{At: d.At, Kind: Plan, Summary: fmt.Sprintf("Test plan for %s: %s", catalog.TypeLabel(d.Exam), d.Words()), IDs: IDs{Plan: d.Plan}}
	switch d.Actor {
	case plan.ActorPlatform:
		e.By = byPlatform
	case plan.ActorSchedule:
		e.By = bySchedule
	default:
		e.By = keyNamed(d.Actor)
		if name, staff := plan.StaffOf(d.Actor); staff {
			e.By = name
		}
	}
	return e
}

var sourceWords = map[assignment.Source]string{
	assignment.ViaAPI:  "Your program assigned it.",
	assignment.ViaLTI:  "A link in the learning management system assigned it.",
	assignment.ViaPlan: "The test plan assigned it.",
	assignment.ViaApp:  "The platform assigned it.",
}

func ofAssignment(s assignment.Step, zone *time.Location) Entry {
	e := Entry{At: s.At, Kind: Assignment, IDs: IDs{Assignment: s.Ref(), Result: s.ResultRef}}
	switch s.Stage {
	case assignment.StageAssigned:
		e.Summary, e.Reason = "Assigned "+quoted(s.ItemTitle)+", a "+s.Kind, sourceWords[s.Source]
		if s.Kind == string(catalog.Assessment) {
			e.Summary = "Assigned " + quoted(s.ItemTitle) + ", an assessment"
		}
		if s.DueAt != nil {
			e.Summary += ", due " + clock.DateIn(*s.DueAt, zone).String()
		}
	case assignment.StageOverdue:
		e.Summary, e.Reason = quoted(s.ItemTitle)+" is overdue", "It was not handed in by its due date, and expires 30 days after it."
	case assignment.StageCompleted:
		e.Summary = quoted(s.ItemTitle) + " was completed"
	case assignment.StageExpired:
		e.Summary, e.Reason = quoted(s.ItemTitle)+" expired", "It was withdrawn, or not handed in within 30 days of its due date."
	}
	return e
}

func ofResult(s result.Step) Entry {
	e := Entry{At: s.At, Kind: Result, IDs: IDs{Result: s.Ref}}
	switch s.Stage {
	case result.StageBegun:
		e.Summary = "Began " + quoted(s.ItemTitle)
	case result.StageHandedIn:
		if e.Summary = "Handed in " + quoted(s.ItemTitle); s.Position == 0 {
			e.Reason = "The result waits for review, marking or feedback, and is not final."
		}
	case result.StageFinal:
		e.Summary = "The result of " + quoted(s.ItemTitle) + " is final"
		if s.Score != nil && s.MaxScore != nil {
			e.Summary += ": " + catalog.Label(s.Type, *s.Score, *s.MaxScore)
		}
	}
	return e
}

func ofMail(m email.Sending) Entry {
	e := Entry{At: m.CreatedAt, Kind: Mail, Summary: fmt.Sprintf("Mail %s to %s: %s", quoted(spaced(m.Type)), m.Recipient, m.Status), Reason: sentence(m.Detail)}
	switch m.Status {
	case email.Sent:
		e.Reason = "The mail server took it."
	case email.Uncertain:
		e.Reason = strings.TrimSpace(e.Reason + " It may have arrived, and is not sent again by itself.")
	case email.Failed, email.Queued:
		if m.Attempts > 0 {
			e.Reason = strings.TrimSpace(fmt.Sprintf("%s Attempts so far: %d.", e.Reason, m.Attempts))
		}
	case email.Suppressed:
	}
	return e
}

func ofEvent(e history.Event) Entry {
	shown := Entry{At: e.CreatedAt, Kind: Event, Summary: "Event " + string(e.Type), IDs: IDs{Event: &e.ID}}
	if words := dataWords(e); words != "" {
		shown.Summary += ": " + words
	}
	return shown
}

// dataWords say in a line what is in an event's data. An event of another version may have none of it.
func dataWords(e history.Event) string {
	switch e.Type {
	case webhook.StudentJoined:
		return "the person became a student"
	case webhook.StudentLeft:
		return "the person is a student no longer"
	case webhook.EnrollmentCreated, webhook.EnrollmentUpdated, webhook.EnrollmentExpiring, webhook.EnrollmentEnded:
		var data wire.EnrollmentEvent
		if json.Unmarshal(e.Data, &data) == nil {
			return enrollmentWords(e.Type, data)
		}
	case webhook.AssignmentCreated, webhook.AssignmentOverdue:
		var data wire.Assignment
		if json.Unmarshal(e.Data, &data) == nil {
			return quoted(data.Item.Title)
		}
	case webhook.ResultFinal:
		var data wire.FinalResult
		if json.Unmarshal(e.Data, &data) == nil {
			return quoted(data.Item.Title) + ", " + data.ScoreLabel
		}
	case webhook.Ping:
		return "a test of a URL"
	}
	return ""
}

func enrollmentWords(t webhook.Type, data wire.EnrollmentEvent) string {
	e, p := data.Enrollment, data.Previous
	title := quoted(e.CourseName)
	switch t {
	case webhook.EnrollmentExpiring:
		return fmt.Sprintf("%s ends on %s", title, e.EndDate)
	case webhook.EnrollmentEnded:
		return fmt.Sprintf("%s was %s and is %s", title, spaced(data.PreviousStatus), spaced(e.Status))
	default:
	}
	var changes []string
	if p != nil {
		if p.Status != nil {
			changes = append(changes, fmt.Sprintf("was %s and is %s", spaced(*p.Status), spaced(e.Status)))
		}
		if p.StartDate != nil {
			changes = append(changes, fmt.Sprintf("begins on %s instead of %s", e.StartDate, *p.StartDate))
		}
		if p.EndDate != nil {
			changes = append(changes, fmt.Sprintf("ends on %s instead of %s", e.EndDate, *p.EndDate))
		}
	}
	if len(changes) == 0 {
		return fmt.Sprintf("%s is %s, from %s to %s", title, spaced(e.Status), e.StartDate, e.EndDate)
	}
	return title + " " + strings.Join(changes, ", ")
}

// unselected is why an event has no delivery.
const unselected = "No webhook URL that there is now selected it."

// whyStatus says in sentences why a delivery has its status, and what goes on.
func whyStatus(d history.Delivery) string {
	last := ""
	if n := len(d.Answers); n > 0 {
		last = webhook.Explain(d.Answers[n-1].Cause)
	}
	switch d.Status {
	case webhook.StatusWaiting:
		switch {
		case last == "":
			return "It waits for its first attempt."
		case d.Answers[len(d.Answers)-1].Verdict == webhook.Delivered:
			return "Somebody asked for it to be sent again."
		}
		return fmt.Sprintf("Attempt %d failed, and it is tried again. %s", d.Tried, last)
	case webhook.StatusInFlight:
		return "An attempt is under way."
	case webhook.StatusDeclined:
		return last + " It is not tried again by itself; resend it once the receiver takes it."
	case webhook.StatusExhausted:
		return fmt.Sprintf("The last of %d attempts failed, and it is not tried again by itself; resend it, or recover the time. %s", d.Tried, last)
	case webhook.StatusSkipped:
		if d.SwitchedOn {
			return "The URL was switched off at the time; recover the time to send it."
		}
		return strings.TrimSpace("The URL is switched off; turn it on and recover the time to send it. " + sentence(d.OffReason))
	case webhook.StatusSuperseded:
		return "The URL has accepted a newer event about the same result, so this one is not sent any more."
	case webhook.StatusCancelled:
		return "It is not sent: its URL was deleted, or the person's data were erased."
	case webhook.StatusDelivered:
	}
	return last
}
