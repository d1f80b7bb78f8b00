package course

import (
	"context"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Type is an exam that courses prepare for. The fourteen of them belong to the platform
// and are the same for every organization (reference: courses#course-types).
type Type struct {
	Name                string // the value of `courses`, e.g. "ielts"
	DisplayName         string // accepted there as well
	Active              bool   // only active types may be named
	DefaultAccessMonths int    // 0: the organization's default holds
	TestPlanAvailable   bool
	TargetScoreMin      float64
	TargetScoreMax      float64
}

// SetTypeActive opens or closes a type for new requests and returns it. Enrollments in
// its courses are not touched. NotFound when there is no such type.
func SetTypeActive(ctx context.Context, db *pg.DB, by audit.Actor, name string, active bool, now time.Time) (t Type, err error) {
	entry := audit.Entry{Actor: by, Action: "closed course type", Target: name, At: now}
	if active {
		entry.Action = "opened course type"
	}
	err = db.InTx(ctx, func(tx *pg.Tx) error {
		if t, err = lockType(ctx, tx, name); err != nil || t.Active == active {
			return err
		}
		t.Active = active
		if err := updateTypeActive(ctx, tx, name, active); err != nil {
			return err
		}
		return audit.Write(ctx, tx, entry)
	})
	if pg.None(err) {
		return Type{}, fault.New(fault.NotFound, "not_found", "there is no course type %q", name)
	}
	return t, err
}

// ResolveType finds the active type that text names, by its name or display name, in
// any case and with blanks around it. The fault lists the values that would be accepted.
func ResolveType(types []Type, field, text string) (Type, error) {
	wanted := strings.TrimSpace(text)
	var known []string
	for _, t := range types {
		if !t.Active {
			continue
		}
		if strings.EqualFold(t.Name, wanted) || strings.EqualFold(t.DisplayName, wanted) {
			return t, nil
		}
		known = append(known, t.Name)
	}
	return Type{}, fault.Field(field, "unknown_course_type",
		"%s: there is no course type %q; valid values are %s", field, wanted, strings.Join(known, ", "))
}
