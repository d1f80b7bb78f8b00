package result

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// interrupted lets others commit between the statements of one list.
type interrupted struct {
	pg.Querier
	t       *testing.T
	between func()
}

func (i *interrupted) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	i.between()
	return i.Querier.QueryRow(ctx, sql, args...)
}

// The list of a large course takes several statements. What becomes final between two of
// them is on this page or on a later one.
func TestAPageOfALargeCourseSkipsNothingThatBecomesFinalMeanwhile(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	const place = `INSERT INTO results (organization_id, ref, kind, type, user_id, item_id, attempt, state, completed_at, score_e4, max_score_e4, final_at, position, updated_at)
		SELECT 1, 'test:' || n, 'test', 'ielts', $3, 1, 'practice', 'finished', now(), 60000, 90000, now(), n, now() FROM generate_series($1::bigint, $2::bigint) AS n`
	finalize := func(first, last, user int) {
		t.Helper()
		exec(place, first, last, user)
		exec(`INSERT INTO result_positions (organization_id, last) VALUES (1, $1) ON CONFLICT (organization_id) DO UPDATE SET last = $1`, last)
	}
	f := flowtest.On(t, db)
	o := f.Organization("o")
	o.Students(2)
	o.Enroll(2, o.Course("ielts", "C"), "2026-01-01", "2026-03-01")
	f.Paper("p", "ielts")
	finalize(1, 1, 2)
	finalize(2, walk-1, 1) // nobody's of the course

	once := false
	q := &interrupted{Querier: db, t: t, between: func() {
		if !once {
			once = true
			finalize(walk, walk+2, 2) // the first of them still lies where was searched
		}
	}}
	var positions []int64
	after := int64(0)
	for range 3 { // as a reader does who goes on from the last one
		err := List(t.Context(), q, 1, Filter{Course: 1, Today: clock.DateOf(2026, 2, 1)}, after, 10, func(l *Listed) error {
			positions, after = append(positions, l.Position), l.Position
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []int64{1, walk, walk + 1, walk + 2}; !slices.Equal(positions, want) {
		t.Errorf("a reader got %v, want %v", positions, want)
	}
}
