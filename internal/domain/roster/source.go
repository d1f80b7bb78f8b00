package roster

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// SourceChannel is notified with a source's id when its settings or the state of one of its runs have changed.
const SourceChannel = "roster_sources"

// Source is a system from which an organization sends rosters.
type Source struct {
	ID   id.RosterSource
	Name string
	Settings
	HadEnrollments bool
	ManagedBy      string // the Kubernetes resource that keeps the settings; "": none does
}

// Settings are what the platform decides about a source.
type Settings struct {
	AuthoritativeEnabled bool // it may send authoritative snapshots
	Approval             Approval
	GuardPercent         *int // share of people, or of places, above which losing them is not plausible; nil: the usual rule
}

// Approval says which snapshots of a source wait for a person.
type Approval string

// The approvals.
const (
	ApproveGuarded Approval = "guarded" // those that a guard stops
	ApproveAlways  Approval = "always"
)

// standard are the settings of a source about which nobody has decided.
var standard = Settings{Approval: ApproveGuarded}

// Same says whether the two are alike.
func (s Settings) Same(o Settings) bool {
	percent := s.GuardPercent == nil && o.GuardPercent == nil ||
		s.GuardPercent != nil && o.GuardPercent != nil && *s.GuardPercent == *o.GuardPercent
	return s.AuthoritativeEnabled == o.AuthoritativeEnabled && s.Approval == o.Approval && percent
}

// DefaultSource is the source of an upload that names none.
const DefaultSource = "default"

const maxSource = 100

// ParseSource reads a source's label; "" is the default one. Invalid when it is too long or
// has characters that cannot be shown.
func ParseSource(text string) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return DefaultSource, nil
	case utf8.RuneCountInString(text) > maxSource:
		return "", fault.Field("source", "too_long", "source: send at most %d characters", maxSource)
	case !utf8.ValidString(text) || strings.IndexFunc(text, unicode.IsControl) >= 0:
		return "", fault.Field("source", "invalid", "source: contains characters that cannot be shown; remove them")
	}
	return text, nil
}

// ErrNotEnabled refuses a snapshot from a source that may not send any.
var ErrNotEnabled = fault.New(fault.Forbidden, "authoritative_not_enabled",
	"mode: authoritative_snapshot is not enabled for this source; have a platform administrator enable it, or send additive_only")

// PutSource makes a source, or changes what set changes of its settings; nil changes nothing. Conflict "managed" when a
// resource keeps them.
func PutSource(
	ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, name string, set func(*Settings), now time.Time,
) (s Source, err error) {
	err = db.InTx(ctx, func(tx *pg.Tx) (err error) {
		if s, err = lockSource(ctx, tx, org, name, now); err != nil {
			return err
		}
		if s.ManagedBy != "" {
			return fault.New(fault.Conflict, "managed", "the settings of this source are kept by %s; change that resource instead", s.ManagedBy)
		}
		if set != nil {
			set(&s.Settings)
		}
		return saveSource(ctx, tx, by, org, s, "set up roster source", now)
	})
	return s, err
}

// ManageSource makes a source, or gives it the settings, and has the resource that gives the command keep them. Conflict
// "source_managed" when another one does. A source that a resource of this name kept before is released.
func ManageSource(
	ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, name string, want Settings, now time.Time,
) (s Source, changed bool, err error) {
	err = db.InTx(ctx, func(tx *pg.Tx) (err error) {
		if s, err = lockSource(ctx, tx, org, name, now); err != nil {
			return err
		}
		switch {
		case s.ManagedBy != "" && s.ManagedBy != by.Name:
			return fault.New(fault.Conflict, "source_managed", "The source %q is kept by %s. It is kept here once that one lets it go.", name, s.ManagedBy)
		case s.ManagedBy == by.Name && s.Same(want):
			return nil
		}
		if s.ManagedBy == "" {
			if err := release(ctx, tx, by, by.Name, true, now); err != nil && fault.KindOf(err) != fault.NotFound {
				return err
			}
		}
		s.Settings, s.ManagedBy, changed = want, by.Name, true
		return saveSource(ctx, tx, by, org, s, "set up roster source", now)
	})
	return s, changed, err
}

// ReleaseSource leaves the source that the resource keeps to the platform, with its settings, or, to reset it, with those
// that a source has by itself. NotFound when the resource keeps none.
func ReleaseSource(ctx context.Context, db *pg.DB, by audit.Actor, managedBy string, reset bool, now time.Time) error {
	return db.InTx(ctx, func(tx *pg.Tx) error { return release(ctx, tx, by, managedBy, reset, now) })
}

func release(ctx context.Context, tx *pg.Tx, by audit.Actor, managedBy string, reset bool, now time.Time) error {
	org, s, err := lockManagedSource(ctx, tx, managedBy)
	if pg.None(err) {
		return fault.New(fault.NotFound, "not_found", "%s keeps no roster source", managedBy)
	}
	if err != nil {
		return err
	}
	s.ManagedBy = ""
	if reset {
		s.Settings = standard
	}
	return saveSource(ctx, tx, by, org, s, "left roster source to the platform", now)
}

func saveSource(ctx context.Context, tx *pg.Tx, by audit.Actor, org id.Organization, s Source, action string, now time.Time) error {
	if err := updateSource(ctx, tx, org, s, now); err != nil {
		return err
	}
	wakeSource(tx, s.ID)
	return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: action, Target: s.label(), At: now})
}

// label names the source and its settings in the audit log.
func (s Source) label() string {
	text := s.Name + ", without authoritative snapshots"
	if s.AuthoritativeEnabled {
		text = s.Name + ", with authoritative snapshots"
	}
	if s.Approval == ApproveAlways {
		text += ", each of them approved"
	}
	if s.GuardPercent != nil {
		text += fmt.Sprintf(", held above %d %%", *s.GuardPercent)
	}
	return text
}
