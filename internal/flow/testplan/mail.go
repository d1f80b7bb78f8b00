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

func preparation(s plan.Stored, organization string) email.Preparation {
	scale, _ := catalog.ScaleOf(s.Exam)
	return email.Preparation{Organization: organization, Exam: scale.Label, Course: s.CourseName, Target: s.TargetScore.String()}
}

// notice mails the student that a plan has begun.
func (s *setting) notice(ctx context.Context, tx *pg.Tx) error {
	p := preparation(s.plan, s.Who.Organization.Name)
	p.FirstName = s.Account.FirstName
	_, err := s.Mail.Queue(ctx, tx, s.Now, email.Message{Organization: s.Who.Organization.ID, User: s.Account.ID, Recipient: string(s.Account.Email),
		Content: email.PlanNotice{Preparation: p, ExamDate: s.plan.ExamDate,
			LastDay: plan.LastDay(s.plan.ExamDate, s.enrollment.EndDate), LoginURL: s.PublicURL + "/sign-in/"}})
	return err
}

// words name the purpose of a test.
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

// sectionName makes "Reading writing" of reading_writing.
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

// preparation returns what every mail of the plan says, and the student's account.
func (j *job) preparation() (email.Preparation, student.Account) {
	return preparation(j.plan, j.organizations[j.plan.Organization].Name), j.accounts[plan.Student{Organization: j.plan.Organization, User: j.plan.User}]
}

func fullName(a student.Account) string { return strings.TrimSpace(a.FirstName + " " + a.LastName) }

// mailOpen mails the student that a test is open, unless the step is quiet.
func (j *job) mailOpen(t plan.Test) {
	if j.quiet {
		return
	}
	p, a := j.preparation()
	p.FirstName = a.FirstName
	j.mail(string(a.Email), email.PlanTestOpen{Preparation: p, Test: words(t), Title: j.items[id.Item(t.Paper)].Title,
		Due: plan.DueAt(t.DueOn, j.seen.Zone), TimeZone: j.plan.TimeZone,
		SafeBrowser: j.browsers[plan.Student{Organization: j.plan.Organization, User: j.plan.User}], LoginURL: j.PublicURL + "/sign-in/"})
}

// mailResult mails a result to staff, with its link, and to the extra recipients, without the link.
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
	for _, to := range j.plan.ExtraRecipients {
		j.mail(to, summary)
	}
	linked := summary
	linked.ResultURL = wire.ResultURL(j.PublicURL, j.done[s.Assignment].Ref)
	for _, to := range j.toStaff() {
		j.mail(to, linked)
	}
}

// toStaff returns the plan's recipients who are staff today.
func (j *job) toStaff() []string {
	return plan.ActiveStaff(j.plan.StaffRecipients, j.staff[j.plan.Organization])
}

// alert mails staff that the plan needs attention.
func (j *job) alert(reason string, t plan.Test) {
	p, a := j.preparation()
	mail := email.PlanAlert{Preparation: p, Student: fullName(a), Reason: reason}
	if reason == email.AlertUnfilled {
		mail.Test = words(t)
	}
	for _, to := range j.toStaff() {
		j.mail(to, mail)
	}
}
