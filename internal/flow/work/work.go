// Package work takes the engines' reports of students' work: sessions, quizzes and assessments that were
// started, held, finished, released or marked again. It writes the result, its assignment and its event
// in one transaction.
//
// Records are handled in sets. A few statements read what all of them name, and three write what they
// change, however many they are. A wrong record is rejected and does not stop the others. Results are
// written last, because that locks the organizations' positions.
//
// Records that come one by one make sets, too: those that arrive while a transaction is under way go
// together into the next one (internal/kit/gather).
package work

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/gather"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Service takes reports of work. It must not be copied.
type Service struct {
	DB        *pg.DB
	Clock     clock.Clock
	Zone      *time.Location // the platform's; decides today
	PublicURL string         // the base of every link, without a slash at its end

	once  sync.Once
	calls *gather.Group[string, Record, Outcome]
}

// Result takes one record. It returns the record's fault as its error, and has saved nothing then. Records
// of an organization are taken in the order in which they come. Unavailable when too many wait.
func (d *Service) Result(ctx context.Context, r Record) (Outcome, error) {
	d.once.Do(func() { d.calls = gather.New[string](d.together) })
	key, err := d.key(ctx, &r)
	if err != nil {
		return Outcome{}, err
	}
	r.traceparent = obs.Traceparent(ctx)
	o, err := d.calls.Do(ctx, key, r)
	if err != nil {
		return Outcome{}, err
	}
	return o, o.Err
}

// key is the organization's slug, or, of work that only its assignment names, the organization's id.
func (d *Service) key(ctx context.Context, r *Record) (string, error) {
	if r.Kind == catalog.Test {
		return r.Organization, nil
	}
	a, err := assignment.ParseRef(string(r.Kind), r.Assignment)
	if err != nil {
		return "", err
	}
	owners, err := assignment.Find(ctx, d.DB, []id.Assignment{a})
	if err == nil && owners[a] == 0 {
		err = assignment.ErrNone(r.Assignment)
	}
	return "#" + strconv.FormatInt(int64(owners[a]), 10), err // no slug has such a sign
}

// together takes the records of several callers.
func (d *Service) together(ctx context.Context, records []Record) ([]Outcome, error) {
	outcomes, _, err := d.apply(ctx, records, rounds)
	return outcomes, err
}

// rounds keeps records of the same work apart, so that each has the effect that it would have had alone:
// the second in a round after the first.
func rounds(targets []target) (all [][]target) {
	type work struct {
		kind       catalog.Kind
		org        id.Organization
		session    string
		assignment id.Assignment // the session's says nothing
	}
	seen := map[work]int{}
	for _, t := range targets {
		w := work{t.Kind, t.org, t.Session, t.assignment}
		if t.Kind == catalog.Test {
			w.assignment = 0
		}
		n := seen[w]
		seen[w]++
		if n == len(all) {
			all = append(all, nil)
		}
		all[n] = append(all[n], t)
	}
	return all
}

// Work takes many records and returns their outcomes, in their order. The records of an organization are
// one transaction. An error belongs to no record; repeat the whole call then.
func (d *Service) Work(ctx context.Context, records []Record) ([]Outcome, error) {
	all := func(targets []target) [][]target { return [][]target{targets} }
	outcomes, targets, err := d.apply(ctx, records, all)
	if !pg.Locked(err) {
		return outcomes, err
	}
	byOrg := map[id.Organization][]target{}
	for _, t := range targets {
		byOrg[t.org] = append(byOrg[t.org], t)
	}
	for _, org := range slices.Sorted(maps.Keys(byOrg)) {
		own := make([]Record, len(byOrg[org]))
		for i, t := range byOrg[org] {
			own[i] = records[t.index]
		}
		found, _, err := d.apply(ctx, own, all)
		if err != nil {
			return nil, err
		}
		for i, t := range byOrg[org] {
			outcomes[t.index] = found[i]
		}
	}
	return outcomes, nil
}

// locate finds the organization of each record, by its slug or by its assignment.
func locate(ctx context.Context, tx *pg.Tx, records []Record, outcomes []Outcome) (found []target, err error) {
	targets := make([]target, len(records))
	var slugs []string
	var assignments []id.Assignment
	for i, r := range records {
		targets[i] = target{Record: r, index: i}
		if r.Fault == nil && r.Assignment != "" {
			targets[i].assignment, targets[i].Fault = assignment.ParseRef(string(r.Kind), r.Assignment)
			assignments = append(assignments, targets[i].assignment)
		}
		if r.Kind == catalog.Test {
			slugs = append(slugs, r.Organization)
		}
	}
	bySlug, owners := map[string]id.Organization{}, map[id.Assignment]id.Organization{}
	var names pg.Batch
	org.IDs(&names, slugs, bySlug)
	assignment.QueueFind(&names, assignments, owners)
	if err := names.Send(ctx, tx); err != nil {
		return nil, err
	}
	for _, t := range targets {
		if err := t.setOrganization(bySlug, owners); err != nil {
			outcomes[t.index] = Outcome{Status: Rejected, Err: err}
			continue
		}
		found = append(found, t)
	}
	return found, nil
}

// setOrganization finds the organization, and the ref of a test.
func (t *target) setOrganization(bySlug map[string]id.Organization, owners map[id.Assignment]id.Organization) error {
	if t.Fault != nil {
		return t.Fault
	}
	if t.Kind != catalog.Test {
		if t.org = owners[t.assignment]; t.org == 0 {
			return assignment.ErrNone(t.Assignment)
		}
		return nil
	}
	if n := len(t.Session); n == 0 || n > maxSession {
		return fault.Field("id", "invalid", "id: send the session's id, of at most %d characters", maxSession)
	}
	if t.org = bySlug[t.Organization]; t.org == 0 {
		return missing("organization", "not_found", "organization: there is no organization %q", t.Organization)
	}
	t.ref = t.Record.ref(0)
	return nil
}

// maxRaces limits how often other transactions may store the same new results first.
const maxRaces = 10

// apply does one round of the records after the other, in one transaction. Also with an error it returns
// what the records name. Records of one organization wait for what others have locked. Those of several
// do so for a moment only, and fail then (pg.Locked): none shall wait because of another one.
func (d *Service) apply(ctx context.Context, records []Record, rounds func([]target) [][]target) (outcomes []Outcome, targets []target, err error) {
	for range maxRaces {
		err = d.DB.InTx(ctx, func(tx *pg.Tx) error {
			outcomes = make([]Outcome, len(records))
			if targets, err = locate(ctx, tx, records, outcomes); err != nil {
				return err
			}
			several := slices.ContainsFunc(targets, func(t target) bool { return t.org != targets[0].org })
			var last *pg.Batch
			now := d.Clock()
			for _, round := range rounds(slices.Clone(targets)) {
				if err := send(ctx, tx, last); err != nil {
					return err
				}
				b := &batch{Service: d, now: now, targets: round, outcomes: outcomes}
				if err := b.read(ctx, tx, several); err != nil {
					return err
				}
				b.decide()
				if last, err = b.write(ctx, tx); err != nil {
					return err
				}
			}
			if last == nil {
				return nil
			}
			return last.Commit(ctx, tx)
		})
		if !result.Raced(err) {
			return outcomes, targets, err
		}
	}
	return outcomes, targets, err
}

func send(ctx context.Context, tx *pg.Tx, b *pg.Batch) error {
	if b == nil {
		return nil
	}
	return b.Send(ctx, tx)
}
