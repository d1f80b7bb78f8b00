package provision_test

import (
	"context"
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

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	counted := &trips{}
	d := openOn(t, func(url string) *pg.DB {
		db, err := pg.Open(t.Context(), url)
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
		return db
	}(pgtest.URL(t)))
	d.student(provision.Command{Email: "first@institute.org", FirstName: "Eve", Courses: []string{"ielts"}}) // makes the default course
	set := ana("ielts")
	set.Email, set.Password = "set@institute.org", password
	for _, c := range []struct {
		what string
		call provision.Command
		most int64
	}{{"a creation", ana("ielts"), 8}, {"a repeat", ana("ielts"), 5}, {"with a new default course", ana("ielts", "toefl", "sat"), 12}, {"with a password", set, 12}} {
		before := counted.n.Load()
		d.student(c.call)
		if n := counted.n.Load() - before; n > c.most {
			t.Errorf("%s takes %d round trips, want %d at most", c.what, n, c.most)
		}
	}
}
