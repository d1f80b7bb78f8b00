package e2e

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// rosterPeople make three batches of changes.
const rosterPeople = 2500

func rosterFile(t *testing.T) []byte {
	t.Helper()
	var people, seats, b bytes.Buffer
	people.WriteString("person_external_id,email,first_name,last_name,role\n")
	seats.WriteString("person_external_id,class_external_id,class_name\n")
	for i := range rosterPeople {
		fmt.Fprintf(&people, "s%d,%s,Given,Family,student\n", i, rosterEmail(i))
		fmt.Fprintf(&seats, "s%d,c%d,Class %d\n", i, i%40, i%40)
	}
	w := zip.NewWriter(&b)
	for name, text := range map[string]*bytes.Buffer{"people.csv": &people, "enrollments.csv": &seats} {
		f, err := w.Create(name)
		must(t, err)
		_, err = text.WriteTo(f)
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func rosterEmail(i int) string { return fmt.Sprintf("s%d@roster-institute.org", i) }

// importRoster sends the file and returns the answer; an error when none came.
func (h *house) importRoster(from io.Reader) (string, error) {
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.settings.PublicURL()+"/api/v1/roster/import/", from)
	if err != nil {
		return "", err
	}
	req.Header.Set("X-API-Key", h.key)
	req.Header.Set("Content-Type", "application/zip")
	resp, err := web.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, text), err
}

// mustImport imports a roster and returns the answer, which ends the test unless it is 200.
func (h *house) mustImport(file []byte) string {
	h.t.Helper()
	answer, err := h.importRoster(bytes.NewReader(file))
	check.NoError(check.Now(h.t), err, "importing a roster")
	check.True(check.Now(h.t), "the answer is 200", strings.HasPrefix(answer, "200 "), "%.300s", answer)
	return answer
}

// rosterState is everything that an import leaves behind, but for ids and times.
func rosterState(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
		SELECT format('account %s %s %s %s', email, username, first_name, last_name) FROM accounts
		UNION ALL SELECT format('member %s %s %s %s', a.email, m.role, m.status, m.created_via) FROM members m JOIN accounts a ON a.id = m.user_id
		UNION ALL SELECT format('identity %s %s %s', i.external_id, a.email, i.present) FROM roster_identities i JOIN accounts a ON a.id = i.user_id
		UNION ALL SELECT format('seat %s %s %s %s', k.external_id, k.name, a.email, m.active)
			FROM roster_class_members m JOIN roster_classes k ON k.id = m.class_id JOIN accounts a ON a.id = m.user_id
		UNION ALL SELECT format('run %s %s %s %s %s', state, created, skipped, classes_created, seats_added) FROM roster_runs WHERE state <> 'uploading'
		UNION ALL SELECT format('change %s %s', action, external_id) FROM roster_changes
		UNION ALL SELECT format('event %s %s', type, data ->> 'email') FROM webhook_events
		UNION ALL SELECT 'pending' FROM outbox_tasks WHERE kind LIKE 'roster%'
		UNION ALL SELECT 'chunk' FROM roster_chunks c JOIN roster_runs r ON r.id = c.run_id WHERE r.state <> 'uploading'
		ORDER BY 1`)
	must(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	return lines
}

// eventually waits until the query says true.
func eventually(t *testing.T, conn *pgx.Conn, what, query string) {
	t.Helper()
	end := time.Now().Add(limit)
	for {
		var yes bool
		must(t, conn.QueryRow(t.Context(), query).Scan(&yes))
		if yes {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", limit, what)
		}
		time.Sleep(5 * time.Millisecond) // between two looks at the state that is waited for
	}
}

// A worker is killed while it reads the file, plans, creates people, tells of them, fills
// classes and finishes; each time it is caught in the act by a lock on what it needs next.
// The api-server is killed while it receives a file and while a caller waits for the end.
func TestAKilledImportEndsAsACleanOne(t *testing.T) {
	t.Parallel()
	file := rosterFile(t)
	clean := newRosterHouse(t)
	clean.mustImport(file)
	want := rosterState(t, connect(t, clean))

	h := newRosterHouse(t)
	snapshot, hold := connect(t, h), connect(t, h)
	must(t, h.worker.Kill())
	h.killWhileReceiving(snapshot, file)
	waited := make(chan error, 1)
	go func() {
		_, err := h.importRoster(bytes.NewReader(file))
		waited <- err
	}()
	eventually(t, snapshot, "the run is handed over", `SELECT EXISTS (SELECT FROM roster_runs WHERE state = 'queued')`)
	for _, phase := range []struct{ name, lock, at string }{
		{"reading the file", `LOCK TABLE roster_chunks IN ACCESS EXCLUSIVE MODE`, "queued 0 0"},
		{"planning", `LOCK TABLE roster_classes IN ACCESS EXCLUSIVE MODE`, "queued 0 0"},
		{"creating people", `LOCK TABLE roster_identities IN SHARE MODE`, "applying 0 0"},
		{"creating later people", `INSERT INTO accounts (email, username, first_name, created_via, created_at, updated_at)
			VALUES ('` + rosterEmail(1500) + `', 'x', 'x', 'api', now(), now())`, "applying 1000 0"},
		{"telling of the last people", `INSERT INTO accounts (email, username, first_name, created_via, created_at, updated_at)
			VALUES ('` + rosterEmail(2400) + `', 'x', 'x', 'api', now(), now())`, "applying 2000 0"},
		{"filling classes", `LOCK TABLE roster_class_members IN SHARE MODE`, "applying 2500 0"},
		{"finishing", `SELECT pg_advisory_xact_lock(1050, hashtext((SELECT id::text FROM organizations)))`, "applying 2500 2540"},
	} {
		h.killBlocked(snapshot, hold, phase.name, phase.lock, phase.at)
		if phase.name == "creating later people" {
			must(t, h.api.Kill())
			if err := <-waited; err == nil {
				t.Error("a caller whose server was killed got an answer")
			}
			h.start(h.api, h.settings.Ports.APIPrivate)
		}
	}
	h.start(h.worker, h.settings.Ports.WorkerPrivate)
	eventually(t, snapshot, "the run ends", `SELECT EXISTS (SELECT FROM roster_runs WHERE state = 'applied')`)
	if got := rosterState(t, snapshot); !slices.Equal(got, want) {
		t.Errorf("after the kills there are %d things, after a clean run %d; %s", len(got), len(want), firstDifference(got, want))
	}
	for _, h := range []*house{clean, h} {
		h.awaitJoined()
	}
	check.Contains(t, "the answer", h.mustImport(file), fmt.Sprintf(`"skip":%d`, rosterPeople), "the same file again")
}

// newRosterHouse has a worker whose claims are taken over soon.
func newRosterHouse(t *testing.T) *house {
	t.Helper()
	return newHouseOn(t, pgtest.URL(t), "OUTBOX_LEASE=2s")
}

func connect(t *testing.T, h *house) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), h.database)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// killWhileReceiving kills the api-server in the middle of an upload.
func (h *house) killWhileReceiving(snapshot *pgx.Conn, file []byte) {
	h.t.Helper()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := h.importRoster(out)
		_ = out.Close()
		ended <- err
	}()
	_, err := in.Write(file[:len(file)/2])
	must(h.t, err)
	eventually(h.t, snapshot, "an upload has begun", `SELECT EXISTS (SELECT FROM roster_runs WHERE state = 'uploading')`)
	must(h.t, h.api.Kill())
	_ = in.CloseWithError(io.ErrClosedPipe) // the client sees only now that nobody reads
	if err := <-ended; err == nil {
		h.t.Error("half an upload got an answer from a killed server")
	}
	h.start(h.api, h.settings.Ports.APIPrivate)
}

// killBlocked starts the worker, waits until it meets the lock, and kills it there.
func (h *house) killBlocked(snapshot, hold *pgx.Conn, phase, lock, at string) {
	h.t.Helper()
	tx, err := hold.Begin(h.t.Context())
	must(h.t, err)
	defer func() {
		_ = tx.Rollback(context.WithoutCancel(h.t.Context()))
		eventually(h.t, snapshot, "the killed worker's transactions are over", `SELECT NOT EXISTS (
			SELECT FROM pg_stat_activity WHERE datname = current_database() AND backend_xid IS NOT NULL)`)
	}()
	_, err = tx.Exec(h.t.Context(), lock)
	must(h.t, err)
	h.start(h.worker, h.settings.Ports.WorkerPrivate)
	eventually(h.t, snapshot, "the worker is "+phase, `SELECT EXISTS (
		SELECT FROM pg_stat_activity WHERE `+fmt.Sprint(hold.PgConn().PID())+` = ANY (pg_blocking_pids(pid)))`)
	must(h.t, h.worker.Kill())
	var got string
	must(h.t, snapshot.QueryRow(h.t.Context(), `SELECT concat_ws(' ', state, people_done, classes_done) FROM roster_runs WHERE state <> 'uploading'`).Scan(&got))
	if got != at {
		h.t.Errorf("killed while %s, the run is %q, want %q", phase, got, at)
	}
}

// awaitJoined waits until the receiver knows every student, each by one event.
func (h *house) awaitJoined() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	events, n := map[string]bool{}, rosterPeople
	for len(events) < rosterPeople { // some may come twice
		got, err := h.receiver.Await(ctx, n, func(r stack.Received) bool {
			return r.Headers[webhook.HeaderEvent] == string(webhook.StudentJoined)
		})
		if err != nil {
			h.t.Fatalf("%d events: %v", len(events), err)
		}
		n = len(got) + 1
		for _, r := range got {
			var body struct{ ID string }
			must(h.t, json.Unmarshal([]byte(r.Body), &body))
			events[body.ID] = true
		}
	}
	check.Equal(h.t, "events that the receiver got", len(events), rosterPeople, "")
}
