package rosterimport_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/roster/diff"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/flow/rosterimport"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// house is an organization whose rosters are imported, without the run queue in between.
type house struct {
	*rosterimport.Importer
	org id.Organization
	now time.Time
}

func open(t testing.TB) *house {
	t.Helper()
	h := &house{now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	h.Importer = &rosterimport.Importer{DB: pgtest.New(t), Zone: time.UTC, Log: slog.New(slog.DiscardHandler), Clock: func() time.Time { return h.now }}
	h.org = h.organization(t, "north")
	return h
}

func (h *house) organization(t testing.TB, slug string) id.Organization {
	t.Helper()
	return flowtest.On(t, h.DB).Organization(slug).ID
}

// upload is what an import is asked to do.
type upload struct {
	file   []byte
	mode   roster.Mode
	source string
	dryRun bool
}

func people(rows ...string) upload {
	return upload{file: []byte("person_external_id,email,first_name,last_name,role\n" + strings.Join(rows, "\n") + "\n")}
}

// with makes an archive of it with an enrollments.csv beside.
func (u upload) with(seats ...string) upload {
	u.file = archive(map[string]string{"people.csv": string(u.file),
		"enrollments.csv": "person_external_id,class_external_id,class_name\n" + strings.Join(seats, "\n") + "\n"})
	return u
}

func (u upload) snapshot() upload { u.mode = roster.Snapshot; return u }

func archive(files map[string]string) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range []string{"people.csv", "enrollments.csv"} {
		if text, ok := files[name]; ok {
			f, _ := w.Create(name)
			_, _ = f.Write([]byte(text))
		}
	}
	_ = w.Close()
	return b.Bytes()
}

// tester and olive give the commands.
var (
	tester = audit.Actor{Kind: audit.PartnerKey, Name: "test"}
	olive  = audit.Actor{Kind: audit.Staff, Name: "Olive"}
)

// submit stores the upload as a run that is pending.
func (h *house) submit(t testing.TB, u upload) id.RosterRun {
	t.Helper()
	ctx := t.Context()
	if u.mode == "" {
		u.mode = roster.Additive
	}
	if u.source == "" {
		u.source = roster.DefaultSource
	}
	source, err := roster.PutSource(ctx, h.DB, tester, h.org, u.source, nil, h.now)
	if err != nil {
		t.Fatal(err)
	}
	run, err := roster.Begin(ctx, h.DB, h.org, "test", h.now)
	if err != nil {
		t.Fatal(err)
	}
	size, err := roster.Store(ctx, h.DB, run, bytes.NewReader(u.file))
	if err != nil {
		t.Fatal(err)
	}
	draft := roster.Draft{Source: source, Mode: u.mode, DryRun: u.dryRun, Size: size}
	if err := roster.Submit(ctx, h.DB, tester, h.org, run, draft, h.now); err != nil {
		t.Fatal(err)
	}
	return run
}

func (h *house) tx(t testing.TB, do func(tx *pg.Tx) error) {
	t.Helper()
	if err := h.DB.InTx(t.Context(), do); err != nil {
		t.Fatal(err)
	}
}

// work does what is pending, one run after the other.
func (h *house) work(t testing.TB) {
	t.Helper()
	now := h.now
	for {
		job := h.claimAt(t, now)
		if len(job) == 0 {
			return
		}
		for _, o := range job {
			err := h.Run(t.Context(), task.Outbox{Task: o.ID, Claim: o.Claim})
			if pg.Locked(err) { // it gave way, and is to come again
				now = now.Add(time.Second)
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// together does something beside the test. What comes is the zero value if that fails.
func together[T any](f func() T) <-chan T {
	done := make(chan T, 1)
	go func() {
		defer close(done)
		done <- f()
	}()
	return done
}

func (h *house) claim(t testing.TB) []outbox.Task {
	t.Helper()
	return h.claimAt(t, h.now)
}

func (h *house) claimAt(t testing.TB, now time.Time) []outbox.Task {
	t.Helper()
	job, err := outbox.Claim(t.Context(), h.DB, task.RosterRun, now, time.Minute, 10)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func (h *house) run(t testing.TB, u upload) roster.Run {
	t.Helper()
	run := h.submit(t, u)
	h.work(t)
	h.now = h.now.Add(time.Hour)
	return h.find(t, run)
}

// approve has the held run applied.
func (h *house) approve(t testing.TB, r roster.Run) roster.Run {
	t.Helper()
	if err := roster.Approve(t.Context(), h.DB, olive, h.org, r.ID, h.now); err != nil {
		t.Fatal(err)
	}
	h.work(t)
	h.now = h.now.Add(time.Hour)
	return h.find(t, r.ID)
}

func (h *house) find(t testing.TB, run id.RosterRun) roster.Run {
	t.Helper()
	r, err := roster.Find(t.Context(), h.DB, h.org, run)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// issues are the run's issues, as "line code severity".
func (h *house) issues(t testing.TB, r roster.Run) string {
	t.Helper()
	issues, _, err := diff.Issues(t.Context(), h.DB, r.ID, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, i := range issues {
		lines = append(lines, fmt.Sprintf("%s:%d %s %s", strings.TrimSuffix(i.File, ".csv"), i.Line, i.Code, i.Severity))
	}
	return strings.Join(lines, "; ")
}

// members shows the organization's members, in the order of their addresses, as
// "address:first last:status".
func (h *house) members(t testing.TB) string {
	t.Helper()
	return h.text(t, `SELECT coalesce(string_agg(a.email || ':' || a.first_name || ' ' || a.last_name || ':' || m.status, '; ' ORDER BY a.email), '')
		FROM members m JOIN accounts a ON a.id = m.user_id WHERE m.organization_id = $1`, h.org)
}

// seats shows who sits in which class.
func (h *house) seats(t testing.TB) string {
	t.Helper()
	return h.text(t, `SELECT coalesce(string_agg(k.name || ':' || a.email, '; ' ORDER BY k.name, a.email) FILTER (WHERE s.active), '')
		FROM roster_class_members s JOIN roster_classes k ON k.id = s.class_id JOIN accounts a ON a.id = s.user_id
		WHERE k.organization_id = $1`, h.org)
}

func (h *house) text(t testing.TB, sql string, args ...any) (text string) {
	t.Helper()
	if err := h.DB.QueryRow(t.Context(), sql, args...).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

func (h *house) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := h.DB.Exec(context.WithoutCancel(t.Context()), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// want stops the test unless the run ended so.
func want(t testing.TB, r roster.Run, state roster.State, c roster.Counts) {
	t.Helper()
	check.Equal(check.Now(t), "r.State", r.State, state, "run %d is %s %+v (%s %s, %v), want %s %+v", r.ID, r.State, r.Counts, r.FaultCode, r.Fault, r.Reasons, state, c)
	check.Equal(check.Now(t), "r.Counts", r.Counts, c, "run %d is %s %+v (%s %s, %v), want %s %+v", r.ID, r.State, r.Counts, r.FaultCode, r.Fault, r.Reasons, state, c)
}
