package rest

import (
	"context"
	"net/http"

	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/page"
)

// listResults answers GET /results/.
func (s *Server) listResults(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	f := result.Filter{Kinds: kindNames(q.kinds()), Type: q.testType(), Course: q.course(), Since: q.since("since"), Until: q.until("until"), Today: s.today()}
	return paged[*result.Listed]{
		name: "results", array: "results", limit: q.limit(maxLimit, usualLimit), course: f.Course, who: q.student(),
		read: func(ctx context.Context, n narrowed, after page.Position, limit int, each func(*result.Listed) error) error {
			f.User, f.Few = n.user, n.few
			return result.List(ctx, s.DB, n.org, f, after.At(0), limit, each)
		},
		place: func(l *result.Listed) page.Position { return page.Position{l.Position} },
		show:  func(l *result.Listed) any { return wire.NewResult(l, s.PublicURL, q.zone) },
	}.answer(s, w, r, q)
}
