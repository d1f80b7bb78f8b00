package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
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
