package rest

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/progress"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// progressDay is one row (reference: progress#progress-rows).
type progressDay struct {
	Student           wire.Person     `json:"student"`
	Date              clock.Date      `json:"date"`
	Kind              string          `json:"kind"`
	Type              string          `json:"type"`
	TypeLabel         string          `json:"type_label"`
	Attempts          int             `json:"attempts"`
	AveragePercentage decimal.Number  `json:"average_percentage"`
	BestPercentage    decimal.Number  `json:"best_percentage"`
	AverageScore      *decimal.Number `json:"average_score"` // these are null where the day mixes scales
	BestScore         *decimal.Number `json:"best_score"`
	MaxScore          *decimal.Number `json:"max_score"`
}

func progressDayOf(r progress.Row) progressDay {
	s := r.Student
	return progressDay{wire.Person{UserID: s.User, Email: student.Email(s.Email), FirstName: s.FirstName, LastName: s.LastName}, r.Date,
		r.Kind, r.Type, catalog.TypeLabel(r.Type), r.Attempts, r.AveragePercentage, r.BestPercentage, r.AverageScore, r.BestScore, r.MaxScore}
}

const (
	mostProgressDays    = 92
	mostProgressDaysOne = 366 // of one student

	progressTime = 2 * time.Minute // for the whole answer, which holds a connection of the pool until the client has read it
)

// listProgress answers GET /progress/daily/.
func (s *Server) listProgress(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	f, who := s.readProgress(q)
	if err := q.Err(); err != nil {
		return err
	}
	ctx := r.Context()
	leave, err := edge.Enter(r, s.Places.streams, principal(ctx).Organization.ID)
	if err != nil {
		return err
	}
	defer leave()
	edge.Extend(ctx, progressTime)
	return s.Reads.Stream(ctx, func(db *pg.DB) error {
		n, err := s.narrow(ctx, db, f.Course, who)
		if err != nil {
			return err
		}
		f.User, f.Few = n.user, n.few
		out := edge.NewStream(w, progressTime)
		return out.Fail(s.streamProgress(ctx, db, out, f))
	})
}

func (s *Server) readProgress(q *query) (progress.Filter, student.Ref) {
	who := q.student()
	f := progress.Filter{Zone: q.zone, Kinds: kindNames(q.kinds()), Course: q.course(), Type: q.testType(), Today: s.today()}
	most := mostProgressDays
	if !who.Anybody() {
		most = mostProgressDaysOne
	}
	f.From, f.To = q.days(clock.DateIn(s.Clock(), q.zone), most)
	return f, who
}

func (s *Server) streamProgress(ctx context.Context, db *pg.DB, out *edge.Stream, f progress.Filter) error {
	if err := out.Text(progressStart(f)); err != nil {
		return err
	}
	count := 0
	err := progress.Stream(ctx, db, principal(ctx).Organization.ID, f, func(row progress.Row) error {
		if count++; count > 1 {
			if err := out.Text(","); err != nil {
				return err
			}
		}
		return out.Value(progressDayOf(row))
	})
	if err != nil {
		return err
	}
	if err := out.Text(`],"count":` + strconv.Itoa(count) + "}\n"); err != nil {
		return err
	}
	return out.Close()
}

// progressStart is how the answer begins; its days follow as they are found.
func progressStart(f progress.Filter) string {
	return `{"status":"ok","from":"` + f.From.String() + `","to":"` + f.To.String() + `","timezone":"` + f.Zone.String() + `","days":[`
}
