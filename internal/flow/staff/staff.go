// Package staff adds people to an organization's staff: account, membership with a role, and
// password, in one transaction.
package staff

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Command says who becomes staff, and in which role. "" means not sent: a role and a password
// that are there stay, and so do the names that the organization has for the person.
type Command struct {
	Email     string
	FirstName string // required for a new account
	LastName  string
	Role      org.Role // one of org.StaffRoles; required for a person who is not staff
	Password  string
}

// Person is a member of the staff after Put.
type Person struct {
	wire.Person
	Membership wire.Membership
}

// Put adds the person to the organization's staff, or changes their role or password; joined says
// whether there was no membership before. A password that is sent replaces the person's own and
// ends all set-password links. Without one, nothing changes of how the person signs in; staff pages
// need proof of the mailbox (student.Proof). Invalid lists every fault.
func Put(ctx context.Context, db *pg.DB, by audit.Actor, o id.Organization, c Command, now time.Time) (p Person, joined bool, err error) {
	address, err := c.check()
	if err != nil {
		return Person{}, false, err
	}
	var hash string
	if c.Password != "" {
		if hash, err = student.HashPassword(ctx, c.Password); err != nil {
			return Person{}, false, err
		}
	}
	entry := audit.Entry{Organization: o, Actor: by, At: now}
	err = db.InTx(ctx, func(tx *pg.Tx) (err error) {
		if p, entry.Action, err = put(ctx, tx, o, c, address, hash, now); err != nil || entry.Action == "" {
			return err
		}
		entry.Target = target(p.Email, p.Membership.Role)
		org.Notify(tx, o)
		return audit.Write(ctx, tx, entry)
	})
	return p, entry.Action == added, err
}

// What put does, as the audit log says it.
const (
	added   = "added staff member"
	changed = "changed staff member"
)

// put returns the person and what it did; "" when everything was so already.
func put(ctx context.Context, tx *pg.Tx, o id.Organization, c Command, address student.Email, hash string, now time.Time) (p Person, action string, err error) {
	a, m, err := read(ctx, tx, o, address)
	if err != nil {
		return p, "", err
	}
	if err := c.complete(a, m); err != nil {
		return p, "", err
	}
	existed := a.ID != 0
	if !existed {
		a, err = student.Create(ctx, tx, student.Draft{Email: address, FirstName: c.FirstName, LastName: c.LastName,
			CreatedBy: o, CreatedVia: student.ViaStaff}, now)
		if err != nil {
			return p, "", err
		}
	}
	role := m.Role
	if c.Role != "" {
		role = c.Role
	}
	var b pg.Batch
	if existed && !a.Known() {
		a.FirstName, a.LastName = c.FirstName, c.LastName
		student.SetNames(&b, o, student.Name{User: a.ID, FirstName: a.FirstName, LastName: a.LastName})
	}
	if hash != "" {
		student.SetPassword(&b, a.ID, hash, now)
	}
	switch {
	case m.Role == "":
		action = added
		m = org.AddMember(&b, o, a.ID, role, org.ViaStaff, now)
	case hash != "" || m.Role != role || m.Status != org.MemberActive:
		action = changed
		m = org.SetStaff(&b, o, a.ID, m, role, now)
	}
	if err := b.Send(ctx, tx); err != nil {
		return p, "", err
	}
	return Person{wire.Person{UserID: a.ID, Email: a.Email, FirstName: a.FirstName, LastName: a.LastName},
		wire.Membership{Role: m.Role, Status: m.Status}}, action, nil
}

// read takes the address's lock, as provisioning does, and reads what is there.
func read(ctx context.Context, tx *pg.Tx, o id.Organization, address student.Email) (a student.Account, m org.Member, err error) {
	var first pg.Batch
	first.Lock(pg.LockEmail, string(address))
	student.Load(&first, o, address, &a)
	if err := first.Send(ctx, tx); err != nil || a.ID == 0 {
		return a, m, err
	}
	var second pg.Batch
	org.LoadMember(&second, o, a.ID, &m)
	return a, m, second.Send(ctx, tx)
}

// check finds the faults that show without the database.
func (c Command) check() (student.Email, error) {
	var faults fault.List
	address, err := student.ParseEmail(c.Email)
	_ = faults.Add(err)
	_ = faults.Add(student.CheckName("first_name", c.FirstName))
	_ = faults.Add(student.CheckName("last_name", c.LastName))
	if c.Role != "" && !c.Role.Staff() {
		_ = faults.Add(errRole)
	}
	if c.Password != "" {
		_ = faults.Add(student.CheckPassword(c.Password, address, "", c.FirstName, c.LastName))
	}
	return address, faults.Err()
}

var errRole = fault.Field("role", "invalid", "role: send one of owner, admin, examiner, teacher")

// complete finds fields that are missing for this person.
func (c Command) complete(a student.Account, m org.Member) error {
	var faults fault.List
	if a.ID == 0 && c.FirstName == "" {
		_ = faults.Add(fault.Field("first_name", "missing", "first_name: required for a new account"))
	}
	if c.Role == "" && !m.Role.Staff() {
		_ = faults.Add(fault.Field("role", "missing", "role: required; send one of owner, admin, examiner, teacher"))
	}
	return faults.Err()
}
