package org_test

import (
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

func TestMembership(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	north, south := organization(t, db, "north").ID, organization(t, db, "south").ID
	user := flowtest.On(t, db).Account("ana@x.org", "Ana", "")
	send := func(queue func(b *pg.Batch)) {
		t.Helper()
		var b pg.Batch
		queue(&b)
		if err := b.Send(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	read := func(o id.Organization) (m org.Member) {
		t.Helper()
		send(func(b *pg.Batch) { org.LoadMember(b, o, user, &m) })
		m.JoinedAt = m.JoinedAt.UTC()
		return m
	}
	var want org.Member
	send(func(b *pg.Batch) { want = org.AddMember(b, north, user, org.RoleMember, org.ViaAPI, now) })
	if got := read(north); check.Equal(check.Now(t), "got", got, want, "added %+v, read %+v", want, got) {
		check.Equal(check.Now(t), "want.Status", want.Status, org.MemberActive, "added %+v, read %+v", want, got)
	}
	send(func(b *pg.Batch) { org.SetMemberStatus(b, north, user, org.MemberInactive, now.Add(time.Hour)) })
	if got := read(north); check.Equal(check.Now(t), "got.Status", got.Status, org.MemberInactive, "deactivated: %+v", got) {
		check.True(check.Now(t), "the member joined now", got.JoinedAt.Equal(now), "deactivated: %+v", got)
	}
	if got := read(south); got != (org.Member{Role: "", JoinedAt: time.Time{}.UTC()}) {
		t.Fatalf("another organization's member: %+v", got)
	}
}

func TestAllRolesButMemberAreStaff(t *testing.T) {
	t.Parallel()
	for role, want := range map[org.Role]bool{"": false, org.RoleMember: false, org.RoleOwner: true, org.RoleAdmin: true,
		org.RoleExaminer: true, org.RoleTeacher: true} {
		if role.Staff() != want {
			t.Errorf("%q is staff: %v", role, !want)
		}
	}
}
