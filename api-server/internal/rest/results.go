package rest

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// listResults answers GET /results/.
func (s *Server) listResults(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	f := result.Filter{
		Types: catalog.TypesOf(q.kinds(), q.testType()), Course: q.course(),
		Since: q.since("since"), Until: q.until("until"), Today: s.today(),
	}
	ctx, who := r.Context(), q.student()
	return edge.List[*result.Listed]{
		Cursors: s.Cursors, Reads: s.Reads, Organization: principal(ctx).Organization.ID, Name: "results", Array: "results", Epochs: page.Results, Limit: q.Limit(maxLimit, usualLimit),
		Read: func(db *pg.DB, after page.Position, limit int, each func(*result.Listed) error) error {
			n, err := s.narrow(ctx, db, f.Course, who)
			if err != nil {
				return err
			}
			f.User, f.Few = n.user, n.few
			return result.List(ctx, db, n.org, f, after.At(0), limit, each)
		},
		Position: func(l *result.Listed) page.Position { return page.Position{l.Position} },
		Show:     func(l *result.Listed) any { return wire.NewResult(l, s.PublicURL, q.zone) },
	}.Answer(w, r, q.Query)
}
