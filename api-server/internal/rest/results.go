package rest

import (
	"net/http"

	"github.com/registrar-dev/registrar/api-server/internal/edge"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/page"
)

type resultsBody struct {
	pageBody
	Results []wire.Result `json:"results"`
}

const listResults = "results"

func (s *Server) listResults(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	limit := q.limit(maxLimit, usualLimit)
	f := result.Filter{Kinds: kindNames(q.kinds()), Type: q.testType(), Course: q.course(), Since: q.since("since"), Until: q.until("until"), Today: s.today()}
	who := q.who()
	if err := q.err(); err != nil {
		return err
	}
	ctx, o := r.Context(), principal(r.Context()).Organization.ID
	from, err := s.start(ctx, q, listResults)
	if err != nil {
		return err
	}
	if err := s.checkCourse(ctx, o, f.Course); err != nil {
		return err
	}
	if f.User, err = s.resolve(ctx, o, who); err != nil {
		return err
	}
	found, err := result.List(ctx, s.DB, o, f, from.At(0), limit+1)
	if err != nil {
		return err
	}
	found, more := cut(found, limit)
	last := page.Position{from.At(0)}
	body := resultsBody{Results: make([]wire.Result, len(found))}
	for i, l := range found {
		body.Results[i] = wire.NewResult(l, s.PublicURL, q.zone)
		last = page.Position{l.Position}
	}
	if body.pageBody, err = s.pageOf(ctx, q, listResults, len(found), more, last); err != nil {
		return err
	}
	return edge.JSON(w, http.StatusOK, body)
}
