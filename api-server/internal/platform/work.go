package platform

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/flow/work"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Limits of POST /work.
const (
	maxRecords = 1000
	maxWorkMiB = MaxBody
)

// workBody is a piece of work as it is stored now.
type workBody struct {
	Status       string           `json:"status"`
	ResultID     string           `json:"result_id"`
	Kind         string           `json:"kind"`
	UserID       id.User          `json:"user_id"`
	ItemID       id.Item          `json:"item_id"`
	AssignmentID *string          `json:"assignment_id"`
	Attempt      result.Attempt   `json:"attempt"`
	Section      *string          `json:"section"`
	State        result.State     `json:"state"`
	Final        bool             `json:"final"`
	StartedAt    *clock.Timestamp `json:"started_at"`
	CompletedAt  *clock.Timestamp `json:"completed_at"`
	ReleasedAt   *clock.Timestamp `json:"released_at"`
	Score        *decimal.Number  `json:"score"`
	MaxScore     *decimal.Number  `json:"max_score"`
	Sections     json.RawMessage  `json:"sections"`
	// SafeExamBrowser holds for the whole session of an assigned test (reference: plans#settings).
	SafeExamBrowser bool `json:"safe_exam_browser"`
}

func workOf(o work.Outcome) workBody {
	r := o.Result
	b := workBody{Status: "ok", ResultID: r.Ref, Kind: r.Kind, UserID: r.User, ItemID: r.Item, Attempt: r.Attempt, State: r.State,
		Final: r.State.Final(), StartedAt: clock.OptionalStamp(r.StartedAt, time.UTC), CompletedAt: clock.OptionalStamp(r.CompletedAt, time.UTC), ReleasedAt: clock.OptionalStamp(r.ReleasedAt, time.UTC),
		Score: r.Score, MaxScore: r.MaxScore, Sections: r.Sections, SafeExamBrowser: o.SafeExamBrowser}
	if r.Assignment != 0 {
		b.AssignmentID = new(assignment.Assignment{ID: r.Assignment, Kind: r.Kind}.Ref())
	}
	if r.Section != "" {
		b.Section = &r.Section
	}
	if b.Sections == nil {
		b.Sections = json.RawMessage(`{}`)
	}
	return b
}

func (s *Server) putTestSession(w http.ResponseWriter, r *http.Request) error {
	return s.putWork(w, r, func(b *edge.Body) work.Record {
		record := readWork(b, catalog.Test)
		record.Session = edge.Param(r, "session")
		return record
	})
}

func (s *Server) putQuizSubmission(w http.ResponseWriter, r *http.Request) error {
	return s.putWork(w, r, func(b *edge.Body) work.Record {
		record := readWork(b, catalog.Quiz)
		record.Assignment = edge.Param(r, "assignment")
		return record
	})
}

func (s *Server) putAssessmentSubmission(w http.ResponseWriter, r *http.Request) error {
	user, err := edge.IDParam[id.User](r, "user_id")
	if err != nil {
		return err
	}
	return s.putWork(w, r, func(b *edge.Body) work.Record {
		record := readWork(b, catalog.Assessment)
		record.Assignment, record.User = edge.Param(r, "assignment"), user
		return record
	})
}

func (s *Server) putWork(w http.ResponseWriter, r *http.Request, read func(*edge.Body) work.Record) error {
	b, err := edge.ReadBody(w, r)
	if err != nil {
		return err
	}
	record := read(b)
	if err := b.Err(); err != nil {
		return err
	}
	o, err := s.Work.Result(r.Context(), record)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if o.New {
		status = http.StatusCreated
	}
	return edge.JSON(w, status, workOf(o))
}

// states are the words for states, of each kind of work. A quiz is final when it is
// submitted; an assessment waits for its marking until its feedback is released.
var states = map[catalog.Kind]map[string]result.State{
	catalog.Test: {"started": result.Started, "finished": result.Finished, "held": result.Held, "released": result.Released},
	catalog.Quiz: {"started": result.Started, "submitted": result.Finished, "finished": result.Finished},
	catalog.Assessment: {"started": result.Started, "submitted": result.Held, "finished": result.Held, "held": result.Held,
		"released": result.Released},
}

var stateWords = []string{"started", "submitted", "finished", "held", "released"}

func readWork(b *edge.Body, kind catalog.Kind) work.Record {
	r := work.Record{Kind: kind, StartedAt: b.Timestamp("started_at"), CompletedAt: b.Timestamp("completed_at"), ReleasedAt: b.Timestamp("released_at"),
		Mark: catalog.Mark{Score: b.Number("score"), MaxScore: b.Number("max_score"), Sections: b.Numbers("sections")}}
	if word := b.Choice("state", stateWords...); word != nil {
		state, ok := states[kind][*word]
		if !ok {
			b.Fault("state", "not_a_choice", "a %s is never %s", kind, *word)
		}
		r.State = state
	}
	if r.CompletedAt == nil && kind != catalog.Test {
		r.CompletedAt = b.Timestamp("submitted_at")
	}
	if kind != catalog.Test {
		return r
	}
	b.Required("organization")
	set(&r.Organization, b.Text("organization", 100))
	if user := b.Int("user_id", 1, 1<<53); user != nil {
		r.User = id.User(*user)
	}
	if item := b.Int("item_id", 1, 1<<53); item != nil {
		r.Item = id.Item(*item)
	}
	set(&r.Assignment, b.Text("assignment_id", 100))
	set(&r.Section, b.Text("section", 100))
	if word := b.Choice("attempt", string(result.Practice), string(result.Assigned), string(result.TestingCenter), string(result.SectionPractice)); word != nil {
		r.Attempt = result.Attempt(*word)
	}
	return r
}

type workReceipt struct {
	Status    string       `json:"status"`
	Count     int          `json:"count"`
	Applied   int          `json:"applied"`
	Unchanged int          `json:"unchanged"`
	Rejected  int          `json:"rejected"`
	Records   []workRecord `json:"records"` // in the order of the call
}

type workRecord struct {
	Index    int         `json:"index"`
	Outcome  work.Status `json:"outcome"`
	ResultID string      `json:"result_id,omitempty"`
	Final    bool        `json:"final"`
	Code     string      `json:"code,omitempty"`
	Field    string      `json:"field,omitempty"`
	Error    string      `json:"error,omitempty"`
}

// postWork takes many records; what is wrong with one is reported for that one alone.
func (s *Server) postWork(w http.ResponseWriter, r *http.Request) error {
	b, err := edge.ReadLargeBody(w, r, maxWorkMiB)
	if err != nil {
		return err
	}
	bodies, err := b.Records("records", maxRecords)
	if err != nil {
		return err
	}
	records := make([]work.Record, len(bodies))
	for i, body := range bodies {
		records[i] = readRecord(body)
	}
	outcomes, err := s.Work.Work(r.Context(), records)
	if err != nil {
		return err
	}
	receipt := workReceipt{Status: "ok", Count: len(outcomes), Records: make([]workRecord, len(outcomes))}
	for i, o := range outcomes {
		receipt.Records[i] = recordOf(i, o)
		switch o.Status {
		case work.Applied:
			receipt.Applied++
		case work.Unchanged:
			receipt.Unchanged++
		case work.Rejected:
			receipt.Rejected++
		}
	}
	return edge.JSON(w, http.StatusOK, receipt)
}

func recordOf(index int, o work.Outcome) workRecord {
	r := workRecord{Index: index, Outcome: o.Status, ResultID: o.Result.Ref, Final: o.Result.State.Final()}
	var f *fault.Error
	if errors.As(o.Err, &f) {
		r.Code, r.Field, r.Error = f.Code, f.Field, f.Message
	}
	return r
}

// readRecord reads one of many: its kind, its id, and the fields of that kind's route.
func readRecord(b *edge.Body) work.Record {
	if f := b.FirstFault(); f != nil {
		return work.Record{Fault: f}
	}
	b.Required("kind", "id")
	kind := catalog.Kind("")
	if word := b.Choice("kind", string(catalog.Test), string(catalog.Quiz), string(catalog.Assessment)); word != nil {
		kind = catalog.Kind(*word)
	}
	name := ""
	set(&name, b.Label("id", 300))
	if f := b.FirstFault(); f != nil {
		return work.Record{Fault: f}
	}
	r := readWork(b, kind)
	switch kind {
	case catalog.Test:
		r.Session = name
	case catalog.Quiz:
		r.Assignment = name
	case catalog.Assessment:
		r.Assignment, _, _ = strings.Cut(name, "/")
		if user := b.Int("user_id", 1, 1<<53); user != nil {
			r.User = id.User(*user)
		}
	}
	if f := b.FirstFault(); f != nil {
		r.Fault = f
	}
	return r
}
