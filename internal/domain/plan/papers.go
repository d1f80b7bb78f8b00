package plan

import (
	"context"
	"maps"
	"slices"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Student is a person in an organization.
type Student struct {
	Organization id.Organization
	User         id.User
}

// PaperPool is what Papers found for the students of some plans.
type PaperPool struct {
	papers []listedPaper
	seen   map[Student]map[int64]bool
}

// Papers reads which papers there are for the plans, and which of them each student has seen.
func Papers(ctx context.Context, q pg.Querier, plans ...Stored) (PaperPool, error) {
	s := PaperPool{seen: map[Student]map[int64]bool{}}
	if len(plans) == 0 {
		return s, nil
	}
	orgs, users := pairs(plans)
	exams := map[string]bool{}
	for _, p := range plans {
		exams[p.Exam] = true
	}
	var err error
	if s.papers, err = selectPapers(ctx, q, orgs, slices.Collect(maps.Keys(exams))); err != nil {
		return s, err
	}
	return s, selectSeen(ctx, q, orgs, users, func(who Student, item int64) {
		if s.seen[who] == nil {
			s.seen[who] = map[int64]bool{}
		}
		s.seen[who][item] = true
	})
}

// Unseen returns the papers that the plan can use, by id: active tests of its exam that its
// organization can see and its student has not seen.
func (s PaperPool) Unseen(p Stored) []Paper {
	var left []Paper
	seen := s.seen[Student{p.Organization, p.User}]
	for _, l := range s.papers {
		if l.Exam == p.Exam && (l.Organization == 0 || l.Organization == p.Organization) && !seen[l.ID] {
			left = append(left, l.Paper)
		}
	}
	return left
}

// pairs are the students of the plans, each once, in two lists of one length.
func pairs(plans []Stored) (orgs []id.Organization, users []id.User) {
	known := map[Student]bool{}
	for _, p := range plans {
		who := Student{p.Organization, p.User}
		if !known[who] {
			known[who] = true
			orgs, users = append(orgs, who.Organization), append(users, who.User)
		}
	}
	return orgs, users
}
