package student_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func organization(t *testing.T, db *pg.DB) id.Organization {
	t.Helper()
	return flowtest.On(t, db).Organization("org-" + uuid.NewString()).ID
}

func create(t *testing.T, db *pg.DB, d student.Draft) (a student.Account, err error) {
	t.Helper()
	d.FirstName, d.CreatedVia = "Ana", student.ViaAPI
	err = db.InTx(t.Context(), func(tx *pg.Tx) error {
		a, err = student.Create(t.Context(), tx, d, now)
		return err
	})
	return a, err
}

func load(t *testing.T, db *pg.DB, email student.Email) (a student.Account) {
	t.Helper()
	var b pg.Batch
	student.Load(&b, 0, email, &a)
	if err := b.Send(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, db *pg.DB, org id.Organization, user id.User) student.Link {
	t.Helper()
	var b pg.Batch
	l := student.IssueLink(&b, org, user, 3, now)
	if err := b.Send(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return l
}

func issueMailed(t *testing.T, db *pg.DB, org id.Organization, user id.User) student.Link {
	t.Helper()
	var b pg.Batch
	l := student.IssueMailedLink(&b, org, user, 3, now)
	if err := b.Send(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestCreateAndRead(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	org := organization(t, db)
	made, err := create(t, db, student.Draft{Email: "ana@x.org", LastName: "Lopez", CreatedBy: org})
	check.NoError(check.Now(t), err, "%+v, %v", made, err)
	check.Equal(check.Now(t), "made.Username", made.Username, "ana@x.org", "%+v, %v", made, err)
	check.False(check.Now(t), "the student has set a password", made.HasSetPassword(), "%+v, %v", made, err)
	check.True(check.Now(t), "the account is untouched but for the organization", made.Untouched(org), "%+v, %v", made, err)
	check.False(check.Now(t), "the account is untouched but for another organization", made.Untouched(org+1), "%+v, %v", made, err)
	if got := load(t, db, "ana@x.org"); got != made {
		t.Fatalf("loaded %+v\nwant %+v", got, made)
	}
	if got := load(t, db, "ben@x.org"); got != (student.Account{}) {
		t.Fatalf("loaded %+v for nobody", got)
	}
	if got, err := student.Find(t.Context(), db, made.ID); check.NoError(check.Now(t), err, "found %+v, %v", got, err) {
		check.Equal(check.Now(t), "got", got, made, "found %+v, %v", got, err)
	}
	if _, err := student.Find(t.Context(), db, made.ID+1); fault.KindOf(err) != fault.NotFound {
		t.Fatalf("found nobody: %v", err)
	}
}

func TestUsernamesAreUniqueWithoutRegardToCase(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for i, c := range []struct {
		email student.Email
		sent  string
		want  string
	}{
		{"o'brien@x.org", "", "o_brien@x.org"},
		{"o/brien@x.org", "", "o_brien@x.org-2"},
		{"o{brien@x.org", "", "o_brien@x.org-3"},
		{"taken@x.org", "O_Brien@X.org", ""},
		{"free@x.org", "Free", "Free"},
	} {
		got, err := create(t, db, student.Draft{Email: c.email, Username: c.sent})
		check.Equal(t, "username", got.Username, c.want, "row %d: %v", i, err)
		check.Equal(t, "the fault is username_taken", fault.Has(err, "username_taken"), c.want == "", "row %d: %v", i, err)
	}
}

func TestDerivedUsernamesOfAccountsMadeAtOnceDiffer(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	var wg sync.WaitGroup
	for _, sign := range "!#$%&'*/=?^`{|}~" {
		wg.Go(func() {
			if _, err := create(t, db, student.Draft{Email: student.Email(fmt.Sprintf("a%cb@x.org", sign))}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var names int
	if err := db.QueryRow(t.Context(), `SELECT count(DISTINCT username) FROM accounts WHERE username LIKE 'a\_b@x.org%'`).Scan(&names); check.NoError(check.Now(t), err, "%d usernames, %v", names, err) {
		check.Equal(check.Now(t), "names", names, 16, "%d usernames, %v", names, err)
	}
}

// use sets a password over a link and says what the link proves.
func use(t *testing.T, db *pg.DB, l student.Link) (student.Proof, error) {
	t.Helper()
	_, found, err := student.FindLink(t.Context(), db, l.Token, now)
	if err != nil {
		return "", err
	}
	_, used, err := student.SetOwnPassword(t.Context(), db, l.Token, "$argon2id$x", now)
	check.Equal(t, "proof", used, found, "the proof of a link when it is found, and when it is used")
	return used, err
}

// What an organization was given proves that organization, what it had mailed, or the person asked
// for, the mailbox; the password that is chosen over a link proves the same.
// Reference: provisioning#links.
func TestALinkProvesWhatItsHolderCanKnow(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	north, south := organization(t, db), organization(t, db)
	for name, c := range map[string]struct {
		link func(user id.User) student.Link
		want student.Proof
	}{
		"given":         {func(u id.User) student.Link { return issue(t, db, north, u) }, student.ByOrganization(north)},
		"mailed":        {func(u id.User) student.Link { return issueMailed(t, db, north, u) }, student.Mailbox},
		"mailed by all": {func(u id.User) student.Link { return issueMailed(t, db, south, u) }, student.Mailbox},
		"asked for":     {func(u id.User) student.Link { return reset(t, db, u) }, student.Mailbox},
	} {
		a, err := create(t, db, student.Draft{Email: student.Email(strings.ReplaceAll(name, " ", ".") + "@x.org"), CreatedBy: north})
		check.NoError(check.Now(t), err, "%s", name)
		flowtest.On(t, db).Of(south).Add(a.ID, "owner", "active") // makes no difference
		got, err := use(t, db, c.link(a.ID))
		check.NoError(t, err, "%s", name)
		check.Equal(t, "the link's", got, c.want, "%s", name)
		check.Equal(t, "the password's", load(t, db, a.Email).Proof(), c.want, "%s", name)
	}
}

// What an organization knows ends nothing but what it knows; the mailbox ends everything.
// Reference: provisioning#links.
func TestAPasswordEndsWhatProvesNoMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mailbox         bool
		links, sessions string
	}{"over a link that the organization was given": {false, "asked mailed", "elsewhere mailbox"}, "over a link to the mailbox": {true, "", ""}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			f := flowtest.On(t, db)
			north, south := organization(t, db), organization(t, db)
			a, err := create(t, db, student.Draft{Email: "ana@x.org", CreatedBy: north})
			check.NoError(check.Now(t), err, "creating")
			links := map[string]student.Link{"given": issue(t, db, north, a.ID), "mailed": issueMailed(t, db, south, a.ID), "asked": reset(t, db, a.ID)}
			for hash, p := range map[string]student.Proof{"north": student.ByOrganization(north), "elsewhere": student.ByOrganization(south), "mailbox": student.Mailbox} {
				data := fmt.Sprintf(`{"values": {"user": "%d", "proof": %q}}`, a.ID, p)
				check.NoError(check.Now(t), (student.Sessions{DB: db}).Keep(t.Context(), hash, []byte(data), time.Now().Add(time.Hour)), "%s", hash)
			}
			over := issue(t, db, north, a.ID)
			if c.mailbox {
				over = issueMailed(t, db, north, a.ID)
			}
			_, err = use(t, db, over)
			check.NoError(check.Now(t), err, "using the link")
			var left []string
			for name, l := range links {
				if _, _, err := student.FindLink(t.Context(), db, l.Token, now); err == nil {
					left = append(left, name)
				}
			}
			slices.Sort(left)
			check.Equal(t, "links that are left", strings.Join(left, " "), c.links, "")
			var sessions string
			f.Scan(&sessions, `SELECT coalesce(string_agg(hash, ' ' ORDER BY hash), '') FROM sessions`)
			check.Equal(t, "sessions that are left", sessions, c.sessions, "")
		})
	}
}

// A link that an organization is given while the person chooses a password is made too late.
func TestALinkOfAnOrganizationOpensNothingOnceThePersonHasChosen(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	north := organization(t, db)
	a, err := create(t, db, student.Draft{Email: "ana@x.org", CreatedBy: north})
	check.NoError(check.Now(t), err, "creating")
	_, err = use(t, db, issueMailed(t, db, north, a.ID))
	check.NoError(check.Now(t), err, "the mailed link")
	late := issue(t, db, north, a.ID)
	if _, err := use(t, db, late); !errors.Is(err, student.ErrLinkOver) {
		t.Errorf("the late link is found: %v", err)
	}
	if _, _, err := student.SetOwnPassword(t.Context(), db, late.Token, "$argon2id$y", now); !errors.Is(err, student.ErrLinkOver) {
		t.Errorf("the late link sets a password: %v", err)
	}
	_, err = use(t, db, issueMailed(t, db, north, a.ID))
	check.NoError(t, err, "another mailed link")
}

// Reference: students#student-fields.
func TestAnOrganizationDoesNotSeeAnothersSignIns(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	north, south := organization(t, db), organization(t, db)
	a, err := create(t, db, student.Draft{Email: "ana@x.org", CreatedBy: north, PasswordHash: "$argon2id$x", MustChangePassword: true})
	check.NoError(check.Now(t), err, "creating")
	for _, o := range []id.Organization{north, south} {
		flowtest.On(t, db).Of(o).Add(a.ID, "member", "active")
	}
	flowtest.On(t, db).Exec(`UPDATE accounts SET last_login = now()`)
	seen := func(o id.Organization) string {
		a, err := student.Lookup(t.Context(), db, o, "ana@x.org")
		check.NoError(check.Now(t), err, "looking up")
		return fmt.Sprintf("password %v, set %v, must change %v, signed in %v", a.HasPassword(), a.HasSetPassword(), a.MustChangePassword, !a.LastLogin.IsZero())
	}
	const all, nothing = "password true, set true, must change true, signed in true", "password false, set false, must change false, signed in false"
	check.Equal(t, "its maker", seen(north), all, "a password of the maker's")
	check.Equal(t, "another", seen(south), nothing, "a password of the maker's")
	flowtest.On(t, db).Exec(`UPDATE accounts SET proven_password = true`)
	check.Equal(t, "its maker", seen(north), all, "the person's own")
	check.Equal(t, "another", seen(south), all, "the person's own")
}

func reset(t *testing.T, db *pg.DB, user id.User) (l student.Link) {
	t.Helper()
	err := db.InTx(t.Context(), func(tx *pg.Tx) (err error) {
		l, err = student.ResetLink(t.Context(), tx, user, now)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestResetLinks(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ana, err := create(t, db, student.Draft{Email: "ana@x.org", CreatedBy: organization(t, db)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if l := reset(t, db, ana.ID); !l.ExpiresAt.Equal(now.Add(time.Hour)) {
			t.Fatalf("%+v", l)
		}
	}
	if l := reset(t, db, ana.ID); l.Token != "" {
		t.Errorf("a fourth link within the hour: %+v", l)
	}
}

func TestALinkSetsThePasswordOnceAndEndsTheOthers(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	org := organization(t, db)
	ana, err := create(t, db, student.Draft{Email: "ana@x.org", CreatedBy: org, MustChangePassword: true})
	if err != nil {
		t.Fatal(err)
	}
	first, second := issue(t, db, org, ana.ID), issue(t, db, org, ana.ID)
	if !first.ExpiresAt.Equal(now.AddDate(0, 0, 3)) {
		t.Fatalf("expires %v", first.ExpiresAt)
	}
	for range 2 { // reading consumes nothing
		if got, _, err := student.FindLink(t.Context(), db, first.Token, now); check.NoError(check.Now(t), err, "%+v, %v", got, err) {
			check.Equal(check.Now(t), "got.ID", got.ID, ana.ID, "%+v, %v", got, err)
		}
	}
	if _, _, err := student.FindLink(t.Context(), db, first.Token, first.ExpiresAt); !errors.Is(err, student.ErrLinkOver) {
		t.Fatalf("an expired link: %v", err)
	}
	set := func(token string, at time.Time) error {
		_, _, err := student.SetOwnPassword(t.Context(), db, token, "$argon2id$x", at)
		return err
	}
	if err := set(first.Token, first.ExpiresAt); !errors.Is(err, student.ErrLinkOver) {
		t.Fatalf("an expired link sets a password: %v", err)
	}
	if err := set("unknown", now); !errors.Is(err, student.ErrLinkOver) {
		t.Fatalf("an unknown link sets a password: %v", err)
	}
	var wg sync.WaitGroup
	results := make(chan error, 8)
	for i := range 8 {
		wg.Go(func() { results <- set([]string{first.Token, second.Token}[i%2], now) })
	}
	wg.Wait()
	close(results)
	won := 0
	for err := range results {
		if err == nil {
			won++
		} else if !errors.Is(err, student.ErrLinkOver) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d of 8 uses set the password", won)
	}
	got := load(t, db, "ana@x.org")
	check.True(check.Now(t), "the student has set a password", got.HasSetPassword(), "after: %+v", got)
	check.False(check.Now(t), "got.MustChangePassword", got.MustChangePassword, "after: %+v", got)
	check.False(check.Now(t), "the account is untouched", got.Untouched(org), "after: %+v", got)
}

// A sign-in that is under way while the password and all sessions end comes too late, also
// where it has read the account already.
func TestASessionBeginsOnlyWithThePasswordThatOpenedIt(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	const word = "Tr0ub4dor&3x"
	hash, err := student.HashPassword(t.Context(), word)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := create(t, db, student.Draft{Email: "ana@x.org", CreatedBy: organization(t, db), PasswordHash: hash}); err != nil {
		t.Fatal(err)
	}
	whose, err := student.ResolveName(t.Context(), db, "ana@x.org")
	check.NoError(check.Now(t), err, "%v", err)
	ana, err := whose.SignIn(t.Context(), db, word, now)
	if err != nil {
		t.Fatal(err)
	}
	sessions := student.Sessions{DB: db}
	begin := func(hash string) error {
		return sessions.Begin(t.Context(), hash, []byte(fmt.Sprintf(`{"values": {"user": "%d"}}`, ana.ID)), time.Now().Add(time.Hour), ana, false)
	}
	stored := func(hash string) bool {
		_, found, err := sessions.Find(t.Context(), hash)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if err := begin("first"); check.NoError(check.Now(t), err, "no session begins: %v", err) {
		check.True(check.Now(t), "the first session is stored", stored("first"), "no session begins: %v", err)
	}
	ending, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ending.Rollback(context.Background()) }()
	for _, sql := range []string{`UPDATE accounts SET password_hash = NULL`, `DELETE FROM sessions`} {
		if _, err := ending.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- begin("second") }()
	pgtest.AwaitBlocked(t, db, ending)
	if err := ending.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; check.NoError(t, err, "a session has begun with the password of before (%v)", err) {
		check.False(t, "the second session is stored", stored("second"), "a session has begun with the password of before (%v)", err)
	}
	if err := sessions.Update(t.Context(), "first", []byte(`{"values": {}}`), time.Now().Add(time.Hour)); check.NoError(t, err, "a session that was deleted is back (%v)", err) {
		check.False(t, "the first session is stored", stored("first"), "a session that was deleted is back (%v)", err)
	}
}

// A sign-in by the password alone that is under way while the person gets a second factor comes too late.
func TestASessionBeginsOnlyWithTheFactorThatThereIs(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ana, err := create(t, db, student.Draft{Email: "ana@x.org", CreatedBy: organization(t, db)})
	check.NoError(check.Now(t), err, "creating an account")
	sessions := student.Sessions{DB: db}
	begin := func(hash string, factor bool) error {
		return sessions.Begin(t.Context(), hash, []byte(fmt.Sprintf(`{"values": {"user": "%d"}}`, ana.ID)), time.Now().Add(time.Hour), ana, factor)
	}
	stored := func(hash string) bool {
		_, found, err := sessions.Find(t.Context(), hash)
		check.NoError(check.Now(t), err, "%s", hash)
		return found
	}
	adding, err := db.Begin(t.Context())
	check.NoError(check.Now(t), err, "a transaction")
	defer func() { _ = adding.Rollback(context.Background()) }()
	for _, sql := range []string{`SELECT FROM accounts FOR NO KEY UPDATE`,
		`INSERT INTO factors (id, user_id, kind, name, sealed, created_at) SELECT gen_random_uuid(), id, 'totp', 'Telephone', '', now() FROM accounts`} {
		_, err := adding.Exec(t.Context(), sql)
		check.NoError(check.Now(t), err, "%s", sql)
	}
	done := make(chan error, 1)
	go func() { done <- begin("without", false) }()
	pgtest.AwaitBlocked(t, db, adding)
	check.NoError(check.Now(t), adding.Commit(t.Context()), "adding a factor")
	check.NoError(t, <-done, "signing in")
	check.False(t, "the session without it is stored", stored("without"), "")
	check.NoError(t, begin("with", true), "signing in with it")
	check.True(t, "the session with it is stored", stored("with"), "")
}

// Who proves an organization alone sees, and ends, no session of who has proved the mailbox.
func TestASessionSeesItsLike(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ana, err := create(t, db, student.Draft{Email: "ana@x.org", CreatedBy: organization(t, db)})
	check.NoError(check.Now(t), err, "creating an account")
	ben, err := create(t, db, student.Draft{Email: "ben@x.org", CreatedBy: organization(t, db)})
	check.NoError(check.Now(t), err, "creating an account")
	sessions := student.Sessions{DB: db}
	for hash, c := range map[string]struct {
		user  id.User
		proof string
	}{
		"mailbox": {ana.ID, "mailbox"}, "mailbox too": {ana.ID, "mailbox"},
		"north": {ana.ID, "organization 1"}, "north too": {ana.ID, "organization 1"}, "south": {ana.ID, "organization 2"},
		"ben": {ben.ID, "mailbox"},
	} {
		data := fmt.Sprintf(`{"values": {"user": "%d", "proof": %q, "agent": %q}}`, c.user, c.proof, hash)
		check.NoError(check.Now(t), sessions.Keep(t.Context(), hash, []byte(data), time.Now().Add(time.Hour)), "storing %s", hash)
	}
	seen := func(hash string) string {
		t.Helper()
		open, err := sessions.List(t.Context(), hash)
		check.NoError(check.Now(t), err, "listing for %s", hash)
		var names []string
		for i, o := range open {
			check.Equal(t, "it is the one that asks", o.Current, i == 0, "%s", o.Agent)
			names = append(names, o.Agent)
		}
		return strings.Join(names, ", ")
	}
	check.Equal(t, "the list", seen("north"), "north, north too", "of the proof of one organization")
	check.Equal(t, "the list", seen("south"), "south", "of the proof of another")
	check.Equal(t, "the list", seen("mailbox"), "mailbox, mailbox too, north, north too, south", "of the proof of the mailbox")
	check.Equal(t, "the list", seen("gone"), "", "of no session")
	for _, c := range []struct {
		hash, left string
		ended      int64
	}{{"north", "mailbox, mailbox too, north, south", 1}, {"mailbox", "mailbox", 3}, {"gone", "mailbox", 0}} {
		ended, err := sessions.EndOthers(t.Context(), c.hash)
		check.NoError(check.Now(t), err, "ending for %s", c.hash)
		check.Equal(t, "those that ended", ended, c.ended, "for %s", c.hash)
		check.Equal(t, "those that are left", seen("mailbox"), c.left, "for %s", c.hash)
	}
	check.Equal(t, "another person's", seen("ben"), "ben", "untouched")
}
