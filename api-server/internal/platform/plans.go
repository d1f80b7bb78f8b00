package platform

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// planBody is a plan with all of its tests, and what was done about it of late.
type planBody struct {
	ID           id.Plan         `json:"id"`
	UserID       id.User         `json:"user_id"`
	CourseID     id.Course       `json:"course_id"`
	EnrollmentID id.Enrollment   `json:"enrollment_id"`
	TargetScore  decimal.Number  `json:"target_score"`
	ExamDate     clock.Date      `json:"exam_date"`
	Plan         *wire.TestPlan  `json:"test_plan"` // its status may be closed
	Official     *officialBody   `json:"official_result"`
	Tests        []planTestBody  `json:"tests"`
	History      []planEntryBody `json:"history"` // the latest first
}

type officialBody struct {
	Score    decimal.Number            `json:"score"`
	Sections map[string]decimal.Number `json:"sections"`
	Date     clock.Date                `json:"date"`
}

type planTestBody struct {
	Slot         int             `json:"slot"`
	Kind         plan.Kind       `json:"kind"`
	Section      string          `json:"section,omitempty"`
	State        plan.State      `json:"state"`
	OpensOn      clock.Date      `json:"opens_on"`
	DueOn        clock.Date      `json:"due_on"`
	AssignmentID *string         `json:"assignment_id"`
	Score        *decimal.Number `json:"score"`
	Late         bool            `json:"late"` // finished after due_on
}

type planEntryBody struct {
	At     clock.Timestamp `json:"at"`
	Actor  string          `json:"actor"`
	Event  string          `json:"event"`
	Detail map[string]any  `json:"detail"`
}

// historyShown is how many lines of a plan's history an answer has.
const historyShown = 50

func (s *Server) showPlan(r *http.Request, l testplan.Listed) (planBody, error) {
	p := l.Plan
	b := planBody{ID: p.ID, UserID: p.User, CourseID: p.Course, EnrollmentID: p.Enrollment, TargetScore: p.TargetScore,
		ExamDate: p.ExamDate, Plan: testplan.ShowPlan(p, l.Slots), Tests: make([]planTestBody, len(l.Slots)), History: []planEntryBody{}}
	if o := p.Official; o != nil {
		b.Official = &officialBody{o.Score, o.Sections, o.On}
	}
	for i, t := range l.Slots {
		b.Tests[i] = planTestBody{t.Slot, t.Kind, t.Section, t.State, t.OpensOn, t.DueOn, nil, t.Score, t.Late}
		if t.Assignment != 0 {
			b.Tests[i].AssignmentID = new(assignment.Assignment{ID: t.Assignment, Kind: string(catalog.Test)}.Ref())
		}
	}
	history, err := plan.History(r.Context(), s.DB, p.ID, historyShown)
	for _, e := range history {
		b.History = append(b.History, planEntryBody{clock.Timestamp(e.At.UTC()), e.Actor, e.Event, e.Detail})
	}
	return b, err
}

// listPlans lists an organization's plans by id: of one student, or of all.
func (s *Server) listPlans(w http.ResponseWriter, r *http.Request) error {
	q := edge.ReadQuery(r)
	slug, user, limit := q.Text("organization"), id.User(q.ID("user_id")), q.Limit(maxLimit, usualLimit)
	if slug == "" {
		q.Fault("organization", "missing", "required; send the organization's slug")
	}
	if err := q.Err(); err != nil {
		return err
	}
	o, err := org.Find(r.Context(), s.DB, slug)
	if err != nil {
		return err
	}
	return edge.List[planBody]{
		Cursors: s.Cursors, Organization: o.ID, Name: "plans", Array: "plans", Limit: limit,
		Read: func(_ *pg.DB, after page.Position, limit int, each func(planBody) error) error {
			plans, err := s.Plans.List(r.Context(), o.ID, user, id.Plan(after.At(0)), limit)
			if err != nil {
				return err
			}
			for _, l := range plans {
				body, err := s.showPlan(r, l)
				if err != nil {
					return err
				}
				if err := each(body); err != nil {
					return err
				}
			}
			return nil
		},
		Position: func(b planBody) page.Position { return page.Position{int64(b.ID)} },
	}.Answer(w, r, q)
}

type steeredBody struct {
	Status string `json:"status"`
	planBody
}

// steered answers with the plan as a change has left it.
func (s *Server) steered(w http.ResponseWriter, r *http.Request, change func(id.Plan) (testplan.Listed, error)) error {
	which, err := edge.IDParam[id.Plan](r, "id")
	if err != nil {
		return err
	}
	l, err := change(which)
	if err != nil {
		return err
	}
	body, err := s.showPlan(r, l)
	if err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, steeredBody{"ok", body})
}

func (s *Server) pausePlan(w http.ResponseWriter, r *http.Request) error {
	return s.steered(w, r, func(p id.Plan) (testplan.Listed, error) { return s.Plans.Pause(r.Context(), audit.Platform, p) })
}

func (s *Server) resumePlan(w http.ResponseWriter, r *http.Request) error {
	return s.steered(w, r, func(p id.Plan) (testplan.Listed, error) { return s.Plans.Resume(r.Context(), audit.Platform, p) })
}

func (s *Server) skipPlanTest(w http.ResponseWriter, r *http.Request) error {
	return s.steered(w, r, func(p id.Plan) (testplan.Listed, error) { return s.Plans.SkipTest(r.Context(), audit.Platform, p) })
}

func (s *Server) openPlanTest(w http.ResponseWriter, r *http.Request) error {
	return s.steered(w, r, func(p id.Plan) (testplan.Listed, error) { return s.Plans.OpenTest(r.Context(), audit.Platform, p) })
}

func (s *Server) recordOfficialResult(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return err
	}
	b.Required("score", "date")
	score, date, sections := b.Number("score"), b.Date("date"), b.Numbers("sections")
	if err := b.Err(); err != nil {
		return err
	}
	return s.steered(w, r, func(p id.Plan) (testplan.Listed, error) {
		return s.Plans.RecordOfficial(r.Context(), audit.Platform, p, plan.Official{Score: *score, Sections: sections, On: *date})
	})
}
