// Package work takes the engines' reports of students' work: sessions, quizzes and assessments that were
// started, held, finished, released or marked again. It writes the result, its assignment and its event
// in one transaction.
//
// Records are handled in sets. A few statements read what all of them name, and three write what they
// change, however many they are. A wrong record is rejected and does not stop the others. Results are
// written last, because that locks the organization's positions.
package work

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/result"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Service takes reports of work.
type Service struct {
	DB        *pg.DB
	Clock     clock.Clock
	Zone      *time.Location // the platform's; decides today
	PublicURL string         // the base of every link, without a slash at its end
}

// Result takes one record. It returns the record's fault as its error, and has saved nothing then.
func (d *Service) Result(ctx context.Context, r Record) (Outcome, error) {
	outcomes, err := d.Work(ctx, []Record{r})
	if err != nil {
		return Outcome{}, err
	}
	return outcomes[0], outcomes[0].Err
}

// Work takes many records and returns their outcomes, in their order. The records of an organization are
// one transaction. An error belongs to no record; repeat the whole call then.
func (d *Service) Work(ctx context.Context, records []Record) ([]Outcome, error) {
	outcomes := make([]Outcome, len(records))
	byOrg, err := d.locate(ctx, records, outcomes)
	if err != nil {
		return nil, err
	}
	for _, org := range slices.Sorted(maps.Keys(byOrg)) {
		if err := d.apply(ctx, org, byOrg[org], outcomes); err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}

// locate finds the organization of each record, by its slug or by its assignment.
func (d *Service) locate(ctx context.Context, records []Record, outcomes []Outcome) (map[id.Organization][]target, error) {
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
	bySlug, err := org.IDs(ctx, d.DB, slugs)
	if err != nil {
		return nil, err
	}
	owners, err := assignment.Find(ctx, d.DB, assignments)
	if err != nil {
		return nil, err
	}
	byOrg := map[id.Organization][]target{}
	for _, t := range targets {
		if err := t.setOrganization(bySlug, owners); err != nil {
			outcomes[t.index] = Outcome{Status: Rejected, Err: err}
			continue
		}
		byOrg[t.org] = append(byOrg[t.org], t)
	}
	return byOrg, nil
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

func (d *Service) apply(ctx context.Context, org id.Organization, targets []target, outcomes []Outcome) error {
	var err error
	for range maxRaces {
		err = d.DB.InTx(ctx, func(tx *pg.Tx) error {
			b := &batch{Service: d, org: org, now: d.Clock(), targets: slices.Clone(targets), outcomes: outcomes}
			if err := b.read(ctx, tx); err != nil {
				return err
			}
			b.decide()
			return b.write(ctx, tx)
		})
		if !errors.Is(err, result.ErrRaced) {
			return err
		}
	}
	return err
}
