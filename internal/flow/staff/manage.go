package staff

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/factor"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/provider"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Service has the commands of owners about their staff. An organization that has an active owner keeps one.
type Service struct {
	DB        *pg.DB
	Mail      email.Service
	Clock     clock.Clock
	PublicURL string // the base of every link, without a slash at its end
}

// inviteDays is how long the link of an invitation works.
const inviteDays = 7

// Invite makes the person staff of the organization, without a password, and mails them. Who has no
// password that opens the console gets a link to set one, which proves the mailbox. Somebody on the staff
// is invited again. Invalid lists every fault; Conflict (last_owner) for the only owner in another role.
func (s *Service) Invite(ctx context.Context, by audit.Actor, o org.Organization, c Command) (p Person, err error) {
	c.Password = ""
	address, err := c.check()
	if err != nil {
		return p, err
	}
	now := s.Clock()
	err = s.DB.InTx(ctx, func(tx *pg.Tx) error {
		if err := lock(ctx, tx, address); err != nil {
			return err
		}
		if err := s.keepOwner(ctx, tx, o.ID, func() error {
			var done string
			if p, done, err = put(ctx, tx, o.ID, c, address, "", now); err != nil || done != changed {
				return err
			}
			return org.MayChangeMember(ctx, tx, by, o.ID, p.UserID)
		}); err != nil {
			return err
		}
		entry := audit.Entry{Organization: o.ID, Actor: by, Action: "invited staff member", Target: target(p.Email, p.Membership.Role), At: now}
		org.Notify(tx, o.ID)
		return errors.Join(audit.Write(ctx, tx, entry), s.mail(ctx, tx, o, p, by, now))
	})
	return p, err
}

// Manage keeps people on the staff, each in the role that is named, for the resource that keeps the organization: who is
// not on the staff is invited, and who was kept and is not named any more is deactivated. Nobody else is touched.
// Faults of single people are joined: Invalid, and Conflict (last_owner, break_glass).
func (s *Service) Manage(ctx context.Context, by audit.Actor, o org.Organization, people []Command) error {
	members, err := org.Staff(ctx, s.DB, o.ID)
	if err != nil {
		return err
	}
	accounts, err := student.FindAll(ctx, s.DB, o.ID, slices.Collect(maps.Keys(members)))
	if err != nil {
		return err
	}
	known := make(map[student.Email]id.User, len(accounts))
	for user, a := range accounts {
		known[a.Email] = user
	}
	var faults []error
	named, seen := map[id.User]bool{}, map[student.Email]bool{}
	for _, c := range people {
		address, err := c.check()
		if err == nil && seen[address] {
			err = fault.Field("staff", "twice", "staff: one person is named twice")
		}
		seen[address] = true
		if err == nil {
			user := known[address]
			named[user] = true
			err = s.keep(ctx, by, o, c, user, members[user])
		}
		faults = append(faults, err)
	}
	for user, m := range members {
		if m.Managed && !named[user] {
			err := s.Deactivate(ctx, by, o.ID, user)
			if err == nil {
				err = org.SetManaged(ctx, s.DB, o.ID, user, false)
			}
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// keep makes m, who is the member user or nobody yet, what c says.
func (s *Service) keep(ctx context.Context, by audit.Actor, o org.Organization, c Command, user id.User, m org.Member) error {
	switch {
	case !m.Role.Staff():
		p, err := s.Invite(ctx, by, o, c)
		if err != nil {
			return err
		}
		user = p.UserID
	case m.Role != c.Role || m.Status != org.MemberActive:
		if err := s.SetRole(ctx, by, o.ID, user, c.Role); err != nil {
			return err
		}
	}
	if m.Managed {
		return nil
	}
	return org.SetManaged(ctx, s.DB, o.ID, user, true)
}

func target(address student.Email, role org.Role) string {
	return string(address) + " (" + string(role) + ")"
}

func (s *Service) mail(ctx context.Context, tx *pg.Tx, o org.Organization, p Person, by audit.Actor, now time.Time) error {
	a, err := student.Find(ctx, tx, p.UserID)
	if err != nil {
		return err
	}
	inviter := by.Name
	if by.Kind == audit.Operator { // the name of a resource tells the reader nothing
		inviter = audit.Platform.Name
	}
	m := email.StaffInvitation{FirstName: p.FirstName, LastName: p.LastName, Organization: o.Name, Role: string(p.Membership.Role), By: inviter,
		LoginURL: s.PublicURL + "/console/"}
	var secrets email.Secrets
	if a.Proof() != student.Mailbox {
		var b pg.Batch
		link := student.IssueMailedLink(&b, o.ID, a.ID, inviteDays, now)
		if err := b.Send(ctx, tx); err != nil {
			return err
		}
		m.LinkExpires, secrets.SetPasswordURL = link.ExpiresAt, s.PublicURL+"/set-password/"+link.Token
	}
	_, err = s.Mail.Queue(ctx, tx, now, email.Message{Organization: o.ID, User: a.ID, Recipient: string(a.Email), Content: m, Secrets: secrets})
	return err
}

// SetRole gives a member of the staff another role, and makes one active again who was deactivated. Invalid on role;
// NotFound for who is not on the staff; Forbidden (own_role) for one's own role; Conflict (last_owner).
func (s *Service) SetRole(ctx context.Context, by audit.Actor, o id.Organization, user id.User, role org.Role) error {
	return s.change(ctx, by, o, user, "changed staff member", func(b *pg.Batch, m org.Member, now time.Time) (org.Member, error) {
		if !role.Staff() {
			return m, errRole
		}
		return org.SetStaff(b, o, user, m, role, now), nil
	})
}

// SetRoleByProvider gives an active member of the staff the role that the organization's identity provider names. The
// last owner stays one, and so do those who keep another way in and those whose roles a resource keeps.
func (s *Service) SetRoleByProvider(ctx context.Context, o id.Organization, user id.User, role org.Role) error {
	by := audit.Actor{Kind: audit.Schedule, Name: "identity provider"}
	err := s.change(ctx, by, o, user, "changed staff member", func(b *pg.Batch, m org.Member, now time.Time) (org.Member, error) {
		if m.Status != org.MemberActive { // deactivated meanwhile
			return m, nil
		}
		return org.SetStaff(b, o, user, m, role, now), nil
	})
	if fault.Has(err, "last_owner") || fault.Has(err, "break_glass") || fault.Has(err, "managed") {
		return nil
	}
	return err
}

// Deactivate ends a membership of the staff: the next request of the person opens nothing of the organization's staff
// pages. The account stays. NotFound for who is not on the staff; Forbidden (own_role) for oneself; Conflict
// (last_owner).
func (s *Service) Deactivate(ctx context.Context, by audit.Actor, o id.Organization, user id.User) error {
	return s.change(ctx, by, o, user, "deactivated staff member", func(b *pg.Batch, m org.Member, now time.Time) (org.Member, error) {
		org.SetMemberStatus(b, o, user, org.MemberInactive, now)
		m.Status = org.MemberInactive
		return m, nil
	})
}

func (s *Service) change(
	ctx context.Context, by audit.Actor, o id.Organization, user id.User, action string, do func(*pg.Batch, org.Member, time.Time) (org.Member, error),
) error {
	if by.Kind == audit.Staff && by.ID == int64(user) {
		return fault.New(fault.Forbidden, "own_role", "Another owner has to do this for you. To leave, hand the organization over first.")
	}
	now := s.Clock()
	return s.DB.InTx(ctx, func(tx *pg.Tx) error {
		a, m, err := s.member(ctx, tx, o, user)
		if err != nil {
			return err
		}
		if err := org.MayChangeMember(ctx, tx, by, o, user); err != nil {
			return err
		}
		return s.keepOwner(ctx, tx, o, func() error {
			var b pg.Batch
			changed, err := do(&b, m, now)
			if err != nil || changed == m {
				return err
			}
			if err := b.Send(ctx, tx); err != nil {
				return err
			}
			org.Notify(tx, o)
			return audit.Write(ctx, tx, audit.Entry{Organization: o, Actor: by, Action: action, Target: target(a.Email, changed.Role), At: now})
		})
	})
}

// Transfer makes another member of the staff an owner, and the owner who says so an admin. NotFound for who is not on
// the staff; Conflict (not_active) for who is not active, or oneself; Forbidden (not_owner) from whom is no owner.
func (s *Service) Transfer(ctx context.Context, by audit.Actor, o id.Organization, from, to id.User) error {
	now := s.Clock()
	return s.DB.InTx(ctx, func(tx *pg.Tx) error {
		var members [2]org.Member
		var a student.Account
		for _, user := range []id.User{min(from, to), max(from, to)} { // all lock in one order
			found, m, err := s.member(ctx, tx, o, user)
			if err != nil {
				return err
			}
			if err := org.MayChangeMember(ctx, tx, by, o, user); err != nil {
				return err
			}
			if user == to {
				a, members[1] = found, m
			} else {
				members[0] = m
			}
		}
		own, m := members[0], members[1]
		switch {
		case from == to || m.Status != org.MemberActive:
			return fault.New(fault.Conflict, "not_active", "Hand it over to somebody else who is active on the staff.")
		case own.Role != org.RoleOwner || own.Status != org.MemberActive:
			return fault.New(fault.Forbidden, "not_owner", "Only an owner can hand the organization over.")
		}
		if err := s.keepOwner(ctx, tx, o, func() error {
			var b pg.Batch
			org.SetStaff(&b, o, to, m, org.RoleOwner, now)
			org.SetStaff(&b, o, from, own, org.RoleAdmin, now)
			return b.Send(ctx, tx)
		}); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: o, Actor: by, Action: "transferred ownership", Target: target(a.Email, org.RoleOwner), At: now})
	})
}

var errNotStaff = fault.New(fault.NotFound, "not_found", "there is no such person on the staff")

// lock takes the lock of an address. Whoever takes it and locks of rows takes it before them.
func lock(ctx context.Context, tx *pg.Tx, address student.Email) error {
	var b pg.Batch
	b.Lock(pg.LockEmail, string(address))
	return b.Send(ctx, tx)
}

// member reads a member of the staff under the lock of their address.
func (s *Service) member(ctx context.Context, tx *pg.Tx, o id.Organization, user id.User) (a student.Account, m org.Member, err error) {
	a, err = student.Find(ctx, tx, user)
	if fault.KindOf(err) == fault.NotFound {
		return a, m, errNotStaff
	}
	if err != nil {
		return a, m, err
	}
	var b pg.Batch
	b.Lock(pg.LockEmail, string(a.Email))
	org.LoadMember(&b, o, user, &m)
	if err := b.Send(ctx, tx); err != nil {
		return a, m, err
	}
	if !m.Role.Staff() {
		return a, m, errNotStaff
	}
	return a, m, nil
}

// keepOwner does something and refuses it when no active owner is left of one or more (Conflict, last_owner), or one of
// those is none any more who keep another way in than the identity provider (Conflict, break_glass). Changes of one
// organization's owners wait for each other.
func (s *Service) keepOwner(ctx context.Context, tx *pg.Tx, o id.Organization, do func() error) error {
	before, err := org.LockOwners(ctx, tx, o)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	after, err := org.LockOwners(ctx, tx, o)
	if err != nil {
		return err
	}
	if len(before) > 0 && len(after) == 0 {
		return fault.New(fault.Conflict, "last_owner", "An organization keeps an owner: make somebody else one first.")
	}
	policy, err := provider.PolicyOf(ctx, tx, o)
	if err != nil || !policy.Only {
		return err
	}
	for _, user := range policy.BreakGlass {
		if slices.Contains(before, user) && !slices.Contains(after, user) {
			return fault.New(fault.Conflict, "break_glass",
				"This owner is one of those who can sign in when the identity provider is away: choose another for that first.")
		}
	}
	return nil
}

// Policy is how an organization's staff must sign in. A part that is nil is not sent.
type Policy struct {
	Factor   *factor.Policy
	Provider *provider.Policy
}

// SetPolicy stores the parts that are sent: see factor.SetPolicy, and provider.SetPolicy.
func (s *Service) SetPolicy(ctx context.Context, by audit.Actor, o id.Organization, p Policy) error {
	return s.DB.InTx(ctx, func(tx *pg.Tx) error {
		if p.Provider != nil {
			if err := s.setProviderPolicy(ctx, tx, by, o, *p.Provider); err != nil {
				return err
			}
		}
		if p.Factor == nil {
			return nil
		}
		var roles []string
		for _, r := range org.StaffRoles() {
			roles = append(roles, string(r))
		}
		if _, err := factor.SetPolicy(ctx, tx, o, *p.Factor, roles, s.Clock()); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: o, Actor: by, Action: "changed sign-in policy", Target: p.Factor.String(), At: s.Clock()})
	})
}

func (s *Service) setProviderPolicy(ctx context.Context, tx *pg.Tx, by audit.Actor, o id.Organization, p provider.Policy) error {
	owners, err := org.LockOwners(ctx, tx, o)
	if err != nil {
		return err
	}
	have, err := factor.Have(ctx, tx, owners)
	if err != nil {
		return err
	}
	owners = slices.DeleteFunc(owners, func(user id.User) bool { return !have[user] })
	return provider.SetPolicy(ctx, tx, by, o, p, owners, s.Clock())
}
