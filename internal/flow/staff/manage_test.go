package staff_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
)

type office struct {
	*staff.Service
	t     *testing.T
	db    *pg.DB
	north org.Organization
	users map[string]id.User
}

func openOffice(t *testing.T) *office {
	t.Helper()
	db := pgtest.New(t)
	o := &office{&staff.Service{DB: db, Mail: email.Service{Box: sealtest.New(t)}, Clock: func() time.Time { return now }, PublicURL: "https://registrar.test"}, t, db, org.Organization{}, map[string]id.User{}}
	o.north = org.Organization{ID: flowtest.On(t, db).Organization("north").ID, Slug: "north", Name: "North"}
	for _, c := range []staff.Command{
		{Email: "olive@school.org", FirstName: "Olive", Role: org.RoleOwner, Password: "correct horse battery"},
		{Email: "adam@school.org", FirstName: "Adam", Role: org.RoleAdmin, Password: "correct horse battery"},
	} {
		p, _ := put(t, db, o.north.ID, c)
		name, _, _ := strings.Cut(c.Email, "@")
		o.users[name] = p.UserID
	}
	return o
}

func (o *office) by(name string) audit.Actor {
	return audit.Actor{Kind: audit.Staff, ID: int64(o.users[name]), Name: name + "@school.org"}
}

// is the role and state of somebody, "" for who is no member.
func (o *office) is(name string) string {
	o.t.Helper()
	var m org.Member
	var b pg.Batch
	org.LoadMember(&b, o.north.ID, o.users[name], &m)
	check.NoError(check.Now(o.t), b.Send(o.t.Context(), o.db), "%s", name)
	return strings.TrimSpace(string(m.Role) + " " + string(m.Status))
}

func (o *office) actions() (all []string) {
	o.t.Helper()
	all, err := pg.Column[string](o.t.Context(), o.db, `SELECT actor_name || ' ' || action || ' ' || target FROM audit_log ORDER BY id`)
	check.NoError(check.Now(o.t), err, "the audit log")
	return all
}

func TestAnInvitationProvesTheMailbox(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	p, err := o.Invite(t.Context(), o.by("olive"), o.north, staff.Command{Email: "Tariq@school.org", FirstName: "Tariq", Role: org.RoleTeacher, Password: "is not taken here"})
	check.NoError(check.Now(t), err, "inviting")
	o.users["tariq"] = p.UserID
	check.Equal(t, "he is", o.is("tariq"), "teacher active", "")
	_, err = o.Invite(t.Context(), o.by("olive"), o.north, staff.Command{Email: "adam@school.org"})
	check.NoError(t, err, "inviting somebody again")
	f := flowtest.On(t, o.db)
	check.Equal(t, "mails with a link", f.Count("emails WHERE type = 'staff_invitation' AND recipient = 'tariq@school.org' AND sealed IS NOT NULL AND params ->> 'by' = 'olive@school.org'"), 1, "")
	check.Equal(t, "mails without one", f.Count("emails WHERE type = 'staff_invitation' AND recipient = 'adam@school.org' AND sealed IS NULL"), 1, "he has a password of his own")
	check.Equal(t, "links", f.Count("set_password_tokens WHERE mailed"), 1, "")
	a, err := student.Find(t.Context(), o.db, p.UserID)
	check.NoError(check.Now(t), err, "")
	check.False(t, "he has a password", a.HasPassword(), "")
	_, err = o.Invite(t.Context(), o.by("olive"), o.north, staff.Command{Email: "nobody", Role: "boss"})
	check.Equal(t, "the fault", fault.KindOf(err), fault.Invalid, "%v", err)
}

func TestAnOrganizationKeepsAnOwner(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	ctx, north := t.Context(), o.north.ID
	code := func(err error) string {
		t.Helper()
		for _, c := range []string{"own_role", "last_owner", "not_owner", "not_active", "not_found"} {
			if fault.Has(err, c) {
				return c
			}
		}
		check.NoError(t, err, "another fault")
		return ""
	}
	check.Equal(t, "deactivating oneself", code(o.Deactivate(ctx, o.by("olive"), north, o.users["olive"])), "own_role", "")
	check.Equal(t, "the platform, about the last owner", code(o.Deactivate(ctx, audit.Platform, north, o.users["olive"])), "last_owner", "")
	_, err := o.Invite(ctx, o.by("adam"), o.north, staff.Command{Email: "olive@school.org", Role: org.RoleTeacher})
	check.Equal(t, "inviting the last owner as a teacher", code(err), "last_owner", "")
	check.Equal(t, "somebody else", code(o.SetRole(ctx, o.by("olive"), north, 999, org.RoleAdmin)), "not_found", "")
	check.Equal(t, "an admin hands over", code(o.Transfer(ctx, o.by("adam"), north, o.users["adam"], o.users["olive"])), "not_owner", "")
	check.Equal(t, "to oneself", code(o.Transfer(ctx, o.by("olive"), north, o.users["olive"], o.users["olive"])), "not_active", "")
	check.Equal(t, "Olive is", o.is("olive"), "owner active", "")

	check.Equal(t, "handing over", code(o.Transfer(ctx, o.by("olive"), north, o.users["olive"], o.users["adam"])), "", "")
	check.Equal(t, "Olive is", o.is("olive"), "admin active", "")
	check.Equal(t, "Adam is", o.is("adam"), "owner active", "")
	check.Equal(t, "deactivating", code(o.Deactivate(ctx, o.by("adam"), north, o.users["olive"])), "", "")
	check.Equal(t, "Olive is", o.is("olive"), "admin inactive", "")
	check.Equal(t, "handing over to somebody inactive", code(o.Transfer(ctx, o.by("adam"), north, o.users["adam"], o.users["olive"])), "not_active", "")
	check.Equal(t, "a role makes active", code(o.SetRole(ctx, o.by("adam"), north, o.users["olive"], org.RoleExaminer)), "", "")
	check.Equal(t, "Olive is", o.is("olive"), "examiner active", "")
	got := o.actions()
	check.Slices(t, "the audit log", got[len(got)-3:], []string{"olive@school.org transferred ownership adam@school.org (owner)",
		"adam@school.org deactivated staff member olive@school.org (admin)", "adam@school.org changed staff member olive@school.org (examiner)"}, "")
}

// A claim changes the role of who is active alone, and of no owner who is needed.
func TestAProvidersRoleIsForWhoIsActive(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	ctx, north := t.Context(), o.north.ID
	for _, c := range []struct {
		name string
		role org.Role
		is   string
	}{{"adam", org.RoleTeacher, "teacher active"}, {"olive", org.RoleTeacher, "owner active"}} {
		check.NoError(t, o.SetRoleByProvider(ctx, north, o.users[c.name], c.role), "%s", c.name)
		check.Equal(t, c.name+" is", o.is(c.name), c.is, "")
	}
	check.NoError(t, o.Deactivate(ctx, o.by("olive"), north, o.users["adam"]), "deactivating")
	check.NoError(t, o.SetRoleByProvider(ctx, north, o.users["adam"], org.RoleOwner), "somebody inactive")
	check.Equal(t, "Adam is", o.is("adam"), "teacher inactive", "")
}

// Two owners who end each other at the same time: one of them stays.
func TestOwnersWhoEndEachOtherLeaveOne(t *testing.T) {
	t.Parallel()
	for range 10 {
		o := openOffice(t)
		check.NoError(check.Now(t), o.SetRole(t.Context(), o.by("olive"), o.north.ID, o.users["adam"], org.RoleOwner), "a second owner")
		var both sync.WaitGroup
		both.Go(func() { _ = o.Deactivate(t.Context(), o.by("olive"), o.north.ID, o.users["adam"]) })
		both.Go(func() { _ = o.SetRole(t.Context(), o.by("adam"), o.north.ID, o.users["olive"], org.RoleTeacher) })
		both.Wait()
		check.Equal(t, "owners", flowtest.On(t, o.db).Count("members WHERE role = 'owner' AND status = 'active'"), 1, "%s, %s", o.is("olive"), o.is("adam"))
		if testing.Short() {
			break
		}
	}
}

// The people of a resource are kept on the staff, with the rights of the operator alone, and nobody else is touched.
func TestAResourceKeepsItsPeople(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	operator := *o.Service
	operator.DB = pgtest.OpenAs(t, o.db, "operator")
	by := audit.Actor{Kind: audit.Operator, Name: "kubernetes/test/north"}
	name := "North"
	north, created, err := org.Manage(t.Context(), operator.DB, by, "north", org.Patch{Name: &name}, org.Management{By: by.Name, Fields: []string{"name"}}, now)
	check.NoError(check.Now(t), err, "taking the organization over")
	check.False(t, "it is a new one", created, "")
	keep := func(people ...staff.Command) error { return operator.Manage(t.Context(), by, north, people) }
	tariq := staff.Command{Email: "Tariq@school.org", FirstName: "Tariq", Role: org.RoleTeacher}
	olive := staff.Command{Email: "olive@school.org", Role: org.RoleOwner}
	check.NoError(check.Now(t), keep(tariq, olive), "keeping two")
	a, err := student.Lookup(t.Context(), o.db, north.ID, "tariq@school.org")
	check.NoError(check.Now(t), err, "")
	o.users["tariq"] = a.ID
	f := flowtest.On(t, o.db)
	check.Equal(t, "he is", o.is("tariq"), "teacher active", "")
	check.Equal(t, "who is kept", f.Count("members WHERE managed"), 2, "")
	check.Equal(t, "invitations", f.Count("emails WHERE type = 'staff_invitation' AND params ->> 'by' = 'platform administrator'"), 1, "")
	before := len(o.actions())
	check.NoError(t, keep(tariq, olive), "again")
	check.Equal(t, "commands of a repetition", len(o.actions())-before, 0, "%v", o.actions())

	tariq.Role = org.RoleAdmin
	check.NoError(t, keep(tariq, olive), "another role")
	check.Equal(t, "he is", o.is("tariq"), "admin active", "")
	check.True(t, "an owner may not change it", fault.Has(o.SetRole(t.Context(), o.by("olive"), north.ID, a.ID, org.RoleTeacher), "managed"), "")
	check.True(t, "nor deactivate him", fault.Has(o.Deactivate(t.Context(), o.by("olive"), north.ID, a.ID), "managed"), "")
	check.True(t, "nor hand over to him", fault.Has(o.Transfer(t.Context(), o.by("olive"), north.ID, o.users["olive"], a.ID), "managed"), "")
	_, err = o.Invite(t.Context(), o.by("olive"), north, staff.Command{Email: "tariq@school.org", Role: org.RoleTeacher})
	check.True(t, "nor invite him into another role", fault.Has(err, "managed"), "%v", err)
	check.NoError(t, o.SetRoleByProvider(t.Context(), north.ID, a.ID, org.RoleTeacher), "a provider's role")
	check.Equal(t, "he is", o.is("tariq"), "admin active", "after all that")
	check.NoError(t, o.SetRole(t.Context(), o.by("olive"), north.ID, o.users["adam"], org.RoleTeacher), "who is not kept")
	check.NoError(t, o.Deactivate(t.Context(), audit.Platform, north.ID, a.ID), "the platform")
	check.NoError(t, keep(tariq, olive), "after the platform")
	check.Equal(t, "he is", o.is("tariq"), "admin active", "again")

	check.True(t, "one person twice is refused", fault.Has(keep(tariq, staff.Command{Email: " tariq@SCHOOL.org", Role: org.RoleTeacher}, olive), "twice"), "")
	check.True(t, "the last owner stays", fault.Has(keep(tariq, staff.Command{Email: "olive@school.org", Role: org.RoleAdmin}), "last_owner"), "")
	check.NoError(t, keep(olive), "without him")
	check.Equal(t, "he is", o.is("tariq"), "admin inactive", "")
	check.Equal(t, "he was never kept", o.is("adam"), "teacher active", "")
	check.Equal(t, "who is kept", f.Count("members WHERE managed"), 1, "")
	check.NoError(t, org.Release(t.Context(), operator.DB, by, north.ID, by.Name, now), "releasing")
	check.Equal(t, "who is kept", f.Count("members WHERE managed"), 0, "")
	check.NoError(t, o.SetRole(t.Context(), o.by("olive"), north.ID, a.ID, org.RoleTeacher), "an owner may again")
}
