package testplan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
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
			LastDay: plan.LastDay(s.plan.ExamDate, s.enrollment.EndDate), LoginURL: wire.SignInURL(s.PublicURL, s.Who.Organization.Slug)}})
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

func (j *job) signInURL() string {
	return wire.SignInURL(j.PublicURL, j.organizations[j.plan.Organization].Slug)
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
		SafeBrowser: j.browsers[plan.Student{Organization: j.plan.Organization, User: j.plan.User}], LoginURL: j.signInURL()})
}

// addNews adds to what the next mail with news has, unless the step is quiet.
func (j *job) addNews(n plan.News) {
	if !j.quiet {
		j.plan.News = append(j.plan.News, n)
	}
}

// mailNews mails the student the news, and says whether the news have changed.
// There is one such mail a day: what comes later waits for the next day, unless it is due today
// (reference: plans#plan-mails). A closed plan has no news.
func (j *job) mailNews() (changed bool) {
	if len(j.plan.News) == 0 || j.quiet {
		return false
	}
	today := clock.DateIn(j.now, j.seen.Zone)
	urgent := slices.ContainsFunc(j.plan.News, func(n plan.News) bool { return !n.DueOn.After(today) })
	if j.plan.Status != plan.Closed && j.plan.NewsOn == today && !urgent {
		return true
	}
	tasks := j.newTasks()
	j.plan.News = nil
	if len(tasks) == 0 {
		return true
	}
	j.plan.NewsOn = today
	p, a := j.preparation()
	p.FirstName = a.FirstName
	j.mail(string(a.Email), email.PlanUpdate{Preparation: p, Tasks: tasks, TimeZone: j.plan.TimeZone, LoginURL: j.signInURL()})
	return true
}

// newTasks are the news that the student can still do something about.
func (j *job) newTasks() (tasks []email.PlanTask) {
	if j.plan.Status == plan.Closed {
		return nil
	}
	for _, n := range j.plan.News {
		task := email.PlanTask{Title: j.items[id.Item(n.Paper)].Title, Due: plan.DueAt(n.DueOn, j.seen.Zone)}
		switch {
		case n.Section != "":
			task.Drill = sectionName(n.Section)
			if j.overDrill(n) {
				continue
			}
		default:
			i := slices.IndexFunc(j.slots, func(s plan.Slot) bool { return s.Slot == n.Slot })
			if i < 0 || j.slots[i].State != plan.Opened || j.slots[i].DueOn != n.DueOn {
				continue
			}
			task.Test = words(j.slots[i].Test)
		}
		tasks = append(tasks, task)
	}
	return tasks
}

// overDrill says whether a drill that was given by an earlier step is begun, done or due.
func (j *job) overDrill(n plan.News) bool {
	return slices.ContainsFunc(j.drills[j.plan.ID], func(d plan.Drilled) bool {
		return d.Slot == n.Slot && d.Section == n.Section && (d.Status != string(assignment.Pending) || plan.DueAt(d.DueOn, j.seen.Zone).Before(j.now))
	})
}

// mailResult mails a result to staff, with its link, and to the extra recipients, without the link.
func (j *job) mailResult(f finished) {
	p, a := j.preparation()
	item := j.items[id.Item(f.Paper)]
	summary := email.PlanResult{Preparation: p, Student: fullName(a), Test: words(f.Test), Title: item.Title, Score: j.score(f.Slot, item)}
	if f.was != nil {
		summary.Was = j.score(*f.was, item)
	}
	for _, c := range scaleOf(j.plan.Exam).Sections {
		n, ok := f.Sections[c.Name]
		if !ok {
			continue
		}
		mark := email.SectionMark{Name: sectionName(c.Name), Score: n.String()}
		if f.was != nil && f.was.Sections[c.Name] != n {
			mark.Was = f.was.Sections[c.Name].String()
		}
		summary.Sections = append(summary.Sections, mark)
	}
	for _, to := range j.plan.ExtraRecipients {
		j.mail(to, summary)
	}
	linked := summary
	linked.ResultURL = wire.ResultURL(j.PublicURL, j.done[f.Assignment].Ref)
	for _, to := range j.toStaff() {
		j.mail(to, linked)
	}
}

// score is a test's score as mails have it.
func (j *job) score(s plan.Slot, item catalog.Item) string {
	if s.Kind == plan.SkillsCheck {
		return s.Score.String()
	}
	return catalog.Label(j.plan.Exam, *s.Score, item.MaxScore)
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
		mail.Test, mail.Section = words(t), strings.ReplaceAll(t.Section, "_", " ")
	}
	for _, to := range j.toStaff() {
		mail.Page = j.page(to)
		j.mail(to, mail)
	}
}

// page is where the member of the staff finds the plan: owners and admins on its own page, where they can change it, others
// on the student's.
func (j *job) page(address string) string {
	base := j.PublicURL + "/console/" + j.organizations[j.plan.Organization].Slug
	manages := slices.ContainsFunc(j.staff[j.plan.Organization], func(m plan.StaffMember) bool {
		return m.Email == address && (m.Role == string(org.RoleOwner) || m.Role == string(org.RoleAdmin))
	})
	if manages {
		return fmt.Sprintf("%s/plans/%d/", base, j.plan.ID)
	}
	return fmt.Sprintf("%s/students/%d/", base, j.plan.User)
}
