package staff_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/staff"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func organization(t *testing.T, db *pg.DB, slug string) (made id.Organization) {
	t.Helper()
	err := db.InTx(t.Context(), func(tx *pg.Tx) error {
		o, _, err := org.Put(t.Context(), tx, slug, org.Patch{Name: &slug}, now)
		made = o.ID
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func put(t *testing.T, db *pg.DB, o id.Organization, c staff.Command) (staff.Person, bool) {
	t.Helper()
	p, joined, err := staff.Put(t.Context(), db, o, c, now)
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
	if !joined || p.Email != "olive@school.org" || p.FirstName != "Olive" || p.Membership.Role != org.RoleOwner || p.Membership.Status != org.MemberActive {
		t.Fatalf("%+v, joined %v", p, joined)
	}
	a, err := student.Find(t.Context(), db, p.UserID)
	if err != nil || a.CreatedVia != student.ViaStaff || a.CreatedBy != o || !a.HasSetPassword() || a.Untouched(o) {
		t.Fatalf("%+v, %v", a, err)
	}
	var hash string
	if err := db.QueryRow(t.Context(), `SELECT password_hash FROM accounts WHERE id = $1`, p.UserID).Scan(&hash); err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Fatalf("%s, %v", hash, err)
	}
}

func TestARepeatKeepsWhatIsNotSent(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	o := organization(t, db, "north")
	first, _ := put(t, db, o, olive)
	if again, joined := put(t, db, o, olive); joined || again != first {
		t.Fatalf("%+v, joined %v", again, joined)
	}
	if again, joined := put(t, db, o, staff.Command{Email: "olive@school.org"}); joined || again != first {
		t.Fatalf("%+v, joined %v", again, joined)
	}
	changed, _ := put(t, db, o, staff.Command{Email: "olive@school.org", FirstName: "Olivia", Role: org.RoleExaminer})
	if changed.FirstName != "Olive" || changed.Membership.Role != org.RoleExaminer {
		t.Fatalf("%+v", changed)
	}
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
	if _, _, err := staff.Put(t.Context(), db, north, staff.Command{Email: "olive@school.org"}, now); !fault.Has(err, "missing") {
		t.Fatalf("a student became staff without a role: %v", err)
	}
	p, joined := put(t, db, north, olive)
	if joined || p.UserID != user || p.Membership.Role != org.RoleOwner || p.Membership.Status != org.MemberActive {
		t.Fatalf("%+v, joined %v", p, joined)
	}
	var elsewhere string
	var links int
	err = db.QueryRow(t.Context(), `SELECT (SELECT role FROM members WHERE organization_id = $1 AND user_id = $2),
		(SELECT count(*) FROM set_password_tokens WHERE user_id = $2)`, south, user).Scan(&elsewhere, &links)
	if err != nil || elsewhere != "member" || links != 0 {
		t.Fatalf("%s elsewhere, %d links, %v", elsewhere, links, err)
	}
	// The organization that made the account can no longer set its sign-in details.
	if a, err := student.Find(t.Context(), db, user); err != nil || a.Untouched(north) {
		t.Fatalf("%+v, %v", a, err)
	}
}

// A password that a partner's key has set is known to the partner: it does not sign in a
// member of a staff. One that the person chose does.
func TestWhoJoinsTheStaffKeepsTheirOwnPasswordAlone(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	north, south := organization(t, db, "north"), organization(t, db, "south")
	const password = "Tr0ub4dor&3x"
	hash, err := student.HashPassword(t.Context(), password)
	if err != nil {
		t.Fatal(err)
	}
	for address, own := range map[student.Email]bool{"given@school.org": false, "own@school.org": true} {
		err := db.InTx(t.Context(), func(tx *pg.Tx) error {
			a, err := student.Create(t.Context(), tx, student.Draft{Email: address, FirstName: "O", PasswordHash: hash, CreatedBy: north, CreatedVia: student.ViaAPI}, now)
			if err != nil || !own {
				return err
			}
			return student.ChangePassword(t.Context(), tx, a.ID, hash, now)
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := student.SignIn(t.Context(), db, string(address), password, now); err != nil {
			t.Fatalf("%s as a student: %v", address, err)
		}
		for _, role := range []org.Role{org.RoleTeacher, org.RoleOwner} { // joined, and then changed
			put(t, db, south, staff.Command{Email: string(address), Role: role})
			if _, err := student.SignIn(t.Context(), db, string(address), password, now); (err == nil) != own {
				t.Errorf("%s as %s: %v", address, role, err)
			}
		}
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
		_, _, err := staff.Put(t.Context(), db, o, c.command, now)
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
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM accounts`).Scan(&accounts); err != nil || accounts != 0 {
		t.Fatalf("%d accounts were saved, %v", accounts, err)
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
			_, joined, err := staff.Put(t.Context(), db, o, olive, now)
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
