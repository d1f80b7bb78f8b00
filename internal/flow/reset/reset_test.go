package reset_test

import (
	"context"
	"errors"
	"log/slog"
	netmail "net/mail"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/flow/reset"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/mail"
	"github.com/registrar-dev/registrar/internal/kit/mail/mailtest"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// house answers requests and sends the mails to a real server.
type house struct {
	*reset.Service
	*flowtest.Fixture
	t       *testing.T
	server  *mailtest.Server
	postman *email.Sender
}

func open(t *testing.T) *house {
	t.Helper()
	box := sealtest.New(t)
	db, server := pgtest.New(t), mailtest.Start(t, mailtest.Script{}, mailtest.Options{})
	to, err := mail.ParseServer(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	return &house{t: t, server: server, Fixture: flowtest.On(t, db),
		Service: &reset.Service{DB: db, Mail: email.Service{Box: box, Suppressed: email.Domains{"demo.school"}}, Clock: clock.At(now), PublicURL: "https://learn.test"},
		postman: &email.Sender{DB: db, Box: box, Server: to, Zone: time.UTC, Clock: clock.At(now), Log: slog.New(slog.DiscardHandler),
			From: netmail.Address{Address: "no-reply@registrar.school"}}}
}

func (h *house) ask(address student.Email) {
	h.t.Helper()
	if err := reset.Ask(h.t.Context(), h.DB, address, now); err != nil {
		h.t.Fatal(err)
	}
}

// work does what is pending of a kind and counts it.
func (h *house) work(kind task.Kind, do func(context.Context, task.Outbox) error) int {
	h.t.Helper()
	due, err := outbox.Claim(h.t.Context(), h.DB, kind, now, time.Minute, 100)
	for _, d := range due {
		err = errors.Join(err, do(h.t.Context(), task.Outbox{Task: d.ID, Claim: d.Claim}))
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return len(due)
}

// mails are those that arrive when everything pending was done.
func (h *house) mails() []string {
	h.t.Helper()
	before := len(h.server.Messages())
	h.work(task.PasswordReset, h.Answer)
	h.work(task.EmailSend, h.postman.Deliver)
	return h.server.Messages()[before:]
}

func (h *house) organization(slug, name string) id.Organization {
	h.t.Helper()
	return h.Organization(slug).Set("name", name).ID
}

// account is a member of the organizations.
func (h *house) account(address student.Email, via student.Origin, in ...id.Organization) {
	h.t.Helper()
	err := h.DB.InTx(h.t.Context(), func(tx *pg.Tx) error {
		a, err := student.Create(h.t.Context(), tx, student.Draft{Email: address, FirstName: "Ana", CreatedBy: in[0], CreatedVia: via}, now)
		if err != nil {
			return err
		}
		var b pg.Batch
		for _, o := range in {
			org.AddMember(&b, o, a.ID, org.RoleMember, org.ViaAPI, now)
		}
		return b.Send(h.t.Context(), tx)
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

var link = regexp.MustCompile(`https://learn\.test/set-password/([\w-]+)`)

// use sets a password by the link in the mail.
func (h *house) use(text string) error {
	h.t.Helper()
	found := link.FindStringSubmatch(strings.ReplaceAll(text, "=\r\n", ""))
	if found == nil {
		h.t.Fatalf("the mail has no link:\n%s", text)
	}
	_, proof, err := student.SetOwnPassword(h.t.Context(), h.DB, found[1], "$argon2id$x", now)
	if err == nil {
		check.Equal(h.t, "proof", proof, student.Mailbox, "the link in the mail")
	}
	return err
}

func TestALinkGoesToTheMailboxOfTheAccount(t *testing.T) {
	t.Parallel()
	h := open(t)
	north, south := h.organization("north", "North Institute"), h.organization("south", "South Institute")
	h.account("api@school.org", student.ViaAPI, north)
	h.account("roster@school.org", student.ViaRoster, north)
	h.account("two@school.org", student.ViaAPI, north, south)
	h.account("staff@school.org", student.ViaStaff, south)
	h.account("left@school.org", student.ViaAPI, north)
	if _, err := h.DB.Exec(t.Context(), `DELETE FROM members WHERE user_id = (SELECT id FROM accounts WHERE email = 'left@school.org')`); err != nil {
		t.Fatal(err)
	}
	if _, err := h.DB.Exec(t.Context(), `UPDATE members SET role = 'owner' WHERE user_id = (SELECT id FROM accounts WHERE email = 'staff@school.org')`); err != nil {
		t.Fatal(err)
	}
	for address, sender := range map[student.Email]string{"api@school.org": "North Institute", "roster@school.org": "North Institute",
		"two@school.org": "learn.test", "left@school.org": "learn.test", "staff@school.org": "South Institute"} {
		h.ask(address)
		got := h.mails()
		check.Equal(check.Now(t), "number of mails", len(got), 1, "%s: %q", address, got)
		check.Contains(check.Now(t), "the first mail", got[0], "To: ", "%s: %q", address, got)
		check.Contains(check.Now(t), "the first mail", got[0], string(address), "%s: %q", address, got)
		check.True(check.Now(t), "strings.Contains(got[0], \"Subject: \"+sender+\": set a new ...", strings.Contains(got[0], "Subject: "+sender+": set a new password"), "%s: %q", address, got)
		if named := strings.Contains(got[0], "Hello Ana,"); named != (sender != "learn.test") { // a name is one organization's
			t.Errorf("%s is called by a name: %v\n%s", address, named, got[0])
		}
		if contact := strings.Contains(got[0], "write to your contact at"); contact != (sender != "learn.test") {
			t.Errorf("%s is given a contact: %v\n%s", address, contact, got[0])
		}
		if err := h.use(got[0]); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		if err := h.use(got[0]); !errors.Is(err, student.ErrLinkOver) {
			t.Errorf("%s: a second use: %v", address, err)
		}
	}
	if n := h.Count(`password_resets`) + h.Count(`outbox_tasks`) + h.Count(`emails WHERE sealed IS NOT NULL`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestNoMailLeaves(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.ask("nobody@school.org")
	if got := h.mails(); check.Equal(t, "number of mails", len(got), 0, "to an address without an account: %q", got) {
		check.Equal(t, "number of mails", h.Count(`emails`), 0, "to an address without an account: %q", got)
	}
	h.account("ana@demo.school", student.ViaAPI, h.organization("north", "North"))
	h.ask("ana@demo.school")
	if got := h.mails(); check.Equal(t, "number of mails", len(got), 0, "to a suppressed domain: %q", got) {
		check.Equal(t, "number of suppressed mails", h.Count(`emails WHERE status = 'suppressed' AND type = 'password_reset' AND sealed IS NULL`), 1, "to a suppressed domain: %q", got)
	}
	if n := h.Count(`password_resets`) + h.Count(`outbox_tasks`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestAMailboxIsNotFilled(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.account("ana@school.org", student.ViaAPI, h.organization("north", "North"))
	for range 5 {
		h.ask("ana@school.org")
	}
	if got := h.mails(); len(got) != 3 {
		t.Errorf("%d mails for 5 requests", len(got))
	}
}

func TestAClaimThatWasLostWritesNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.account("ana@school.org", student.ViaAPI, h.organization("north", "North"))
	h.ask("ana@school.org")
	twice := func(ctx context.Context, ref task.Outbox) error {
		return errors.Join(h.Answer(ctx, task.Outbox{Task: ref.Task, Claim: ref.Claim + 1}), h.Answer(ctx, ref), h.Answer(ctx, ref))
	}
	if n := h.work(task.PasswordReset, twice); check.Equal(t, "n", n, 1, "%d tasks, %d mails", n, h.Count(`emails`)) {
		check.Equal(t, "number of mails", h.Count(`emails`), 1, "%d tasks, %d mails", n, h.Count(`emails`))
	}
}
