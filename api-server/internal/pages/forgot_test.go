package pages_test

import (
	"context"
	"log/slog"
	netmail "net/mail"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/flow/reset"
	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/mail"
	"github.com/registrar-dev/registrar/internal/kit/mail/mailtest"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/queue/queuetest"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// mailbox does what a worker does: it answers requests for links and sends the mails, to a
// real server. Texts of mails come out of it.
func (s *site) mailbox(t *testing.T) <-chan string {
	t.Helper()
	arrived := make(chan string, 16)
	server := mailtest.Start(t, mailtest.Script{OnData: func(text string) error { arrived <- text; return nil }}, mailtest.Options{})
	to, err := mail.ParseServer(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	worker := pgtest.OpenAs(t, s.DB, "worker")
	service := &reset.Service{DB: worker, Mail: email.Service{Box: s.Box}, Clock: s.Now, PublicURL: s.url}
	postman := &email.Sender{DB: worker, Box: s.Box, Server: to, Zone: time.UTC, Clock: s.Now, Log: slog.New(slog.DiscardHandler),
		From: netmail.Address{Address: "no-reply@registrar.school"}}
	work := map[task.Kind]func(context.Context, task.Outbox) error{task.PasswordReset: service.Answer, task.EmailSend: postman.Deliver}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		worker.Wakes.Subscribe(ctx, func(wake.Notification) {
			for kind, do := range work {
				due, err := outbox.Claim(ctx, worker, kind, s.Now(), time.Minute, 100)
				if ctx.Err() != nil {
					return // the test has ended
				}
				check.NoError(t, err, "claiming tasks of %s", kind)
				for _, d := range due {
					err := do(ctx, task.Outbox{Task: d.ID, Claim: d.Claim})
					if ctx.Err() != nil {
						return
					}
					check.NoError(t, err, "%s of %d", kind, d.Subject)
				}
			}
		}, outbox.Channel)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return arrived
}

var resetLink = regexp.MustCompile(`http://127\.0\.0\.1:\d+/set-password/[\w-]+`)

// await is the next mail to the address, as plain text.
func await(t *testing.T, arrived <-chan string, address string) string {
	t.Helper()
	for {
		select {
		case text := <-arrived:
			if strings.Contains(text, "new password") && strings.Contains(text, address) {
				return strings.ReplaceAll(strings.ReplaceAll(text, "=\r\n", ""), "=3D", "=")
			}
		case <-t.Context().Done():
			t.Fatal("no mail")
		}
	}
}

func ask(address string) url.Values { return url.Values{"email": {address}} }

// Whoever has an account and whoever has none get the same answer to the last byte, and
// the request does the same work: what differs is the worker's.
func TestAskingForALinkTellsNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Platform.Put(t, "organizations/north/staff/olive@institute.org", `{"first_name": "Olive", "role": "owner"}`).Want(t, 201)
	b := s.browser(t)
	var first string
	for _, address := range []string{"ana@institute.org", "olive@institute.org", "nobody@institute.org"} {
		p := b.do(t, "/forgot-password/", ask(" "+strings.ToUpper(address)))
		text := strings.ReplaceAll(p.body, address, "X")
		check.Equal(check.Now(t), "p.status", p.status, 200, "%s: %d\n%s", address, p.status, p.body)
		check.True(check.Now(t), "the page is another", text != p.body, "%s: %d\n%s", address, p.status, p.body)
		if first == "" {
			first = text
		}
		if text != first {
			t.Errorf("%s is answered in another way:\n%s", address, p.body)
		}
	}
	var asked, claimed, links int
	err := s.DB.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM password_resets), (SELECT count(*) FROM outbox_tasks WHERE kind = 'email.password_reset'),
		(SELECT count(*) FROM set_password_tokens WHERE organization_id IS NULL)`).Scan(&asked, &claimed, &links)
	if check.NoError(t, err, "%d requests, %d tasks, %d links, %v", asked, claimed, links, err) &&
		check.Equal(t, "asked", asked, 3, "%d requests, %d tasks, %d links, %v", asked, claimed, links, err) &&
		check.Equal(t, "claimed", claimed, 3, "%d requests, %d tasks, %d links, %v", asked, claimed, links, err) {
		check.Equal(t, "links", links, 0, "%d requests, %d tasks, %d links, %v", asked, claimed, links, err)
	}
	for _, wrong := range []string{"", "ana", "ana@", "a b@institute.org"} {
		if p := b.do(t, "/forgot-password/", ask(wrong)); check.Equal(t, "p.status", p.status, 400, "%q: %d\n%s", wrong, p.status, p.body) {
			check.Contains(t, "the page", p.body, "no email address", "%q: %d\n%s", wrong, p.status, p.body)
		}
	}
	if text := s.log.String(); strings.Contains(text, "nobody@") {
		t.Errorf("the log names who asked:\n%s", text)
	}
}

func TestAskingForLinksIsLimited(t *testing.T) {
	t.Parallel()
	s := openWith(t, queuetest.New(t))
	b := s.browser(t)
	for i := range 5 { // of one mailbox, also where nobody has it
		p := b.do(t, "/forgot-password/", ask("Nobody@institute.org"))
		want := 200
		if i >= 3 {
			want = 429
		}
		check.Equal(check.Now(t), "status", p.status, want, "request %d", i)
		check.Equal(check.Now(t), "there is a Retry-After", p.header.Get("Retry-After") != "", want == 429, "request %d: %q", i, p.header.Get("Retry-After"))
	}
	status := 200
	for i := 0; status == 200 && i < 40; i++ { // of one client
		status = b.do(t, "/forgot-password/", ask("s"+strings.Repeat("x", i)+"@institute.org")).status
	}
	if status != 429 {
		t.Errorf("a client may ask for any number of mailboxes")
	}
}

func TestAForgottenPasswordInABrowser(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Platform.Put(t, "organizations/north/staff/olive@institute.org", `{"first_name": "Olive", "role": "owner", "password": "correct horse battery"}`).Want(t, 201)
	before := s.browser(t)
	if p := before.signIn(t, "olive@institute.org", "correct horse battery"); p.status != 303 {
		t.Fatalf("%d", p.status)
	}
	arrived := s.mailbox(t)
	b := browsertest.Open(t)
	b.Visit(s.url + "/sign-in/")
	b.AwaitHeading("Sign in")
	b.Click(`a[href="/forgot-password/"]`)
	b.AwaitHeading("Forgot your password?")
	b.Screenshot("forgot-password")
	b.Accessible("forgot-password")
	b.Type("#email", "olive@institute.org")
	b.Click("main button")
	b.AwaitHeading("Look into your mailbox")
	b.Screenshot("link-asked")
	b.Accessible("link-asked")
	link := resetLink.FindString(await(t, arrived, "olive@institute.org"))
	b.Visit(link)
	b.AwaitHeading("Set your password")
	who := b.TextOf("main")
	b.Type("#password", password)
	b.Type("#again", password)
	b.Press("Set password")
	b.AwaitHeading("Your password is set")
	b.Press("Continue")
	b.AwaitHeading("Console")
	b.Visit(link)
	b.AwaitHeading("This link cannot be used any more")
	b.Click("main p a")
	b.AwaitHeading("Forgot your password?")
	if !strings.Contains(who, "olive@institute.org") {
		t.Errorf("the page: %q", who)
	}
	if p := before.do(t, "/my-courses/", nil); p.status != 303 {
		t.Errorf("a session from before the new password goes on: %d", p.status)
	}
	if p := s.browser(t).signIn(t, "olive@institute.org", "correct horse battery"); p.status != 401 {
		t.Errorf("the old password: %d", p.status)
	}
}

// A person of a roster has no password: the page is the way to the first one.
func TestTheFirstPasswordOfAnAccountFromElsewhere(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.exec(t, `INSERT INTO accounts (email, username, first_name, created_via, created_at, updated_at)
		VALUES ('rosa@institute.org', 'rosa', 'Rosa', 'roster', now(), now())`)
	arrived := s.mailbox(t)
	if p := s.browser(t).do(t, "/forgot-password/", ask("rosa@institute.org")); p.status != 200 {
		t.Fatalf("%d", p.status)
	}
	link := resetLink.FindString(await(t, arrived, "rosa@institute.org"))
	if status, body, _ := s.visit(t, link, twice(password)); status != 200 {
		t.Fatalf("%d\n%s", status, body)
	}
	if p := s.browser(t).signIn(t, "rosa", password); p.status != 303 {
		t.Errorf("%d", p.status)
	}
}
