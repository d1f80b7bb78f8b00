package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// TestBehindPgBouncer runs some of the tests with PgBouncer in transaction mode before PostgreSQL.
func TestBehindPgBouncer(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"onboarding":       TestAStudentIsOnboardedOnce,
		"a password":       TestTheLinkInTheMailSetsAPassword,
		"a plan":           TestAPlanAssignsItsBaselineAndReactsToTheResult,
		"a killed import":  TestAKilledImportEndsAsACleanOne,
		"a killed worker":  TestAWorkerKilledInTheMiddleLosesNothing,
		"a killed sender":  TestASenderKilledBetweenPostAndRecordDeliversAgain,
		"workers that end": TestWorkersThatEndHandOver,
	} {
		t.Run(name, test)
	}
}

func behindPgBouncer(t *testing.T) bool { return strings.HasPrefix(t.Name(), "TestBehindPgBouncer/") }

// startPgBouncer starts one for the database at the address, until the test ends.
func startPgBouncer(t *testing.T, databaseURL string) *stack.PgBouncer {
	t.Helper()
	server, err := stack.EnsurePgBouncer(t.Context())
	must(t, err)
	user, err := stack.ServiceUser()
	must(t, err)
	p, err := stack.StartPgBouncer(t.Context(), stack.PgBouncerOptions{Server: server, Port: port(t), User: user,
		LogFile: filepath.Join(t.TempDir(), "pgbouncer.log"), DatabaseURL: databaseURL})
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("pgbouncer wrote last:\n%s", p.LogTail(20))
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// While the pooler is restarted under load, calls are answered with 503 and never with 500, nothing acknowledged is lost or
// delivered again that was recorded, and each shard is led once: when the pooler is away for longer than a lease lasts, by
// nobody.
func TestAPoolerIsRestarted(t *testing.T) {
	t.Parallel()
	direct := pgtest.URL(t)
	pooler := startPgBouncer(t, direct)
	h := newHouseOn(t, pooler.URL())
	h.database = direct
	for _, path := range healthy {
		h.addURL(path)
	}
	second := port(t)
	h.workerAt(second)
	led := func() (shards int) {
		for _, private := range []int{h.settings.Ports.WorkerPrivate, second} {
			for line := range strings.Lines(h.metrics(private)) {
				var n int
				if _, err := fmt.Sscanf(line, `registrar_leases_held{work="relay-webhooks"} %d`, &n); err == nil {
					shards += n
				}
			}
		}
		return shards
	}
	const shards = 16
	all := func() bool { return led() == shards }
	until(t, "all shards are led", all)

	load := h.startLoad(20 * time.Millisecond)
	load.await(*failoverCalls)
	for range 3 {
		must(t, pooler.Kill())
		must(t, pooler.Start(t.Context()))
		load.await(*failoverCalls)
	}
	must(t, pooler.Kill())
	took := until(t, "nobody leads", func() bool { return led() == 0 })
	t.Logf("nobody led %v after the pooler's end", took)
	a := h.ask(http.MethodGet, "/api/v1/students/", "")
	check.Equal(t, "an answer's status without the pooler", a.status, http.StatusServiceUnavailable, "")
	check.True(t, "the answer says when to come again", a.retryAfter != "", "")
	must(t, pooler.Start(t.Context()))
	until(t, "all shards are led again", all)
	load.await(*failoverCalls)
	load.end(direct)
	load.checkReceipts()
	until(t, "each shard is led once", all) // one that is handed over is led by nobody for a moment
}

// A migration needs a session, and says where to get one.
func TestMigrationsRefuseAPooler(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	settings := h.settings
	settings.LogDir = t.TempDir()
	must(t, stack.Run(t.Context(), settings.Migrate()))
	settings.DatabaseURL = startPgBouncer(t, h.settings.DatabaseURL).URL()
	migrate := settings.Migrate()
	if err := stack.Run(t.Context(), migrate); err == nil {
		t.Error("it migrates through a pooler")
	}
	check.Contains(t, "what it says", migrate.LogTail(20), "the address of PostgreSQL itself", "")
}
