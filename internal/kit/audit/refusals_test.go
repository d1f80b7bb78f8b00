package audit_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

func TestRefusalsAreCountedAndBounded(t *testing.T) {
	t.Parallel()
	db, now := pgtest.New(t), time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	r := audit.NewRefusals(db, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	read := func() (entries []audit.Entry) {
		t.Helper()
		err := audit.Export(t.Context(), db, audit.Span{Until: now.Add(time.Second)}, 10_000, func(e audit.Entry) error {
			entries = append(entries, e)
			return nil
		})
		check.NoError(check.Now(t), err, "the log")
		return entries
	}
	for range 300 {
		for i := range 150 {
			r.Note(audit.Refusal{Actor: audit.Unknown, Action: "refused API key", Target: "reg_12345678…", Address: fmt.Sprintf("203.0.113.%d", i)})
		}
	}
	if _, err := db.Exec(t.Context(), `ALTER TABLE audit_log RENAME TO audit_log_away`); err != nil {
		t.Fatal(err)
	}
	check.True(t, "it fails without its table", r.Flush(t.Context()) != nil, "flushing")
	if _, err := db.Exec(t.Context(), `ALTER TABLE audit_log_away RENAME TO audit_log`); err != nil {
		t.Fatal(err)
	}
	r.Note(audit.Refusal{Actor: audit.Unknown, Action: "refused API key", Target: "reg_12345678…", Address: "203.0.113.7"})
	check.NoError(check.Now(t), r.Flush(t.Context()), "flushing")
	check.NoError(check.Now(t), r.Flush(t.Context()), "flushing nothing")
	entries, all := read(), 0
	check.Equal(t, "rows", len(entries), 101, "100 and one for the rest")
	for _, e := range entries {
		all += e.Times
		switch e.Address {
		case "":
			check.Equal(t, "of the rest", e.Times, 50*300, "%+v", e)
		case "203.0.113.7":
			check.Equal(t, "of one address", e.Times, 301, "%+v", e)
		}
	}
	check.Equal(t, "refusals", all, 150*300+1, "none is lost")
}
