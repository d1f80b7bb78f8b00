package edge

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

var (
	errBusy = fault.New(fault.Unavailable, "overloaded", "too many requests at once; send the same request again after the time in Retry-After")
	errMany = fault.New(fault.Unavailable, "overloaded",
		"too many requests of this kind, or of this organization, at once; send the same request again after the time in Retry-After")
)

// slot is a request's among all that are in flight.
type slot struct {
	options Options
	area    string
	places  chan struct{} // nil: it needs none
	taken   bool
}

type slotKey struct{}

// wholeRouter is the area of all paths that are in no other.
const wholeRouter = "replica"

// limitInFlight refuses what would only wait: a caller that is asked to come back is
// served sooner than one in a queue that grows.
func limitInFlight(o Options) func(http.Handler) http.Handler {
	areas := append(slices.Clone(o.Areas), Area{wholeRouter, ""})
	places := map[string]chan struct{}{}
	for _, a := range areas {
		places[a.Name] = make(chan struct{}, max(o.InFlight, 1))
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			area := areas[slices.IndexFunc(areas, func(a Area) bool { return strings.HasPrefix(r.URL.Path, a.Prefix) })].Name
			p := &slot{options: o, area: area, places: places[area]}
			if o.streams(r) {
				p.places = nil
			}
			if !p.take() {
				o.fail(w, r, errBusy)
				return
			}
			defer p.giveBack()
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), slotKey{}, p)))
		})
	}
}

// take takes the place, or counts that there is none.
func (p *slot) take() bool {
	if p.places == nil {
		return true
	}
	select {
	case p.places <- struct{}{}:
		p.taken = true
	default:
		p.refused(p.area)
	}
	return p.taken
}

func (p *slot) giveBack() {
	if p.taken {
		p.taken = false
		<-p.places
	}
}

func (p *slot) refused(limit string) {
	p.options.Metrics.refused.WithLabelValues(p.options.API, limit).Inc()
}

// Enter takes the organization's place among the shares; leave gives it back. A request that
// waits for one gives up its place among all requests meanwhile, so that those who wait are in
// nobody's way. Unavailable when none comes free in time.
func Enter(r *http.Request, shares *limit.Shares, of id.Organization) (leave func(), err error) {
	leave, ok := shares.Try(of)
	if ok {
		return leave, nil
	}
	p, _ := r.Context().Value(slotKey{}).(*slot)
	if p == nil {
		panic("edge: a request that is not of NewRouter")
	}
	p.giveBack()
	if leave, ok = shares.Wait(r.Context(), of); !ok {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		p.refused(shares.Name)
		return nil, errMany
	}
	if !p.take() {
		leave()
		return nil, errBusy
	}
	return leave, nil
}
