package console

import (
	"net/http"
	"slices"

	"github.com/registrar-dev/registrar/api-server/internal/chart"
	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/lang"
)

type plansPage struct {
	frame
	Choices []planChoice
	Which   string
	User    id.User // 0: everyone
	Lines   []plan.Line
	Older   id.Plan // where the next page begins; 0: there is none
}

type planChoice struct{ Name, Label string }

var planChoices = []planChoice{{"", "All"}, {string(plan.Active), "Active"}, {plan.ChooseAtRisk, "At risk"}, {string(plan.Paused), "Paused"}, {string(plan.Closed), "Closed"}}

// pageOfPlans is how many plans a page lists.
const pageOfPlans = 50

func (s *Server) showPlans(w http.ResponseWriter, r *http.Request) error {
	f, err := s.frame(r, "plans", "Test plans")
	if err != nil {
		return err
	}
	p := plansPage{frame: f, Choices: planChoices, Which: r.URL.Query().Get("show"), User: id.User(number(r, "user_id"))}
	if !slices.ContainsFunc(planChoices, func(c planChoice) bool { return c.Name == p.Which }) {
		p.Which = ""
	}
	p.Lines, err = plan.Lines(r.Context(), s.DB, f.Here.Organization, p.User, p.Which, id.Plan(number(r, "below")), pageOfPlans)
	if err != nil {
		return err
	}
	if len(p.Lines) == pageOfPlans {
		p.Older = p.Lines[len(p.Lines)-1].ID
	}
	return show(w, http.StatusOK, "plans.html", p)
}

type planPage struct {
	frame
	Student     student.Account
	Plan        plan.Stored
	CurrentPace plan.Pace
	Exam        string     // its display name
	LastDay     clock.Date // on which a test may be open
	Estimate    string     // "" while there is no full result
	Browser     bool       // the student's tests open only in the secure exam browser
	Sections    []string   // of the exam, in its order
	Tests       []planTest
	Chart       *chart.Scores // nil while there is no full result
	Drills      []plan.Drilled
	History     []planEntry
	Today       clock.Date
	Open        bool       // the last test waits, and may be opened today
	OpensOn     clock.Date // of the last test
	Skip        bool       // the last test waits or is open, and nobody has begun it
	Lacks       *plan.Slot // the test that has no paper; nil: none
	Cut         bool       // whether the history is longer
}

// planTest is one slot in the page's words.
type planTest struct {
	plan.Slot
	Title string
	Score string   // as the exam writes it; "" while there is none
	Marks []string // of the page's sections
}

// historyShown is how many lines of a plan's history the page shows.
const historyShown = 500

// plan finds what the path names.
func (s *Server) plan(r *http.Request) (frame, plan.Stored, error) {
	f, err := s.frame(r, "plans", "Test plan")
	if err != nil {
		return f, plan.Stored{}, err
	}
	which, err := edge.IDParam[id.Plan](r, "id")
	if err != nil {
		return f, plan.Stored{}, err
	}
	stored, err := plan.Find(r.Context(), s.DB, f.Here.Organization, which)
	return f, stored, err
}

// showPlan shows a plan with its settings, its tests and everything that was done to it.
func (s *Server) showPlan(w http.ResponseWriter, r *http.Request) error {
	f, stored, err := s.plan(r)
	if err != nil {
		return err
	}
	return s.onePlan(w, r, http.StatusOK, f, stored)
}

func (s *Server) onePlan(w http.ResponseWriter, r *http.Request, status int, f frame, stored plan.Stored) error {
	ctx, which := r.Context(), stored.ID
	p := planPage{frame: f, Plan: stored, Today: clock.DateIn(s.Clock(), s.Zone)}
	called, err := student.FindAll(ctx, s.DB, stored.Organization, []id.User{stored.User})
	if err != nil {
		return err
	}
	p.Student = called[stored.User]
	if p.Browser, err = plan.SafeExamBrowser(ctx, s.DB, stored.Organization, stored.User); err != nil {
		return err
	}
	if p.Drills, err = plan.Drills(ctx, s.DB, which); err != nil {
		return err
	}
	if err := s.readTests(r, &p); err != nil {
		return err
	}
	if err := s.readHistory(r, &p); err != nil {
		return err
	}
	return show(w, status, "plan.html", p)
}

func (s *Server) readTests(r *http.Request, p *planPage) error {
	all, err := plan.Slots(r.Context(), s.DB, p.Plan.ID)
	if err != nil {
		return err
	}
	slots := all[p.Plan.ID]
	var papers []id.Item
	for _, t := range slots {
		papers = append(papers, id.Item(t.Paper))
	}
	items, err := catalog.Load(r.Context(), s.DB, p.Plan.Organization, papers)
	if err != nil {
		return err
	}
	scale, _ := catalog.ScaleOf(p.Plan.Exam) // plans are for exams with a scale alone
	p.Exam, p.LastDay = scale.Label, plan.LastDay(p.Plan.ExamDate, p.Plan.AccessEnd)
	for _, c := range scale.Sections {
		p.Sections = append(p.Sections, c.Name)
	}
	for _, t := range slots {
		p.Tests = append(p.Tests, newPlanTest(t, items[id.Item(t.Paper)], p))
	}
	if n := len(slots); n > 0 && p.Plan.Status != plan.Closed {
		last := &slots[n-1]
		p.OpensOn = last.OpensOn
		p.Skip = last.Unfinished() && last.State != plan.Started
		p.Open = p.Skip && last.State != plan.Opened && p.Plan.Status == plan.Active && !p.Today.After(p.LastDay)
		if last.State == plan.Unfilled {
			p.Lacks = last
		}
	}
	p.CurrentPace = testplan.ShowPlan(p.Plan, slots).CurrentPace
	seen, err := p.Plan.Plan(plan.Scale{Exam: p.Plan.Exam}, s.Clock(), s.Zone)
	if err != nil {
		return err
	}
	tests, results := plan.Tests(slots)
	if e, known := plan.Estimate(seen, tests, results); known {
		p.Estimate = e.String()
		p.Chart = chart.OfPlan(lang.Of(lang.English), p.Plan, slots, s.Zone)
	}
	return nil
}

func newPlanTest(t plan.Slot, item catalog.Item, p *planPage) planTest {
	shown := planTest{Slot: t, Title: item.Title}
	if t.Score != nil {
		shown.Score = t.Score.String()
		if t.Kind != plan.SkillsCheck {
			shown.Score = catalog.Label(p.Plan.Exam, *t.Score, item.MaxScore)
		}
	}
	for _, name := range p.Sections {
		mark := ""
		if n, ok := t.Sections[name]; ok {
			mark = n.String()
		}
		shown.Marks = append(shown.Marks, mark)
	}
	return shown
}

func (s *Server) readHistory(r *http.Request, p *planPage) error {
	history, err := plan.History(r.Context(), s.DB, p.Plan.ID, historyShown+1)
	p.Cut = len(history) > historyShown
	for _, e := range history[:min(len(history), historyShown)] {
		p.History = append(p.History, newPlanEntry(e))
	}
	return err
}
