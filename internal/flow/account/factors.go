package account

import (
	"cmp"
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// AddTOTP is factor.AddTOTP, with a notice to staff. With the first factor, the person's sessions end in which it
// was not given: all others.
func (s *Service) AddTOTP(ctx context.Context, a student.Account, name string, seed factor.Seed, code string, from Visit) ([]string, error) {
	return s.addFactor(ctx, a, from, func(tx *pg.Tx) (factor.Factor, []string, error) {
		return s.Factors.AddTOTP(ctx, tx, a.ID, name, seed, code, s.Clock())
	})
}

// AddPasskey is factor.AddPasskey, as AddTOTP.
func (s *Service) AddPasskey(ctx context.Context, a student.Account, name, state, answer string, from Visit) ([]string, error) {
	return s.addFactor(ctx, a, from, func(tx *pg.Tx) (factor.Factor, []string, error) {
		return s.Factors.AddPasskey(ctx, tx, a.ID, name, state, answer, s.Clock())
	})
}

func (s *Service) addFactor(
	ctx context.Context, a student.Account, from Visit, add func(*pg.Tx) (factor.Factor, []string, error),
) (recovery []string, err error) {
	err = s.DB.InTx(ctx, func(tx *pg.Tx) error {
		var f factor.Factor
		if f, recovery, err = add(tx); err != nil {
			return err
		}
		if recovery != nil {
			if err := student.EndSessions(ctx, tx, a.ID, from.Session); err != nil {
				return err
			}
		}
		return s.notify(ctx, tx, a, "added "+string(f.Kind), email.SecurityNotice{Notice: email.NoticeFactorAdded, Subject: f.Label()}, from)
	})
	return recovery, err
}

// RemoveFactor is factor.Remove, with a notice to staff. Conflict (factor_demanded) for the last one of somebody
// of whom an organization demands one.
func (s *Service) RemoveFactor(ctx context.Context, a student.Account, which uuid.UUID, from Visit) (f factor.Factor, err error) {
	err = s.DB.InTx(ctx, func(tx *pg.Tx) error {
		var left int
		if f, left, err = factor.Remove(ctx, tx, a.ID, which); err != nil {
			return err
		}
		if left == 0 {
			lacks, err := factor.Lacks(ctx, tx, a.ID)
			if err != nil {
				return err
			}
			if len(lacks) > 0 {
				return fault.New(fault.Conflict, "factor_demanded", "Your institute demands a second factor. Add another one first.")
			}
		}
		return s.notify(ctx, tx, a, "removed "+string(f.Kind), email.SecurityNotice{Notice: email.NoticeFactorRemoved, Subject: f.Label()}, from)
	})
	return f, err
}

// ReplaceRecoveryCodes is factor.ReplaceRecoveryCodes, with a notice to staff.
func (s *Service) ReplaceRecoveryCodes(ctx context.Context, a student.Account, from Visit) (codes []string, err error) {
	err = s.DB.InTx(ctx, func(tx *pg.Tx) error {
		if codes, err = factor.ReplaceRecoveryCodes(ctx, tx, a.ID); err != nil {
			return err
		}
		return s.notify(ctx, tx, a, "replaced recovery codes", email.SecurityNotice{Notice: email.NoticeFactorAdded, Subject: "new recovery codes"}, from)
	})
	return codes, err
}

// CheckCode is factor.Service.CheckCode, with a notice to staff of whom a recovery code was used or too many codes
// were tried, which is done by who knows the password.
func (s *Service) CheckCode(ctx context.Context, a student.Account, typed string, from Visit) error {
	recovery, refused := s.Factors.CheckCode(ctx, a.ID, typed, s.Clock())
	var done string
	var n email.SecurityNotice
	switch {
	case errors.Is(refused, factor.ErrFirstTooMany):
		done, n = "typed too many wrong codes", email.SecurityNotice{Notice: email.NoticeCodesTried}
	case recovery:
		done, n = "used recovery code", email.SecurityNotice{Notice: email.NoticeFactorRemoved, Subject: "a recovery code, which was used"}
	default:
		return refused
	}
	return cmp.Or(s.DB.InTx(ctx, func(tx *pg.Tx) error { return s.notify(ctx, tx, a, done, n, from) }), refused)
}

// ResetFactors takes the factors of a member of the staff who has lost them, at the word of another owner; the
// person is mailed. With what is left, the password, they sign in and set up new ones. Forbidden (own_factors)
// for one's own. Their sessions end. Conflict (platform_only) for an owner's word about somebody whom another
// organization knows, too: the platform may do it. NotFound for who is not on the staff.
func (s *Service) ResetFactors(ctx context.Context, by audit.Actor, o id.Organization, user id.User) (removed []factor.Factor, err error) {
	if by.Kind == audit.Staff && by.ID == int64(user) {
		return nil, fault.New(fault.Forbidden, "own_factors", "Another owner has to do this for you.")
	}
	err = s.DB.InTx(ctx, func(tx *pg.Tx) error {
		here, elsewhere, err := s.staffOf(ctx, tx, o, user)
		switch {
		case err != nil:
			return err
		case !here:
			return fault.New(fault.NotFound, "not_found", "there is no such person on the staff")
		case elsewhere && by.Kind == audit.Staff:
			return fault.New(fault.Conflict, "platform_only", "This can only be done by the platform. Write to its support.")
		}
		a, err := student.Find(ctx, tx, user)
		if err != nil {
			return err
		}
		if removed, err = factor.RemoveAll(ctx, tx, user); err != nil || len(removed) == 0 {
			return err
		}
		if err := student.EndSessions(ctx, tx, user, ""); err != nil { // whoever found the telephone may be in one
			return err
		}
		entry := audit.Entry{Organization: o, Actor: by, Action: "removed lost second factors", Target: string(a.Email), At: s.Clock()}
		if err := audit.Write(ctx, tx, entry); err != nil {
			return err
		}
		return s.notify(ctx, tx, a, "", email.SecurityNotice{Notice: email.NoticeFactorRemoved, Subject: "all of them, and the recovery codes", By: by.Name}, Visit{})
	})
	return removed, err
}

// staffOf says whether the user is on the staff of o, and belongs to others, whether active or not. Nobody is asked
// before becoming staff of o: what they have elsewhere is not o's to weaken.
func (s *Service) staffOf(ctx context.Context, q pg.Querier, o id.Organization, user id.User) (here, elsewhere bool, err error) {
	belongings, err := org.Belongings(ctx, q, user)
	for _, b := range belongings {
		here = here || b.Organization == o && b.Role.Staff()
		elsewhere = elsewhere || b.Organization != o
	}
	return here, elsewhere, err
}
