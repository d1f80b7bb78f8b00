package testplan

import (
	"context"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/plan"
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
	p := preparation(s.plan, s.who.Organization.Name)
	p.FirstName = s.account.FirstName
	_, err := s.Mail.Queue(ctx, tx, s.now, email.Message{Organization: s.who.Organization.ID, User: s.account.ID, Recipient: string(s.account.Email),
		Content: email.PlanNotice{Preparation: p, ExamDate: s.plan.Goal.ExamDate,
			LastDay: plan.LastDay(s.plan.Goal.ExamDate, s.enrolment.EndDate), LoginURL: s.PublicURL + "/sign-in/"}})
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
func (j *job) mail(ctx context.Context, to string, c email.Content) error {
	_, err := j.Mail.Queue(ctx, j.tx, j.now, email.Message{Organization: j.plan.Organization, User: j.plan.User, Recipient: to, Content: c})
	return err
}

// preparation is what every mail of the plan says, with the student's name.
func (j *job) preparation(ctx context.Context) (p email.Preparation, name string, err error) {
	o, err := j.organization(ctx, j.plan.Organization)
	if err != nil {
		return p, "", err
	}
	a, err := j.account(ctx, j.plan.User)
	if err != nil {
		return p, "", err
	}
	return preparation(j.plan, o.Name), strings.TrimSpace(a.FirstName + " " + a.LastName), nil
}

// tellOpen tells the student that a test is open.
func (j *job) tellOpen(ctx context.Context, t plan.Test, item catalog.Item, due time.Time) error {
	p, _, err := j.preparation(ctx)
	if err != nil {
		return err
	}
	a, err := j.account(ctx, j.plan.User)
	if err != nil {
		return err
	}
	safe, err := plan.SafeExamBrowser(ctx, j.tx, j.plan.Organization, j.plan.User)
	if err != nil {
		return err
	}
	p.FirstName = a.FirstName
	return j.mail(ctx, string(a.Email), email.PlanTestOpen{Preparation: p, Test: words(t), Title: item.Title, Due: due,
		TimeZone: j.plan.Settings.TimeZone, SafeBrowser: safe, LoginURL: j.PublicURL + "/sign-in/"})
}

// tellResult tells staff of a result, with its link, and the extra recipients without.
func (j *job) tellResult(ctx context.Context, s plan.Slot) error {
	p, name, err := j.preparation(ctx)
	if err != nil {
		return err
	}
	item, err := j.item(ctx, j.plan.Organization, id.Item(s.Paper))
	if err != nil {
		return err
	}
	summary := email.PlanResult{Preparation: p, Student: name, Test: words(s.Test), Title: item.Title, Score: s.Score.String()}
	if s.Kind != plan.SkillsCheck {
		summary.Score = catalog.Label(j.plan.Exam, *s.Score, item.MaxScore)
	}
	for _, c := range scaleOf(j.plan.Exam).Sections {
		if n, ok := s.Sections[c.Name]; ok {
			summary.Sections = append(summary.Sections, email.SectionMark{Name: sectionName(c.Name), Score: n.String()})
		}
	}
	for _, to := range j.plan.Settings.ExtraRecipients {
		if err := j.mail(ctx, to, summary); err != nil {
			return err
		}
	}
	linked := summary
	linked.ResultURL = j.PublicURL + "/results/" + j.done[s.Assignment].Ref
	for _, to := range j.plan.Settings.StaffRecipients {
		if err := j.mail(ctx, to, linked); err != nil {
			return err
		}
	}
	return nil
}

// alert asks the staff to look at the plan.
func (j *job) alert(ctx context.Context, reason string, t plan.Test) error {
	p, name, err := j.preparation(ctx)
	if err != nil {
		return err
	}
	mail := email.PlanAlert{Preparation: p, Student: name, Reason: reason}
	if reason == unfilled {
		mail.Test = words(t)
	}
	for _, to := range j.plan.Settings.StaffRecipients {
		if err := j.mail(ctx, to, mail); err != nil {
			return err
		}
	}
	return nil
}
