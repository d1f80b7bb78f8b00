package factor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Policy is what an organization demands of its staff. The zero Policy demands nothing.
type Policy struct {
	Roles     []string  // who need a factor
	Since     time.Time // when the first of them did
	GraceDays int       // how long one may be without it
}

// MaxGrace bounds the days of grace.
const MaxGrace = 90

// Demands says whether people with the role need a factor.
func (p Policy) Demands(role string) bool { return slices.Contains(p.Roles, role) }

// String is the policy in words.
func (p Policy) String() string {
	if len(p.Roles) == 0 {
		return "no second factor is demanded"
	}
	return fmt.Sprintf("second factor for %s, %d days of grace", strings.Join(p.Roles, ", "), p.GraceDays)
}

// SetPolicy stores what the organization demands, and says what it demanded before. The days of grace
// begin anew only for a policy that demands something for the first time. Invalid lists each fault.
func SetPolicy(ctx context.Context, tx *pg.Tx, org id.Organization, p Policy, known []string, now time.Time) (before Policy, err error) {
	var faults fault.List
	for _, role := range p.Roles {
		if !slices.Contains(known, role) {
			_ = faults.Add(fault.Field("roles", "invalid", "roles: %q is no role of staff", role))
		}
	}
	if p.GraceDays < 0 || p.GraceDays > MaxGrace {
		_ = faults.Add(fault.Field("grace_days", "out_of_range", "grace_days: send a whole number from 0 to %d", MaxGrace))
	}
	if err := faults.Err(); err != nil {
		return before, err
	}
	if before, err = PolicyOf(ctx, tx, org); err != nil {
		return before, err
	}
	if p.Since = before.Since; p.Since.IsZero() || len(before.Roles) == 0 {
		p.Since = now
	}
	slices.Sort(p.Roles)
	p.Roles = slices.Compact(p.Roles)
	return before, upsertPolicy(ctx, tx, org, p, now)
}

// Lack is an organization on whose staff a person is who has none of the factors that it demands.
type Lack struct {
	Organization id.Organization
	Due          time.Time // when its pages close
}
