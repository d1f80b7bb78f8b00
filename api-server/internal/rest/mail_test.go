package rest_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/mail"
	"github.com/registrar-dev/registrar/internal/kit/mail/mailtest"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// newPostman hands mails to a real mail server.
func newPostman(t *testing.T, e *apitest.Env) (*email.Sender, *mailtest.Server) {
	t.Helper()
	server := mailtest.Start(t, mailtest.Script{}, mailtest.Options{})
	to, err := mail.ParseServer(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	return &email.Sender{DB: pgtest.OpenAs(t, e.DB, "worker"), Box: e.Box, Server: to, Zone: time.UTC, Clock: e.Now, Log: slog.New(slog.DiscardHandler),
		From: netmail.Address{Address: "no-reply@registrar.school"}}, server
}

// mailer sends what the APIs owe, as the worker does.
func mailer(t *testing.T, e *apitest.Env) *mailtest.Server {
	t.Helper()
	postman, server := newPostman(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		postman.DB.Wakes.Subscribe(ctx, func(wake.Notification) { deliverDue(ctx, t, e, postman) }, outbox.Channel)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return server
}

func deliverDue(ctx context.Context, t *testing.T, e *apitest.Env, postman *email.Sender) {
	due, err := outbox.Claim(ctx, postman.DB, task.EmailSend, e.Now(), time.Minute, 100)
	if ctx.Err() != nil {
		return // the test has ended
	}
	check.NoError(t, err, "claiming mails")
	for _, d := range due {
		err := postman.Deliver(ctx, task.Outbox{Task: d.ID, Claim: d.Claim})
		if ctx.Err() != nil {
			return
		}
		check.NoError(t, err, "delivering mail %d", d.Subject)
	}
}

// Every value arises, with a mail server that answers so (reference: provisioning#email-status).
func TestEmailStatuses(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, server := e.Organization(t, "north"), mailer(t, e)
	drop := func(string) error { return mailtest.ErrDrop }
	refuse := func(code int) func(string) error {
		return func(string) error { return mailtest.Refuse(code, "not now or never") }
	}
	for i, c := range []struct {
		status, detail string
		script         mailtest.Script
		wait, more     string
		email          string // else one at institute.org
		typ            any
	}{
		{status: "sent", wait: "wait=10", typ: "welcome"},
		{status: "sent", wait: "wait=10", more: `, "password": "Tr0ub4dor&3x"`, typ: "credentials"},
		{status: "queued", detail: "waiting to be sent", typ: "welcome"},
		{status: "queued", detail: "tried again", wait: "wait=5", script: mailtest.Script{OnRcpt: refuse(451)}, typ: "welcome"},
		{status: "uncertain", detail: "may have been received", wait: "wait=10", script: mailtest.Script{OnData: drop}, typ: "welcome"},
		{status: "failed", detail: "550", wait: "wait=10", script: mailtest.Script{OnRcpt: refuse(550)}, typ: "welcome"},
		{status: "suppressed", detail: "example.com", email: "ana@example.com", typ: "welcome"},
		{status: "not_requested", more: `, "send_welcome_email": "no", "resend_welcome_email": true`, typ: nil},
	} {
		server.Play(c.script)
		address := cmp.Or(c.email, fmt.Sprintf("s%d@institute.org", i))
		body := fmt.Sprintf(`{"first_name": "Ana", "email": %q%s}`, address, c.more)
		a := north.Full.With("Prefer", c.wait).Post(t, provisionPath, body).Want(t, 201)
		checkMail(t, a, c.status, c.detail, c.typ)
		if applied := a.Header.Get("Preference-Applied"); applied != c.wait {
			t.Errorf("%s: Preference-Applied %q, want %q", c.status, applied, c.wait)
		}
	}
	server.Play(mailtest.Script{})
	again := func(address string) *apitest.Answer {
		return north.Full.With("Prefer", "wait=10").Post(t, provisionPath, `{"first_name": "Ana", "email": "`+address+`"}`).Want(t, 200)
	}
	checkMail(t, again("s0@institute.org"), "not_needed", "", nil)
	checkMail(t, again("s4@institute.org"), "uncertain", "may have been received", "welcome") // never sent again by itself
	checkMail(t, again("s5@institute.org"), "sent", "", "welcome")                            // after failed: sent again
	checkMail(t, again("ana@example.com"), "suppressed", "example.com", "welcome")
	resend := north.Full.With("Prefer", "wait=10").Post(t, provisionPath, `{"first_name": "Ana", "email": "s4@institute.org", "resend_welcome_email": 1}`).Want(t, 200)
	checkMail(t, resend, "sent", "", "welcome")
	if resend.Object(t)["status"] != "already_provisioned" {
		t.Errorf("a mail alone counts as a change: %s", resend.Body)
	}
}

func checkMail(t *testing.T, a *apitest.Answer, status, detail string, typ any) {
	t.Helper()
	object := a.Object(t)
	m := object["email"].(map[string]any)
	check.Equal(t, "the mail's status", m["status"], any(status), "email: %v", m)
	check.Equal(t, "the mail's type", m["type"], typ, "email: %v", m)
	if got, there := m["detail"]; detail == "" {
		check.True(t, "the answer has the mail's detail", there, "email: %v", m)
		check.Equal(t, "the mail's detail", got, nil, "email: %v", m)
	} else {
		text, _ := got.(string)
		check.Contains(t, "the mail's detail", text, detail, "email: %v", m)
	}
	check.Equal(t, "welcome_email_sent", object["welcome_email_sent"], any(status == "sent" || status == "queued"), "email: %v", m)
}

// A credentials mail that failed is retried as a welcome: its password is stored nowhere.
func TestAFailedCredentialsMailIsRetriedAsAWelcome(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, server := e.Organization(t, "north"), mailer(t, e)
	server.Play(mailtest.Script{OnRcpt: func(string) error { return mailtest.Refuse(550, "no such user") }})
	body := `{"first_name": "Ana", "email": "ana@institute.org", "password_mode": "generate"}`
	checkMail(t, north.Full.With("Prefer", "wait=10").Post(t, provisionPath, body).Want(t, 201), "failed", "550", "credentials")
	server.Play(mailtest.Script{})
	checkMail(t, north.Full.With("Prefer", "wait=10").Post(t, provisionPath, body).Want(t, 200), "sent", "", "welcome")
	if mails := server.Messages(); check.Equal(t, "number of mails", len(mails), 1, "mails: %q", mails) {
		check.Contains(t, "the first mail", mails[0], "/set-password/", "mails: %q", mails)
	}
}

// Only the call knows the password: the one that the account holds is mailed again, and nobody else's.
// Reference: provisioning#email-status, provisioning#password-modes.
func TestResendingCredentials(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, server := e.Organization(t, "north"), mailer(t, e)
	post := func(email, more string, status int) *apitest.Answer {
		t.Helper()
		e.Advance(2 * time.Minute) // a resend adds nothing to a mail that was just made
		return north.Full.With("Prefer", "wait=10").Post(t, provisionPath, fmt.Sprintf(`{"first_name": "Ana", "email": %q, %s}`, email, more)).Want(t, status)
	}
	warned := func(a *apitest.Answer) string { return fmt.Sprint(a.Object(t)["warnings"]) }
	set := `"password_mode": "set", "password": "Tr0ub4dor  &3x"`
	checkMail(t, post("set@institute.org", set, 201), "sent", "", "credentials")
	again := post("set@institute.org", set+`, "resend_welcome_email": true`, 200)
	checkMail(t, again, "sent", "", "credentials")
	check.Equal(t, "warnings", warned(again), "[]", "the same password again")
	mails := server.Messages()
	check.Equal(check.Now(t), "len(mails)", len(mails), 2, "%q", mails)
	check.True(t, "the second mail has the password", strings.Contains(mails[1], "Tr0ub4dor  &3x"), "%s", mails[1])
	checkMail(t, post("set@institute.org", `"resend_welcome_email": true`, 200), "sent", "", "welcome") // nobody knows it here

	checkMail(t, post("drawn@institute.org", `"password_mode": "generate"`, 201), "sent", "", "credentials")
	again = post("drawn@institute.org", `"password_mode": "generate", "resend_welcome_email": true`, 200)
	checkMail(t, again, "sent", "", "welcome")
	check.True(t, "the warning", strings.Contains(warned(again), "no password is generated again"), "%s", again.Body)

	sql(t, e, `UPDATE accounts SET last_login = now() WHERE email = 'set@institute.org'`)
	again = post("set@institute.org", set+`, "resend_welcome_email": true`, 200) // a way to try passwords otherwise
	checkMail(t, again, "sent", "", "access_update")
	check.True(t, "the warning", strings.Contains(warned(again), "password: ignored"), "%s", again.Body)
}

// Parallel calls that ask for the mail add none to the one that waits.
func TestParallelResendsOfCredentials(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	body := `{"first_name": "Ana", "email": "ana@institute.org", "password": "Tr0ub4dor  &3x", "resend_welcome_email": true}`
	north.Full.Post(t, provisionPath, body).Want(t, 201)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			checkMail(t, north.Full.Post(t, provisionPath, body).Want(t, 200), "queued", "waiting", "credentials")
		})
	}
	all.Wait()
	check.Equal(t, "mails", count(t, e, `SELECT count(*) FROM emails`), 1, "8 calls asked for it again")
}

// Whoever was onboarded without a mail does not "have the mail already". Reference: provisioning#email-status.
func TestWhoWasNeverMailedIsNotToldToHaveTheMail(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	post := func(more string, status int) *apitest.Answer {
		return north.Full.Post(t, provisionPath, `{"first_name": "Ana", "email": "ana@institute.org"`+more+`}`).Want(t, status)
	}
	checkMail(t, post(`, "send_welcome_email": false`, 201), "not_requested", "", nil)
	checkMail(t, post(``, 200), "not_requested", "", nil)
	checkMail(t, post(`, "resend_welcome_email": true`, 200), "queued", "waiting", "welcome")
	sql(t, e, `UPDATE emails SET status = 'sent', detail = ''`)
	checkMail(t, post(``, 200), "not_needed", "", nil)
}
