package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/mail/mailtest"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/queue/queuetest"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program is a worker that runs inside the test, on everything real.
type program struct {
	db      *pg.DB
	email   email.Service
	org     id.Organization
	user    id.User
	private string
	log     *buffer
	stop    func() error
}

// buffer is a log that is read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func start(t *testing.T, smtpURL string) *program {
	t.Helper()
	keyset, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.New(keyset)
	if err != nil {
		t.Fatal(err)
	}
	databaseURL := pgtest.URL(t)
	db, err := pg.Open(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	redisURL := queuetest.URL(t)
	pgtest.WakePrograms(t, db, redisURL)
	p := &program{db: db, email: email.Service{Box: box}, private: freeAddress(t), log: &buffer{}}
	p.newStudent(t)
	environment := map[string]string{
		"DATABASE_URL": pgtest.As(t, databaseURL, "worker"), "REDIS_URL": redisURL, "PRIVATE_ADDR": p.private, "LOG_LEVEL": "debug",
		"SMTP_URL": smtpURL, "MAIL_FROM": "Registrar <no-reply@registrar.school>", "SECRET_KEYSET": string(keyset),
		"PLATFORM_TIME_ZONE": "Asia/Kolkata", "PUBLIC_URL": "https://saffron.school",
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, nil, func(name string) string { return environment[name] }, p.log) }()
	p.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Errorf("%v\n%s", err, p.log)
		}
	})
	return p
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func (p *program) newStudent(t *testing.T) {
	t.Helper()
	f := flowtest.On(t, p.db)
	p.org = f.Organization("school").Set("name", "Saffron School").ID
	p.user = f.Account("ada@saffron.school", "Ada", "")
}

// queue stores a welcome mail and waits until its fate is final.
func (p *program) queue(t *testing.T) email.Record {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	woken, listened := make(chan struct{}, 100), make(chan struct{})
	go func() {
		defer close(listened)
		p.db.Wakes.Subscribe(ctx, func(wake.Notification) { woken <- struct{}{} }, email.Channel)
	}()
	defer func() { cancel(); <-listened }()
	<-woken
	var r email.Record
	err := p.db.InTx(t.Context(), func(tx *pg.Tx) (err error) {
		r, err = p.email.Queue(t.Context(), tx, time.Now(), email.Message{
			Organization: p.org, User: p.user, Recipient: "ada@saffron.school",
			Content: email.Welcome{Student: email.Student{FirstName: "Ada", Organization: "Saffron School", Username: "ada",
				LoginURL: "https://saffron.school/sign-in"}, LinkExpires: time.Now().AddDate(0, 0, 7)},
			Secrets: email.Secrets{SetPasswordURL: "https://saffron.school/set-password/Tok3n"},
		})
		return err
	})
	for err == nil && !r.Status.Final() {
		select {
		case <-woken:
			r, err = email.Find(t.Context(), p.db, p.org, r.ID)
		case <-time.After(time.Minute):
			t.Fatalf("the mail is still queued:\n%s", p.log)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (p *program) get(t *testing.T, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.private+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// awaitMetric asks until the metrics have it: what is counted when a task is done is so a moment after its commit.
func (p *program) awaitMetric(t *testing.T, want string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-tick.C {
		code, body := p.get(t, "/metrics")
		if code == http.StatusOK && strings.Contains(body, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("/metrics: %d, no %s in %.2000s", code, want, body)
		}
	}
}

func TestAQueuedMailArrives(t *testing.T) {
	server := mailtest.Start(t, mailtest.Script{}, mailtest.Options{})
	p := start(t, server.URL())
	if r := p.queue(t); r.Status != email.Sent {
		t.Fatalf("%+v", r)
	}
	got := server.Messages()
	if len(got) != 1 {
		t.Fatalf("%d mails arrived", len(got))
	}
	for _, want := range []string{"set-password/Tok3n", `From: "Saffron School" <no-reply@registrar.school>`, `To: "Ada" <ada@saffron.school>`, "IST"} {
		if !strings.Contains(got[0], want) {
			t.Errorf("the mail lacks %q:\n%s", want, got[0])
		}
	}
	for path, want := range map[string]string{
		"/healthz": `"ok"`,
		"/readyz":  `"smtp"`,
		"/asynq":   "<!doctype html>",
	} {
		if code, body := p.get(t, path); check.Equal(t, "code", code, 200, "%s: %d, no %s in %.2000s", path, code, want, body) {
			check.Contains(t, "the answer", body, want, "%s: %d, no %s in %.2000s", path, code, want, body)
		}
	}
	for _, name := range []string{`registrar_mail_attempts_total{result="accepted",type="welcome"} 1`, "registrar_mail_order_to_acceptance_seconds_count 1", "registrar_outbox_due{", "registrar_queue_tasks{", "registrar_queue_wait_seconds_count{", "registrar_postgres_pool_"} {
		p.awaitMetric(t, name)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"Tok3n", "ada@saffron.school"} {
		if strings.Contains(p.log.String(), secret) {
			t.Errorf("the log shows %q:\n%s", secret, p.log)
		}
	}
}

func TestWhatTheServerSaysReachesTheRow(t *testing.T) {
	server := mailtest.Start(t, mailtest.Script{OnRcpt: func(string) error { return mailtest.Refuse(550, "no such user") }}, mailtest.Options{})
	p := start(t, server.URL())
	if r := p.queue(t); check.Equal(check.Now(t), "r.Status", r.Status, email.Failed, "%+v", r) {
		check.Contains(check.Now(t), "detail", r.Detail, "550", "%+v", r)
	}
	server.Play(mailtest.Script{OnData: func(string) error { return mailtest.ErrDrop }})
	if r := p.queue(t); r.Status != email.Uncertain {
		t.Fatalf("%+v", r)
	}
}

func TestConfigurationIsCheckedAndShown(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, func(string) string { return "" }, &out); check.NoError(t, err, "%v: %s", err, out.String()) {
		check.Contains(t, "the output", out.String(), "SMTP_URL (required)", "%v: %s", err, out.String())
	}
	good := map[string]string{"DATABASE_URL": "postgres://127.0.0.1:1/x", "REDIS_URL": "redis://127.0.0.1:1", "SMTP_URL": "smtp://127.0.0.1:1", "MAIL_FROM": "a@b.school", "PUBLIC_URL": "https://b.school"}
	for name, bad := range map[string]string{"DATABASE_URL": "", "REDIS_URL": "", "SMTP_URL": "http://:hush@x", "MAIL_FROM": "nobody", "PUBLIC_URL": "nowhere", "PLATFORM_TIME_ZONE": "Mars/Olympus"} {
		err := run(t.Context(), nil, func(n string) string {
			if n == name {
				return bad
			}
			return good[n]
		}, io.Discard)
		if check.True(t, "there is an error", err != nil, "%s=%q: %v", name, bad, err) &&
			check.Contains(t, "the error", fmt.Sprint(err), name, "%s=%q: %v", name, bad, err) {
			check.Lacks(t, "the error", fmt.Sprint(err), "hush", "%s=%q: %v", name, bad, err)
		}
	}
}
