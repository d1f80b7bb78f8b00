package provision_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// trips counts round trips: a statement by itself or a batch, BEGIN and COMMIT included.
// Statements are prepared once a connection, which is not counted.
type trips struct{ n atomic.Int64 }

func (c *trips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}
func (*trips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (c *trips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.n.Add(1)
	return ctx
}
func (*trips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*trips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// openCounted opens a desk whose round trips are counted.
func openCounted(t testing.TB) (*fixture, *trips) {
	t.Helper()
	counted := &trips{}
	db, err := pg.Open(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	cfg := db.Config()
	cfg.ConnConfig.Tracer = counted
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	db.Pool = pool
	d := openOn(t, db)
	d.student(provision.Command{Email: "first@institute.org", FirstName: "Eve", Courses: []string{"ielts"}}) // makes the default course
	return d, counted
}

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	d, counted := openCounted(t)
	set := ana("ielts")
	set.Email, set.Password = "set@institute.org", password
	byID := ana()
	byID.Email = "by-id@institute.org"
	if err := d.DB.QueryRow(t.Context(), `SELECT array_agg(id) FROM courses`).Scan(&byID.CourseIDs); err != nil {
		t.Fatal(err)
	}
	from := d.organization("elsewhere")
	elsewhere := ana("ielts")
	elsewhere.Email = "elsewhere@institute.org"
	d.as(from, elsewhere)
	elsewhere.FirstName = "Anita"
	for _, c := range []struct {
		what string
		call provision.Command
		most int64
	}{{"a creation", ana("ielts"), 3}, {"a repeat", ana("ielts"), 2}, {"with a course's id", byID, 3},
		{"with new default courses", ana("ielts", "toefl", "sat"), 3}, {"with a password", set, 4},
		{"of somebody from elsewhere, who gets a name", elsewhere, 3}, {"a repeat of that", elsewhere, 2}} {
		before := counted.n.Load()
		d.student(c.call)
		if n := counted.n.Load() - before; n > c.most {
			t.Errorf("%s takes %d round trips, want %d at most", c.what, n, c.most)
		}
	}
}

// The whole program under load is measured by hack/bench.
func BenchmarkStudent(b *testing.B) {
	d, counted := openCounted(b)
	call := func(n int64) provision.Command {
		c := ana("ielts")
		c.Email = fmt.Sprintf("s%d@institute.org", n)
		return c
	}
	var made atomic.Int64
	run := func(b *testing.B, next func() provision.Command) {
		before := counted.n.Load()
		b.ReportAllocs()
		b.RunParallel(func(each *testing.PB) {
			for each.Next() {
				if _, err := d.Student(b.Context(), d.who, next()); err != nil {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric(float64(counted.n.Load()-before)/float64(b.N), "roundtrips/op")
	}
	b.Run("creation", func(b *testing.B) {
		run(b, func() provision.Command { return call(made.Add(1)) })
	})
	b.Run("repeat", func(b *testing.B) {
		var n atomic.Int64
		run(b, func() provision.Command { return call(1 + n.Add(1)%made.Load()) })
	})
}
