package staff_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

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
)

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func organization(t *testing.T, db *pg.DB, slug string) id.Organization {
	t.Helper()
	return flowtest.On(t, db).Organization(slug).ID
}

func put(t *testing.T, db *pg.DB, o id.Organization, c staff.Command) (staff.Person, bool) {
	t.Helper()
	p, joined, err := staff.Put(t.Context(), db, audit.Platform, o, c, now)
	if err != nil {
		t.Fatal(err)
	}
	return p, joined
}

var olive = staff.Command{Email: "Olive@School.org", FirstName: "Olive", LastName: "Owner", Role: org.RoleOwner, Password: "correct horse battery"}

func TestANewPersonGetsAccountMembershipAndPassword(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	o := organization(t, db, "north")
	p, joined := put(t, db, o, olive)
	check.True(check.Now(t), "joined", joined, "%+v, joined %v", p, joined)
	check.Equal(check.Now(t), "p.Email", p.Email, "olive@school.org", "%+v, joined %v", p, joined)
	check.Equal(check.Now(t), "p.FirstName", p.FirstName, "Olive", "%+v, joined %v", p, joined)
	check.Equal(check.Now(t), "p.Membership.Role", p.Membership.Role, org.RoleOwner, "%+v, joined %v", p, joined)
	check.Equal(check.Now(t), "p.Membership.Status", p.Membership.Status, org.MemberActive, "%+v, joined %v", p, joined)
	a, err := student.Find(t.Context(), db, p.UserID)
	check.NoError(check.Now(t), err, "%+v, %v", a, err)
	check.Equal(check.Now(t), "a.CreatedVia", a.CreatedVia, student.ViaStaff, "%+v, %v", a, err)
	check.Equal(check.Now(t), "a.CreatedBy", a.CreatedBy, o, "%+v, %v", a, err)
	check.True(check.Now(t), "the person has set a password", a.HasSetPassword(), "%+v, %v", a, err)
	check.False(check.Now(t), "the account is untouched", a.Untouched(o), "%+v, %v", a, err)
	var hash string
	if err := db.QueryRow(t.Context(), `SELECT password_hash FROM accounts WHERE id = $1`, p.UserID).Scan(&hash); check.NoError(check.Now(t), err, "%s, %v", hash, err) {
		check.True(check.Now(t), "the hash is of Argon2id", strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$"), "%s, %v", hash, err)
	}
}

func TestARepeatKeepsWhatIsNotSent(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	o := organization(t, db, "north")
	first, _ := put(t, db, o, olive)
	if again, joined := put(t, db, o, olive); check.False(check.Now(t), "joined", joined, "%+v, joined %v", again, joined) {
		check.Equal(check.Now(t), "again", again, first, "%+v, joined %v", again, joined)
	}
	if again, joined := put(t, db, o, staff.Command{Email: "olive@school.org"}); check.False(check.Now(t), "joined", joined, "%+v, joined %v", again, joined) {
		check.Equal(check.Now(t), "again", again, first, "%+v, joined %v", again, joined)
	}
	changed, _ := put(t, db, o, staff.Command{Email: "olive@school.org", FirstName: "Olivia", Role: org.RoleExaminer})
	check.Equal(check.Now(t), "changed.FirstName", changed.FirstName, "Olive", "%+v", changed)
	check.Equal(check.Now(t), "changed.Membership.Role", changed.Membership.Role, org.RoleExaminer, "%+v", changed)
}

func TestAStudentBecomesStaffOfOneOrganizationAlone(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	north, south := organization(t, db, "north"), organization(t, db, "south")
	var user id.User
	err := db.InTx(t.Context(), func(tx *pg.Tx) error {
		a, err := student.Create(t.Context(), tx, student.Draft{Email: "olive@school.org", FirstName: "O", CreatedBy: north, CreatedVia: student.ViaAPI}, now)
		if err != nil {
			return err
		}
		user = a.ID
		var b pg.Batch
		org.AddMember(&b, north, user, org.RoleMember, org.ViaAPI, now)
		org.AddMember(&b, south, user, org.RoleMember, org.ViaAPI, now)
		org.SetMemberStatus(&b, north, user, org.MemberInactive, now)
		student.IssueLink(&b, north, user, 3, now)
		return b.Send(t.Context(), tx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := staff.Put(t.Context(), db, audit.Platform, north, staff.Command{Email: "olive@school.org"}, now); !fault.Has(err, "missing") {
		t.Fatalf("a student became staff without a role: %v", err)
	}
	p, joined := put(t, db, north, olive)
	check.False(check.Now(t), "joined", joined, "%+v, joined %v", p, joined)
	check.Equal(check.Now(t), "p.UserID", p.UserID, user, "%+v, joined %v", p, joined)
	check.Equal(check.Now(t), "p.Membership.Role", p.Membership.Role, org.RoleOwner, "%+v, joined %v", p, joined)
	check.Equal(check.Now(t), "p.Membership.Status", p.Membership.Status, org.MemberActive, "%+v, joined %v", p, joined)
	var elsewhere string
	var links int
	err = db.QueryRow(t.Context(), `SELECT (SELECT role FROM members WHERE organization_id = $1 AND user_id = $2),
		(SELECT count(*) FROM set_password_tokens WHERE user_id = $2)`, south, user).Scan(&elsewhere, &links)
	check.NoError(check.Now(t), err, "%s elsewhere, %d links, %v", elsewhere, links, err)
	check.Equal(check.Now(t), "elsewhere", elsewhere, "member", "%s elsewhere, %d links, %v", elsewhere, links, err)
	check.Equal(check.Now(t), "links", links, 0, "%s elsewhere, %d links, %v", elsewhere, links, err)
	// The organization that made the account can no longer set its sign-in details.
	if a, err := student.Find(t.Context(), db, user); check.NoError(check.Now(t), err, "%+v, %v", a, err) {
		check.False(check.Now(t), "the account is untouched", a.Untouched(north), "%+v, %v", a, err)
	}
}

// Joining a staff changes nothing of how the person signs in, nor of what that proves: staff pages
// need the mailbox.
// Reference: provisioning#existing-accounts.
func TestWhoJoinsTheStaffKeepsTheWaysInAndTheirProof(t *testing.T) {
	t.Parallel()
	const word = "Tr0ub4dor&3x"
	hash, err := student.HashPassword(t.Context(), word)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		set     func(p *pupil)
		mailbox bool
	}{
		"set by the partner":                          {set: func(*pupil) {}},
		"changed after signing in with the partner's": {set: func(p *pupil) { p.change(hash) }},
		"set over the organization's link":            {set: func(p *pupil) { p.use(p.given(), hash) }},
		"changed after the organization's link":       {set: func(p *pupil) { p.use(p.given(), hash); p.change(hash) }},
		"set over a link to the mailbox":              {set: func(p *pupil) { p.use(p.mailed(), hash) }, mailbox: true},
		"changed after a link to the mailbox":         {set: func(p *pupil) { p.use(p.mailed(), hash); p.change(hash) }, mailbox: true},
		"on the staff of another organization": {set: func(p *pupil) {
			put(p.t, p.db, p.south, staff.Command{Email: pupilAddress, Role: org.RoleTeacher, Password: word})
		}, mailbox: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPupil(t, hash)
			c.set(p)
			link := p.mailed()
			want := student.ByOrganization(p.north)
			if c.mailbox {
				want = student.Mailbox
			}
			for _, role := range []org.Role{org.RoleTeacher, org.RoleOwner} { // joined, and then changed
				put(t, p.db, p.north, staff.Command{Email: pupilAddress, Role: role})
				whose, err := student.ResolveName(t.Context(), p.db, pupilAddress)
				check.NoError(check.Now(t), err, "%v", err)
				a, err := whose.SignIn(t.Context(), p.db, word, now)
				check.NoError(t, err, "signing in as %s", role)
				check.Equal(t, "proof", a.Proof(), want, "as %s", role)
			}
			_, _, err := student.FindLink(t.Context(), p.db, link.Token, now)
			check.NoError(t, err, "the link that was mailed before")
		})
	}
}

const pupilAddress = "pupil@school.org"

// pupil is a student whose account a partner's key of north made, with a password.
type pupil struct {
	t            *testing.T
	db           *pg.DB
	north, south id.Organization
	user         id.User
}

func newPupil(t *testing.T, hash string) *pupil {
	t.Helper()
	db := pgtest.New(t)
	p := &pupil{t: t, db: db, north: organization(t, db, "north"), south: organization(t, db, "south")}
	p.inTx(func(tx *pg.Tx) error {
		a, err := student.Create(t.Context(), tx, student.Draft{Email: pupilAddress, FirstName: "P", PasswordHash: hash, CreatedBy: p.north, CreatedVia: student.ViaAPI}, now)
		p.user = a.ID
		return err
	})
	return p
}

func (p *pupil) inTx(do func(tx *pg.Tx) error) {
	p.t.Helper()
	if err := p.db.InTx(p.t.Context(), do); err != nil {
		p.t.Fatal(err)
	}
}

// given is the link of an answer to the partner, mailed the one that the person asked for.
func (p *pupil) given() (l student.Link) {
	p.t.Helper()
	p.inTx(func(tx *pg.Tx) error {
		var b pg.Batch
		l = student.IssueLink(&b, p.north, p.user, 3, now)
		return b.Send(p.t.Context(), tx)
	})
	return l
}

func (p *pupil) mailed() (l student.Link) {
	p.t.Helper()
	p.inTx(func(tx *pg.Tx) (err error) { l, err = student.ResetLink(p.t.Context(), tx, p.user, now); return err })
	return l
}

func (p *pupil) use(l student.Link, hash string) {
	p.t.Helper()
	if _, _, err := student.SetOwnPassword(p.t.Context(), p.db, l.Token, hash, now); err != nil {
		p.t.Fatal(err)
	}
}

func (p *pupil) change(hash string) {
	p.t.Helper()
	a, err := student.Find(p.t.Context(), p.db, p.user)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err = student.ChangePassword(p.t.Context(), p.db, a, hash, now); err != nil {
		p.t.Fatal(err)
	}
}

func TestPutNamesEveryFieldAtFault(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	o := organization(t, db, "north")
	for name, c := range map[string]struct {
		command staff.Command
		fields  string
	}{
		"everything":        {staff.Command{Email: "x", FirstName: strings.Repeat("x", 151), LastName: "a\nb", Role: "member", Password: "short"}, "email first_name last_name role password"},
		"a new account":     {staff.Command{Email: "olive@school.org"}, "first_name role"},
		"a common password": {staff.Command{Email: "olive@school.org", FirstName: "O", Role: org.RoleAdmin, Password: "password123"}, "password"},
	} {
		_, _, err := staff.Put(t.Context(), db, audit.Platform, o, c.command, now)
		var f *fault.Error
		if !errors.As(err, &f) {
			t.Fatalf("%s: %v", name, err)
		}
		var fields []string
		for _, each := range f.All() {
			fields = append(fields, each.Field)
		}
		if got := strings.Join(fields, " "); got != c.fields {
			t.Errorf("%s: %s, want %s", name, got, c.fields)
		}
	}
	var accounts int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM accounts`).Scan(&accounts); check.NoError(check.Now(t), err, "%d accounts were saved, %v", accounts, err) {
		check.Equal(check.Now(t), "accounts", accounts, 0, "%d accounts were saved, %v", accounts, err)
	}
}

func TestPutsAtOnceMakeOneAccount(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	o := organization(t, db, "north")
	var wg sync.WaitGroup
	var mu sync.Mutex
	joins := 0
	for range 4 {
		wg.Go(func() {
			_, joined, err := staff.Put(t.Context(), db, audit.Platform, o, olive, now)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if joined {
				joins++
			}
		})
	}
	wg.Wait()
	if joins != 1 {
		t.Fatalf("%d calls say that they made the membership", joins)
	}
}
