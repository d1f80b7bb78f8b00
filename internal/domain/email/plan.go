package email

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

// The mails of test plans.
const (
	TypePlanNotice   Type = "plan_notice"    // to the student: a plan has begun
	TypePlanTestOpen Type = "plan_test_open" // to the student: a test is open
	TypePlanUpdate   Type = "plan_update"    // to the student: drills, and tests that are due earlier
	TypePlanResult   Type = "plan_result"    // to staff: a result, with its link
	TypePlanSummary  Type = "plan_summary"   // to extra recipients: a result, without a link
	TypePlanAlert    Type = "plan_alert"     // to staff: at risk, or no paper left
)

// Preparation is what every mail of a plan speaks of.
type Preparation struct {
	FirstName    string `json:"first_name,omitempty"` // of whom the mail greets; "": nobody by name
	Organization string `json:"organization"`         // its display name
	Exam         string `json:"exam"`                 // its display name
	Course       string `json:"course"`
	Target       string `json:"target"` // the target score
}

// PlanNotice tells a student of the plan that begins.
type PlanNotice struct {
	Preparation
	ExamDate clock.Date `json:"exam_date,omitzero"` // zero: none
	LastDay  clock.Date `json:"last_day"`           // on which a test may be open
	LoginURL string     `json:"login_url"`
}

// PlanTestOpen tells a student that a test has opened.
type PlanTestOpen struct {
	Preparation
	Test        string    `json:"test"` // what it is for, in words
	Title       string    `json:"title"`
	Due         time.Time `json:"due"`
	TimeZone    string    `json:"time_zone"` // in which Due is shown
	SafeBrowser bool      `json:"safe_browser,omitempty"`
	LoginURL    string    `json:"login_url"`
}

// PlanUpdate announces to a student what is to be done besides the tests, which PlanTestOpen announces.
type PlanUpdate struct {
	Preparation
	Tasks    []PlanTask `json:"tasks"`
	TimeZone string     `json:"time_zone"` // in which due dates are shown
	LoginURL string     `json:"login_url"`
}

// PlanTask is a drill, or an open test that is due earlier than it was.
type PlanTask struct {
	Drill string    `json:"drill,omitempty"` // the section in words; "": it is a test
	Test  string    `json:"test,omitempty"`  // what the test is for, in words
	Title string    `json:"title"`
	Due   time.Time `json:"due"`
}

// PlanResult tells of a counted result: with ResultURL to staff, without to others. With Was, it
// corrects a result that an earlier mail announced.
type PlanResult struct {
	Preparation
	Student   string        `json:"student"` // full name
	Test      string        `json:"test"`
	Title     string        `json:"title"`
	Score     string        `json:"score"`
	Was       string        `json:"was,omitempty"` // the score before; "": it is no correction
	Sections  []SectionMark `json:"sections,omitempty"`
	ResultURL string        `json:"result_url,omitempty"`
}

// SectionMark is one section's score.
type SectionMark struct {
	Name  string `json:"name"`
	Score string `json:"score"`
	Was   string `json:"was,omitempty"` // the score before, where a correction has changed it
}

// PlanAlert asks staff to look at a plan.
type PlanAlert struct {
	Preparation
	Student string `json:"student"`
	Reason  string `json:"reason"` // AlertAtRisk or AlertUnfilled
	Test    string `json:"test,omitempty"`
	Section string `json:"section,omitempty"` // whose paper is missing, in words; "": a whole test
	Page    string `json:"page,omitempty"`    // of the console, where it is mended; "" in mails of the version before
}

// The reasons of an alert.
const (
	AlertAtRisk   = "at_risk"
	AlertUnfilled = "unfilled"
)

// Type implements Content.
func (PlanNotice) Type() Type { return TypePlanNotice }

// Type implements Content.
func (PlanTestOpen) Type() Type { return TypePlanTestOpen }

// Type implements Content.
func (PlanUpdate) Type() Type { return TypePlanUpdate }

// Type implements Content.
func (r PlanResult) Type() Type {
	if r.ResultURL == "" {
		return TypePlanSummary
	}
	return TypePlanResult
}

// Type implements Content.
func (PlanAlert) Type() Type { return TypePlanAlert }

func (p Preparation) view(subject, heading string) view {
	return view{FirstName: safeName(p.FirstName), Organization: p.Organization, Initial: initial(p.Organization), Subject: subject, Heading: heading}
}

func (n PlanNotice) view(t *lang.Texts) view {
	v := n.Preparation.view(t.T("mail.plan.subject", "Exam", n.Exam), t.T("mail.plan.heading"))
	v.Preheader = t.T("mail.plan.preheader")
	v.Text = []string{t.T("mail.plan.text", "Organization", n.Organization, "Exam", n.Exam)}
	v.Facts = []fact{{Label: t.T("label.course"), Value: n.Course}, {Label: t.T("label.target"), Value: t.Digits(n.Target)}}
	if !n.ExamDate.IsZero() {
		v.Facts = append(v.Facts, fact{Label: t.T("label.exam"), Value: t.Day(n.ExamDate)})
	}
	v.Facts = append(v.Facts, fact{Label: t.T("label.last_test"), Value: t.Day(n.LastDay)})
	v.Button = button{n.LoginURL, t.T("mail.sign_in")}
	return v
}

func (o PlanTestOpen) view(t *lang.Texts) view {
	v := o.Preparation.view(t.T("mail.open.subject", "Exam", o.Exam), t.T("mail.open.heading"))
	v.Preheader = t.T("mail.open.preheader")
	v.Text = []string{t.T("mail.open.text")}
	if o.SafeBrowser {
		v.Text = append(v.Text, t.T("mail.secure_browser"))
	}
	v.Facts = []fact{{Label: t.T("label.test"), Value: o.Title}, {Label: t.T("label.for"), Value: purpose(t, o.Test)},
		{Label: t.T("label.due"), Value: dueIn(t, o.Due, o.TimeZone)}}
	v.Button = button{o.LoginURL, t.T("mail.begin")}
	return v
}

func (u PlanUpdate) view(t *lang.Texts) view {
	v := u.Preparation.view(t.T("mail.practice.subject", "Exam", u.Exam), t.T("mail.practice.heading"))
	v.Preheader = t.T("mail.practice.preheader")
	var drills, tests []fact
	for _, k := range u.Tasks {
		task := t.T("mail.practice.task", "Title", k.Title, "Due", dueIn(t, k.Due, u.TimeZone))
		if k.Drill != "" {
			drills = append(drills, fact{Label: t.T("mail.practice.drill", "Section", t.Word(k.Drill)), Value: task})
		} else {
			tests = append(tests, fact{Label: purpose(t, k.Test), Value: task})
		}
	}
	if len(tests) > 0 {
		v.Subject, v.Heading = t.T("mail.moved.subject", "Exam", u.Exam), t.T("mail.moved.heading")
		v.Text = append(v.Text, t.T("mail.moved.text"))
	}
	if len(drills) > 0 {
		v.Text = append(v.Text, t.T("mail.practice.text"))
	}
	v.Facts = slices.Concat(tests, drills)
	v.Button = button{u.LoginURL, t.T("mail.begin")}
	return v
}

// purpose is what a test is for, as a mail's content says it in English: "Mock exam", "Skills check: Reading".
func purpose(t *lang.Texts, english string) string {
	what, section, of := strings.Cut(english, ": ")
	if !of {
		return t.Word(english)
	}
	return t.Word(what) + ": " + t.Word(section)
}

func (r PlanResult) view() view {
	r.Student = safeName(r.Student)
	v := r.Preparation.view(fmt.Sprintf("%s result of %s: %s", r.Exam, r.Student, r.Score), "A test result")
	v.Preheader = r.Student + ": " + r.Score
	v.Text = []string{fmt.Sprintf("%s has finished a test of the plan for %s.", r.Student, r.Exam)}
	if r.Was != "" {
		v.Subject, v.Heading = fmt.Sprintf("Correction: %s result of %s: %s", r.Exam, r.Student, r.Score), "A corrected test result"
		v.Text = []string{fmt.Sprintf("A test of the plan for %s that %s has finished was marked again. This replaces the result that you were mailed before.", r.Exam, r.Student)}
	}
	v.Facts = []fact{{Label: "Student", Value: r.Student}, {Label: "Test", Value: r.Title}, {Label: "For", Value: r.Test},
		{Label: "Score", Value: corrected(r.Score, r.Was)}, {Label: "Target", Value: r.Target}}
	for _, s := range r.Sections {
		v.Facts = append(v.Facts, fact{Label: s.Name, Value: corrected(s.Score, s.Was)})
	}
	if r.ResultURL != "" {
		v.Button = button{r.ResultURL, "Show the result"}
	}
	v.Why = fmt.Sprintf("You get this mail because %s named this address to receive the results.", r.Organization)
	return v
}

// corrected adds to a score what it was before, if it has changed.
func corrected(score, was string) string {
	if was == "" || was == score {
		return score
	}
	return score + " (before: " + was + ")"
}

func (a PlanAlert) view() view {
	a.Student = safeName(a.Student)
	v := a.Preparation.view(fmt.Sprintf("%s plan of %s is at risk", a.Exam, a.Student), "A plan is at risk")
	v.Text = []string{fmt.Sprintf("By the results so far, %s will probably not reach %s in time. Please look at the plan, and talk with the student.", a.Student, a.Target)}
	if a.Reason == AlertUnfilled {
		missing, others := "whole test", "no paper of a section can take its place either"
		if a.Section != "" {
			missing, others = a.Section+" paper", "no whole test and no paper of another section can take its place"
		}
		v.Subject, v.Heading = fmt.Sprintf("No unseen %s %s is left for %s", a.Exam, missing, a.Student), "No unseen "+missing+" is left"
		v.Text = []string{fmt.Sprintf("A test of the plan should be open (%s), but there is no %s that %s has not seen, and %s. Add a paper to the catalog, and the test opens at once; or skip the test.", a.Test, missing, a.Student, others)}
	}
	v.Preheader = a.Student
	v.Facts = []fact{{Label: "Student", Value: a.Student}, {Label: "Course", Value: a.Course}, {Label: "Target", Value: a.Target}}
	v.Button = button{a.Page, "Look at the plan"}
	v.Why = fmt.Sprintf("You get this mail because %s named this address to receive news of the plan.", a.Organization)
	return v
}

// student gives a plan's mail the sender's and the addressee's names.
func (p Preparation) student() Student {
	return Student{FirstName: p.FirstName, Organization: p.Organization}
}
