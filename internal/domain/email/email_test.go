package email_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

var noon = time.Date(2026, 11, 5, 12, 0, 0, 0, time.UTC)

// newStudent stores an organization and an account.
func newStudent(t *testing.T, db *pg.DB, address string) (id.Organization, id.User) {
	t.Helper()
	f := flowtest.On(t, db)
	return f.Organization("school").Set("name", "Saffron School").ID, f.Account(address, "Ada", "")
}

func welcome(org id.Organization, user id.User, address string) email.Message {
	return email.Message{
		Organization: org, User: user, Recipient: address,
		Content: email.Welcome{
			Student: email.Student{
				FirstName: "Ada", LastName: "Lovelace", Organization: "Saffron School", Username: address,
				LoginURL: "https://learn.saffron.school/sign-in",
				Courses:  []email.Course{{Name: "IELTS Academic", EndDate: clock.DateOf(2027, time.May, 5)}},
			},
			LinkExpires: noon.AddDate(0, 0, 7),
		},
		Secrets: email.Secrets{SetPasswordURL: "https://learn.saffron.school/set-password/Tok3nTok3n"},
	}
}

func queue(t *testing.T, db *pg.DB, service email.Service, m email.Message) email.Record {
	t.Helper()
	var got email.Record
	err := db.InTx(t.Context(), func(tx *pg.Tx) (err error) {
		got, err = service.Queue(t.Context(), tx, noon, m)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestQueueStoresTheMailAndOwesItsSending(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	org, user := newStudent(t, db, "ada@saffron.school")
	got := queue(t, db, email.Service{Box: sealtest.New(t)}, welcome(org, user, "ada@saffron.school"))
	check.Equal(check.Now(t), "got.Status", got.Status, email.Queued, "queued = %+v", got)
	check.Equal(check.Now(t), "got.Type", got.Type, email.TypeWelcome, "queued = %+v", got)
	check.True(check.Now(t), "there is a detail", got.Detail != "", "queued = %+v", got)
	tasks, err := outbox.Claim(t.Context(), db, task.EmailSend, noon, time.Minute, 10)
	check.NoError(check.Now(t), err, "pending = %+v, %v", tasks, err)
	check.Equal(check.Now(t), "number of tasks", len(tasks), 1, "pending = %+v, %v", tasks, err)
	check.Equal(check.Now(t), "the first task's subject", tasks[0].Subject, int64(got.ID), "pending = %+v, %v", tasks, err)
	check.Equal(check.Now(t), "the first task's organization", tasks[0].Organization, org, "pending = %+v, %v", tasks, err)
	var clear string
	var sealed []byte
	if err := db.QueryRow(t.Context(), `SELECT e::text, sealed FROM emails e`).Scan(&clear, &sealed); err != nil {
		t.Fatal(err)
	}
	if stored := clear + string(sealed); check.True(check.Now(t), "there are sealed values", len(sealed) != 0, "the link is stored in the clear: %q", stored) &&
		check.Lacks(check.Now(t), "the stored mail", stored, "Tok3n", "the link is stored in the clear: %q", stored) {
		check.Lacks(check.Now(t), "the stored mail", stored, "set-password", "the link is stored in the clear: %q", stored)
	}
	if last := latest(t, db, org, "ada@saffron.school"); last != got {
		t.Fatalf("latest = %+v", last)
	}
	if none := latest(t, db, org+1, "ada@saffron.school"); none != (email.Record{}) {
		t.Fatalf("another organization reads %+v", none)
	}
	if none, err := email.Find(t.Context(), db, org+1, got.ID); check.NoError(check.Now(t), err, "another organization finds %+v, %v", none, err) {
		check.Equal(check.Now(t), "none", none, (email.Record{}), "another organization finds %+v, %v", none, err)
	}
}

func latest(t *testing.T, db *pg.DB, org id.Organization, address string) (r email.Record) {
	t.Helper()
	var b pg.Batch
	email.LoadLatest(&b, org, address, &r)
	if err := db.InTx(t.Context(), func(tx *pg.Tx) error { return b.Send(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestQueueSuppressesAddressesThatAreNotMailed(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	service := email.Service{Box: sealtest.New(t), Suppressed: email.Domains{"Demo.School ", ".sandbox.io", ""}}
	org, user := newStudent(t, db, "ada@saffron.school")
	for address, want := range map[string]email.Status{
		"a@example":               email.Suppressed,
		"a@example.com":           email.Suppressed,
		"a@mail.example.org":      email.Suppressed,
		"a@EXAMPLE.net":           email.Suppressed,
		"a@school.example":        email.Suppressed,
		"a@x.test":                email.Suppressed,
		"a@y.invalid":             email.Suppressed,
		"a@localhost":             email.Suppressed,
		"a@z.localhost":           email.Suppressed,
		"a@demo.school":           email.Suppressed,
		"a@eu.sandbox.io":         email.Suppressed,
		`"b@example.com"@real.io`: email.Queued,
		"a@myexample.com":         email.Queued,
		"a@example.com.ru.io":     email.Queued,
		"a@mydemo.school":         email.Queued,
		"a@contest":               email.Queued,
	} {
		got := queue(t, db, service, welcome(org, user, address))
		if check.Equal(t, "got.Status", got.Status, want, "%s: %+v, want %s", address, got, want) {
			check.True(t, "there is a detail", got.Detail != "", "%s: %+v, want %s", address, got, want)
		}
	}
	var sealed, claimed int
	err := db.QueryRow(t.Context(), `
		SELECT count(*) FILTER (WHERE status = 'suppressed' AND sealed IS NOT NULL), (SELECT count(*) FROM outbox_tasks) FROM emails`).Scan(&sealed, &claimed)
	check.NoError(check.Now(t), err, "%d suppressed mails keep secrets and %d sendings are pending, want 0 and 5 (%v)", sealed, claimed, err)
	check.Equal(check.Now(t), "sealed", sealed, 0, "%d suppressed mails keep secrets and %d sendings are pending, want 0 and 5 (%v)", sealed, claimed, err)
	check.Equal(check.Now(t), "claimed", claimed, 5, "%d suppressed mails keep secrets and %d sendings are pending, want 0 and 5 (%v)", sealed, claimed, err)
}

func TestSecretsAreNeverShown(t *testing.T) {
	t.Parallel()
	m := welcome(1, 2, "ada@saffron.school")
	m.Secrets.Password = "Tok3n-password"
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("mail", "message", m, "secrets", m.Secrets)
	encoded, err := json.Marshal(m)
	if err == nil {
		t.Errorf("a message with its secrets encodes: %s", encoded)
	}
	for _, text := range []string{logged.String(), fmt.Sprintf("%v %+v %#v %s", m, m, m, m.Secrets), string(encoded)} {
		if strings.Contains(text, "Tok3n") {
			t.Errorf("shown: %s", text)
		}
	}
}
