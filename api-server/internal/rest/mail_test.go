package rest_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	netmail "net/mail"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/mail"
	"github.com/registrar-dev/registrar/internal/kit/mail/mailtest"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// newPostman hands mails to a real mail server.
func newPostman(t *testing.T, e *apitest.Env) (*email.Sender, *mailtest.Server) {
	t.Helper()
	server := mailtest.Start(t, mailtest.Script{}, mailtest.Options{})
	to, err := mail.ParseServer(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	return &email.Sender{DB: e.DB, Box: e.Box, Server: to, Zone: time.UTC, Clock: e.Now, Log: slog.New(slog.DiscardHandler),
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
		pg.Listen(ctx, e.DB, func(pg.Notification) { deliverDue(ctx, t, e, postman) }, outbox.Channel)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return server
}

func deliverDue(ctx context.Context, t *testing.T, e *apitest.Env, postman *email.Sender) {
	due, err := outbox.Claim(ctx, e.DB, task.EmailSend, e.Now(), time.Minute, 100)
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
		{status: "queued", detail: "tried again", wait: "wait=1", script: mailtest.Script{OnRcpt: refuse(451)}, typ: "welcome"},
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
