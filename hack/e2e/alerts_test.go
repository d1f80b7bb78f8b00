package e2e

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// alarm is a house that a real Prometheus watches, and in which things are brought about that
// alerts are for.
type alarm struct {
	*house

	operator   *stack.Program
	prometheus *prometheus
	alerts     map[string]string // by name and program; those not found yet
	db         *pgx.Conn
	students   int
}

func newAlarm(t *testing.T) *alarm {
	t.Helper()
	h := newHouse(t)
	_, rules := monitoring(t)
	// An hour ago no URL was switched off.
	var history strings.Builder
	history.WriteString("# TYPE registrar_webhook_urls gauge\n")
	for minute := 75; minute >= 45; minute-- {
		fmt.Fprintf(&history, "registrar_webhook_urls{state=\"off\"} 0 %d\n", time.Now().Add(-time.Duration(minute)*time.Minute).Unix())
	}
	history.WriteString("# EOF\n")
	operator, read := startOperator(t, h)
	p := startPrometheus(t, h, rules, history.String(), read)
	db := connect(t, h)
	// An api-server that is small, and that limits its callers.
	must(t, h.api.Stop())
	h.api.Env = append(h.api.Env, "MAX_IN_FLIGHT=8", "RATE_LIMIT_PER_SECOND=1000", "RATE_LIMIT_BURST=1000", "DATABASE_READ_URL="+h.settings.ProgramURL("api-server"), // which is no standby
		"DATABASE_URL="+pooled(h.settings.ProgramURL("api-server")))
	h.start(h.api, h.settings.Ports.APIPrivate)
	return &alarm{house: h, operator: operator, prometheus: p, alerts: alertQueries(t, rules), db: db}
}

// pooled makes an address one of four connections.
func pooled(address string) string {
	if strings.Contains(address, "?") {
		return address + "&pool_max_conns=4"
	}
	return address + "?pool_max_conns=4"
}

// find brings the situation about, again and again, until the expressions of all the named alerts
// have data.
func (a *alarm) find(situation func(), names ...string) {
	a.t.Helper()
	missing := map[string]string{}
	for _, name := range names {
		if a.alerts[name] == "" {
			a.t.Fatalf("there is no alert %s, or it was found before: %v", name, slices.Sorted(maps.Keys(a.alerts)))
		}
		missing[name] = a.alerts[name]
		delete(a.alerts, name)
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); len(missing) > 0; <-tick.C {
		situation()
		for name, query := range missing {
			n, complaint := a.prometheus.ask(query)
			if n > 0 {
				delete(missing, name)
			} else if time.Now().After(deadline) {
				a.t.Fatalf("%s: no data for %s (%s)", name, query, complaint)
			}
		}
	}
}

func (a *alarm) sql(statement string) func() {
	return func() {
		a.t.Helper()
		_, err := a.db.Exec(a.t.Context(), statement)
		must(a.t, err)
	}
}

// provisionNext onboards one more student.
func (a *alarm) provisionNext() {
	a.t.Helper()
	a.students++
	a.provision(fmt.Sprintf("student-%d@north-institute.org", a.students), http.StatusCreated)
}

// crowd has more callers come than are let in, while PostgreSQL keeps those that are.
func (a *alarm) crowd() {
	a.t.Helper()
	tx, err := a.db.Begin(a.t.Context())
	must(a.t, err)
	_, err = tx.Exec(a.t.Context(), `LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE`)
	must(a.t, err)
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			req, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, a.settings.PublicURL()+"/api/v1/students/?email=student-1@north-institute.org", nil)
			if err != nil {
				return
			}
			req.Header.Set("X-API-Key", a.key)
			if res, err := web.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, res.Body) // some are refused, which this is about
				_ = res.Body.Close()
			}
		})
	}
	_, err = tx.Exec(a.t.Context(), `SELECT pg_sleep(3)`)
	must(a.t, err)
	must(a.t, tx.Rollback(a.t.Context()))
	callers.Wait()
}

// Every alert's expression has data in the situation that it is for, of which Prometheus hears from
// the running programs.
func TestEveryAlertFindsItsSituation(t *testing.T) {
	t.Parallel()
	a := newAlarm(t)
	a.provisionNext()
	a.awaitEvents("student-1@", 2)

	a.find(func() {}, "RegistrarResourceStalled")
	must(t, a.operator.Stop()) // it is well while PostgreSQL will be unusable for api-server alone
	a.find(a.crowd, "RegistrarAPIErrors", "RegistrarAPISlow", "RegistrarAPIOverloaded", "RegistrarPostgresPoolExhausted",
		"RegistrarBudgetBurnsFast", "RegistrarBudgetBurns", "RegistrarBudgetBurnsSlowly")
	a.findLate()
	a.find(func() {}, "RegistrarStandbyNotRead")
	a.find(a.sql(`
		INSERT INTO list_epochs (organization_id, list, begins, kept, timeline, began_at)
		SELECT id, 'positions', 1000000, 0, '00000002', now() FROM organizations ORDER BY id LIMIT 1 ON CONFLICT DO NOTHING`), "RegistrarEpochBegan")

	// A task that no handler understands.
	rdb, err := queue.Connect(a.settings.RedisURL, queue.TLS{})
	must(t, err)
	t.Cleanup(func() { _ = rdb.Close() })
	client, n := queue.NewClient(rdb), 0
	a.find(func() {
		n++
		must(t, client.Enqueue(t.Context(), queue.Item{Queue: queue.Email, Kind: task.EmailSend, ID: fmt.Sprint("odd-", n), Payload: []byte("odd")}))
	}, "RegistrarTasksFailing")

	a.receiver.SetRespond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	// Without mails, of which there would be too many then for some that fail to count.
	a.find(func() {
		a.students++
		check.Equal(t, "status", a.ask(http.MethodPost, provisionPath, onboarding(fmt.Sprintf("student-%d@north-institute.org", a.students))).status, http.StatusCreated, "")
	}, "RegistrarWebhooksFailing")
	a.find(a.sql(`
		INSERT INTO webhook_queue (id, event_id, organization_id, endpoint_id, due_at)
		SELECT uuid7_floor(now() - interval '8 hours'), event_id, organization_id, endpoint_id, now() + interval '1 hour'
		FROM webhook_states LIMIT 1 ON CONFLICT DO NOTHING`), "RegistrarEventUndelivered")
	a.find(a.sql(`
		INSERT INTO webhook_queue (id, event_id, organization_id, endpoint_id, due_at)
		VALUES (uuid7(), uuid7(), 0, 0, now() + interval '1 hour')`), "RegistrarDeliveriesUnaccounted")
	a.find(a.sql(`UPDATE webhook_endpoints SET switched_on = false`), "RegistrarURLsSwitchedOff")
	must(t, a.mail.Stop())
	a.find(a.provisionNext, "RegistrarMailFailing")

	// A task that nobody takes, because its queue's server is gone.
	must(t, a.sender.Stop())
	must(t, client.Enqueue(t.Context(), queue.Item{Queue: queue.Webhook, Kind: task.WebhookDeliver, ID: "late", Payload: []byte("{}")}))
	a.find(func() {
		must(t, rdb.HSet(t.Context(), "asynq:{webhook}:t:late", "pending_since", time.Now().Add(-2*time.Minute).UnixNano()).Err())
	}, "RegistrarQueueWaiting")

	must(t, a.redis.Stop())
	a.find(func() { a.provisionNext(); a.sql(`UPDATE outbox_tasks SET run_at = now() - interval '10 minutes'`)() },
		"RegistrarRedisAway", "RegistrarRateLimitsUnchecked", "RegistrarOutboxLate", "RegistrarRelayStalled")
	a.find(a.sql(`DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database());
		PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND usename = 'registrar_api_server';
		END $$`), "RegistrarPostgresUnusable")
	a.sql(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET default_transaction_read_only', current_database()); END $$`)()
	a.find(a.sql(`DELETE FROM goose_db_version WHERE version_id = 1`), "RegistrarSchemaBehind")
	must(t, a.worker.Stop())
	must(t, a.api.Stop())
	a.find(func() {}, "RegistrarProgramAbsent api-server", "RegistrarProgramAbsent worker", "RegistrarProgramAbsent webhook-sender", "RegistrarProgramAbsent operator")

	if len(a.alerts) > 0 {
		t.Errorf("no situation for %v", slices.Sorted(maps.Keys(a.alerts)))
	}
	if n, complaint := a.prometheus.ask(`ALERTS`); n < 0 {
		t.Errorf("Prometheus did not take the rules: %s", complaint)
	}
}

// findLate has people and the clock be pending something for long.
func (a *alarm) findLate() {
	a.t.Helper()
	a.sql(`
		WITH source AS (
			INSERT INTO roster_sources (organization_id, name, created_at, updated_at)
			SELECT id, 'sis', now(), now() FROM organizations ORDER BY id LIMIT 1 RETURNING organization_id, id)
		INSERT INTO roster_runs (organization_id, source_id, state, requested_by, created_at, updated_at)
		SELECT organization_id, id, 'held', 'tests', now(), now() - interval '2 days' FROM source`)()
	a.find(func() {}, "RegistrarRosterRunHeld")
	status, text := a.call(http.MethodPost, a.settings.PublicURL()+"/api/v1/provision/student/", "X-API-Key", a.key,
		`{"email": "ana@north-institute.org", "first_name": "Ana", "courses": "ielts", "target_score_plan": {"target_score": 7, "test_plan": true, "timezone": "Asia/Kolkata"}}`)
	if status != http.StatusCreated {
		a.t.Fatalf("%d %s", status, text)
	}
	a.find(a.sql(`UPDATE plans SET failures = 3, next_run_at = now() + interval '1 hour'`), "RegistrarPlansFailing")
	a.findMarksLate()
	// The pass decides what is due every ten seconds: it is put back as often as needed to be seen.
	a.find(a.sql(`UPDATE plans SET next_run_at = now() - interval '1 hour'`), "RegistrarPlansLate")
}

// findMarksLate has a student's marks wait for an LMS that takes connections and says nothing: of its marks a sender has only a
// few in hand, each until the call's time is over, and the others stay due for longer than anything here may take.
func (a *alarm) findMarksLate() {
	a.t.Helper()
	silent, err := (&net.ListenConfig{}).Listen(a.t.Context(), "tcp", "127.0.0.1:0")
	must(a.t, err)
	defer func() { must(a.t, silent.Close()) }() // which ends the calls
	a.sql(fmt.Sprintf(`
		WITH student AS (
			SELECT organization_id, user_id FROM members WHERE role = 'member' ORDER BY user_id LIMIT 1
		), r AS (
			INSERT INTO lms_registrations (organization_id, name, issuer, client_id, authorize_url, token_url, keys_url, deployments, created_at, updated_at)
			SELECT organization_id, 'LMS', 'https://lms.school', 'tool', a, a, a, '{1}', now(), now()
			FROM student, (VALUES ('https://%s/')) AS v (a) RETURNING organization_id, id
		), known AS (
			INSERT INTO lms_people (organization_id, registration_id, subject, user_id, created_at)
			SELECT r.organization_id, r.id, 'ana', user_id, now() FROM r, student
		)
		INSERT INTO lms_marks (organization_id, registration_id, line, user_id, line_item, item_id, score_e4, max_score_e4, scored_at, version, due_at, updated_at)
		SELECT r.organization_id, r.id, convert_to(n::text, 'UTF8'), user_id, 'https://lms.school/' || n, 1, 10000, 10000, now(), 1, now() - interval '1 hour', now()
		FROM r, student, generate_series(1, 100) AS n`, silent.Addr()))()
	a.find(func() {}, "RegistrarMarksLate")
}
