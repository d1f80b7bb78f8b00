package testplan

import (
	"context"
	"strings"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// The reasons of alerts.
const (
	atRisk   = email.AlertAtRisk
	unfilled = email.AlertUnfilled
)

func preparation(s plan.Stored, organization string) email.Preparation {
	scale, _ := catalog.ScaleOf(s.Exam)
	return email.Preparation{Organization: organization, Exam: scale.Label, Course: s.CourseName, Target: s.Goal.TargetScore.String()}
}

// notice tells the student that a plan has begun.
func (s *setting) notice(ctx context.Context, tx *pg.Tx) error {
	p := preparation(s.plan, s.Who.Organization.Name)
	p.FirstName = s.Account.FirstName
	_, err := s.Mail.Queue(ctx, tx, s.Now, email.Message{Organization: s.Who.Organization.ID, User: s.Account.ID, Recipient: string(s.Account.Email),
		Content: email.PlanNotice{Preparation: p, ExamDate: s.plan.Goal.ExamDate,
			LastDay: plan.LastDay(s.plan.Goal.ExamDate, s.enrollment.EndDate), LoginURL: s.PublicURL + "/sign-in/"}})
	return err
}

// words say what a test is for.
func words(t plan.Test) string {
	switch t.Kind {
	case plan.Baseline:
		return "Baseline"
	case plan.SkillsCheck:
		return "Skills check: " + sectionName(t.Section)
	case plan.Challenge:
		return "Challenge"
	case plan.Mock:
	}
	return "Mock exam"
}

// sectionName is reading_writing as Reading writing.
func sectionName(name string) string {
	name = strings.ReplaceAll(name, "_", " ")
	if name == "" {
		return name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// mail queues one mail of the plan.
func (j *job) mail(to string, c email.Content) {
	j.mails = append(j.mails, email.Message{Organization: j.plan.Organization, User: j.plan.User, Recipient: to, Content: c})
}

// preparation is what every mail of the plan says, with the student's account.
func (j *job) preparation() (email.Preparation, student.Account) {
	return preparation(j.plan, j.organizations[j.plan.Organization].Name), j.accounts[j.plan.User]
}

func fullName(a student.Account) string { return strings.TrimSpace(a.FirstName + " " + a.LastName) }

// mailOpen tells the student that a test is open, unless the call that opens it sends no mail.
func (j *job) mailOpen(t plan.Test) {
	if j.quiet {
		return
	}
	p, a := j.preparation()
	p.FirstName = a.FirstName
	j.mail(string(a.Email), email.PlanTestOpen{Preparation: p, Test: words(t), Title: j.items[id.Item(t.Paper)].Title,
		Due: plan.DueAt(t.DueOn, j.seen.Zone), TimeZone: j.plan.Settings.TimeZone,
		SafeBrowser: j.browsers[plan.Student{Organization: j.plan.Organization, User: j.plan.User}], LoginURL: j.PublicURL + "/sign-in/"})
}

// mailResult tells staff of a result, with its link, and the extra recipients without.
func (j *job) mailResult(s plan.Slot) {
	p, a := j.preparation()
	item := j.items[id.Item(s.Paper)]
	summary := email.PlanResult{Preparation: p, Student: fullName(a), Test: words(s.Test), Title: item.Title, Score: s.Score.String()}
	if s.Kind != plan.SkillsCheck {
		summary.Score = catalog.Label(j.plan.Exam, *s.Score, item.MaxScore)
	}
	for _, c := range scaleOf(j.plan.Exam).Sections {
		if n, ok := s.Sections[c.Name]; ok {
			summary.Sections = append(summary.Sections, email.SectionMark{Name: sectionName(c.Name), Score: n.String()})
		}
	}
	for _, to := range j.plan.Settings.ExtraRecipients {
		j.mail(to, summary)
	}
	linked := summary
	linked.ResultURL = wire.ResultURL(j.PublicURL, j.done[s.Assignment].Ref)
	for _, to := range j.toStaff() {
		j.mail(to, linked)
	}
}

// toStaff are the plan's recipients who are staff today.
func (j *job) toStaff() []string {
	return plan.ActiveStaff(j.plan.Settings.StaffRecipients, j.staff[j.plan.Organization])
}

// alert asks the staff to look at the plan.
func (j *job) alert(reason string, t plan.Test) {
	p, a := j.preparation()
	mail := email.PlanAlert{Preparation: p, Student: fullName(a), Reason: reason}
	if reason == unfilled {
		mail.Test = words(t)
	}
	for _, to := range j.toStaff() {
		j.mail(to, mail)
	}
}
