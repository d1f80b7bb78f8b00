// Package e2e runs the real programs on real servers, as `make up` does, and breaks them.
package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/client"
	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/obs/logtest"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// house is a whole Registrar with a Redis, a mail server and a receiver of its own, on a
// database of its own, with one organization that has one receiver URL.
type house struct {
	t        *testing.T
	dir      string // logs and the two below
	settings stack.Settings
	database string // PostgreSQL's own address, also behind a pooler
	redis    *stack.Redis
	mail     *stack.MailCatcher
	receiver *stack.Receiver

	api, worker, sender *stack.Program

	key     string   // full access
	secrets []string // that no log may hold, beside the keys
	partner *client.ClientWithResponses
}

// Where a house keeps what its mail server and its receiver took.
const (
	mailDir     = "mail"
	receiverLog = "receiver.jsonl"
)

// limit is how long anything that is waited for may take. It is no measure of speed.
const limit = 90 * time.Second

// longLimit is limit where much is waited for at once: a school's year, a build, a browser's audit. Each call and each
// program of others has one of the two, so that a test that waits in vain says for what.
const longLimit = 10 * time.Minute

// web asks for everything that needs no client of its own.
var web = &http.Client{Timeout: longLimit}

// command runs a program of others, for longLimit at most.
func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), longLimit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 5 * time.Second // what it has started may hold its output
	return cmd
}

func newHouse(t *testing.T) *house {
	t.Helper()
	return newHouseOn(t, pgtest.URL(t))
}

// newHouseOn uses the database at databaseURL, whose schema is current. extra is more of the
// programs' environment.
func newHouseOn(t *testing.T, databaseURL string, extra ...string) *house {
	t.Helper()
	h := preparedHouse(t, databaseURL, extra...)
	h.startPrograms()
	h.seed()
	return h
}

// preparedHouse is one whose programs do not run yet.
func preparedHouse(t *testing.T, databaseURL string, extra ...string) *house {
	t.Helper()
	bin := os.Getenv("REGISTRAR_BIN")
	if bin == "" {
		t.Fatal("REGISTRAR_BIN is not set: run `make test ARGS=./hack/e2e`")
	}
	ctx, dir := t.Context(), t.TempDir()
	tools, err := stack.EnsureServers(ctx, os.Stderr)
	must(t, err)
	h := &house{t: t, dir: dir, database: databaseURL}
	if behindPgBouncer(t) {
		databaseURL = startPgBouncer(t, databaseURL).URL()
	}
	t.Cleanup(h.checkLogs) // last, when everything has ended
	redis, err := stack.StartRedis(ctx, stack.RedisOptions{Server: tools.RedisServer, Port: port(t), LogFile: filepath.Join(dir, "redis.log")})
	must(t, err)
	h.redis = redis
	t.Cleanup(func() { _ = redis.Stop() })
	h.mail, err = stack.StartMailCatcher(ctx, stack.MailOptions{Addr: fmt.Sprintf("127.0.0.1:%d", port(t)), Dir: filepath.Join(dir, mailDir)})
	must(t, err)
	t.Cleanup(func() { _ = h.mail.Stop() })
	certs, err := stack.LoadCerts(dir)
	must(t, err)
	h.receiver, err = stack.StartReceiver(ctx, stack.ReceiverOptions{Addr: fmt.Sprintf("127.0.0.1:%d", port(t)), Certs: certs,
		LogFile: filepath.Join(dir, receiverLog)})
	must(t, err)
	t.Cleanup(func() { _ = h.receiver.Stop() })
	h.settings = stack.Settings{Bin: bin, LogDir: dir, DatabaseURL: databaseURL, RedisURL: redis.URL(), SMTPURL: h.mail.URL(),
		PlatformKey: seal.Token(), KeysetFile: keysetFile(t, dir), CAFile: certs.CAFile,
		Extra: append([]string{"RATE_LIMIT_PER_SECOND=0"}, extra...), // the tests call as fast as they can
		Ports: stack.Ports{API: port(t), Platform: port(t), APIPrivate: port(t), WorkerPrivate: port(t), SenderPrivate: port(t)}}
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func port(t *testing.T) int {
	t.Helper()
	n, err := stack.FreePort(t.Context())
	must(t, err)
	return n
}

func keysetFile(t *testing.T, dir string) string {
	t.Helper()
	text, err := seal.NewKeyset()
	must(t, err)
	file := filepath.Join(dir, "keyset.json")
	must(t, os.WriteFile(file, text, 0o600))
	return file
}

func (h *house) startPrograms() {
	h.t.Helper()
	h.api, h.worker, h.sender = h.settings.APIServer(), h.settings.Worker(), h.settings.WebhookSender()
	for p, private := range map[*stack.Program]int{h.api: h.settings.Ports.APIPrivate,
		h.worker: h.settings.Ports.WorkerPrivate, h.sender: h.settings.Ports.SenderPrivate} {
		h.startUntilTheEnd(p, private)
	}
}

// startUntilTheEnd starts a program that is stopped with the test, and that says what it wrote last when the test has failed.
func (h *house) startUntilTheEnd(p *stack.Program, private int) {
	h.t.Helper()
	h.start(p, private)
	h.t.Cleanup(func() {
		_ = p.Stop()
		if h.t.Failed() {
			h.t.Logf("%s wrote last:\n%s", p.Name, p.LogTail(30))
		}
	})
}

// checkLogs looks for secrets in what the programs have logged.
func (h *house) checkLogs() {
	logs, err := filepath.Glob(filepath.Join(h.dir, "*.log"))
	must(h.t, err)
	keyset, err := os.ReadFile(h.settings.KeysetFile)
	must(h.t, err)
	for _, log := range logs {
		text, err := os.ReadFile(log)
		must(h.t, err)
		logtest.Check(h.t, string(text), append(h.secrets, h.settings.PlatformKey, h.key, string(keyset))...)
	}
}

func (h *house) start(p *stack.Program, private int) {
	h.t.Helper()
	must(h.t, stack.StartReady(h.t.Context(), p, private))
}

func (h *house) seed() {
	h.t.Helper()
	h.platform(http.MethodPut, "organizations/demo", `{"name": "Demo Institute", "language_tests_enabled": true}`, nil)
	var key struct{ Key string }
	h.platform(http.MethodPost, "organizations/demo/api-keys", `{"name": "Tests", "access": "full"}`, &key)
	h.key = key.Key
	var err error
	h.partner, err = client.New(h.settings.PublicURL(), h.key, client.WithAttempts(1))
	must(h.t, err)
	var made struct {
		Secret string `json:"signing_secret"`
	}
	h.platform(http.MethodPost, "organizations/demo/webhook-endpoints", fmt.Sprintf(`{"url": %q}`, h.receiver.URL("/hook")), &made)
	h.secrets = append(h.secrets, made.Secret)
	h.receiver.Trust("/hook", made.Secret)
}

func (h *house) platform(method, path, body string, into any) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	must(h.t, h.settings.Platform(ctx, method, path, body, into))
}

func (h *house) call(method, address, header, value, body string) (int, []byte) {
	h.t.Helper()
	return h.send(method, address, body, header, value, "Content-Type", "application/json")
}

// send makes a request with such headers, whose names and values take turns.
func (h *house) send(method, address, body string, headers ...string) (int, []byte) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	must(h.t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := web.Do(req)
	must(h.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	must(h.t, err)
	return resp.StatusCode, text
}

// provision onboards a student into IELTS.
func (h *house) provision(email string, wantStatus int) *client.Provisioned {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	answer, err := h.partner.ProvisionStudentWithResponse(ctx, nil, client.ProvisionRequest{
		Email: email, FirstName: "Asha", LastName: new("Rao"), Courses: &client.TextList{"ielts"}})
	must(h.t, err)
	if answer.StatusCode() != wantStatus {
		h.t.Fatalf("provisioning %s: %d, want %d: %s", email, answer.StatusCode(), wantStatus, answer.Body)
	}
	return answer.Student()
}

// awaitEvents waits for n webhook requests about the student and returns them.
func (h *house) awaitEvents(email string, n int) []stack.Received {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	got, err := h.receiver.Await(ctx, n, func(r stack.Received) bool { return strings.Contains(r.Body, email) })
	if err != nil {
		h.t.Fatalf("%d of %d events about %s: %v", len(got), n, email, err)
	}
	for _, r := range got {
		check.Equal(h.t, "what the schema of the event finds", r.Invalid, "", "%s", r.Body)
		if check.True(h.t, "the signature verifies", r.Verified != nil, "the signature of %s does not verify", r.Body) {
			check.True(h.t, "*r.Verified", *r.Verified, "the signature of %s does not verify", r.Body)
		}
	}
	return got
}

// awaitMail waits for n mails to the student.
func (h *house) awaitMail(email string, n int) []stack.Mail {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	got, err := h.mail.Await(ctx, n, func(m stack.Mail) bool { return len(m.To) == 1 && m.To[0] == email })
	if err != nil {
		h.t.Fatalf("%d of %d mails to %s: %v", len(got), n, email, err)
	}
	return got
}

// post sends a form to a page.
func (h *house) post(address string, form url.Values) (int, string) {
	h.t.Helper()
	status, text := h.send(http.MethodPost, address, form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
	return status, string(text)
}
