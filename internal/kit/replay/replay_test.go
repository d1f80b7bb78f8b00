package replay_test

import (
	"sync"
	"testing"

	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/replay"
)

// keep stores n answers of so many bytes, one a second, and one request in progress.
func keep(f *flowtest.Fixture, org id.Organization, n, bytes int) {
	f.Exec(`
		INSERT INTO idempotency_keys (organization_id, key, request, holder, alive_at, status, sealed, created_at)
		SELECT $1, 'k' || i, '', gen_random_uuid(), now(), 200, convert_to(repeat('x', $3), 'UTF8'), now() - (100 - i) * interval '1 s'
		FROM generate_series(1, $2::int) AS i`, org, n, bytes)
	f.Exec(`
		INSERT INTO idempotency_keys (organization_id, key, request, holder, alive_at, created_at)
		VALUES ($1, 'k0', '', gen_random_uuid(), now(), now() - interval '1 hour')`, org)
}

// The oldest answers of the one organization go, whichever bound they are beyond, and however many
// trim at once.
func TestTrim(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bounds replay.Bounds
		want   int
	}{
		"within both":       {replay.Bounds{Answers: 100, Bytes: 5000}, 50},
		"too many answers":  {replay.Bounds{Answers: 7, Bytes: 5000}, 7},
		"too many bytes":    {replay.Bounds{Answers: 100, Bytes: 1250}, 12},
		"one is over alone": {replay.Bounds{Answers: 100, Bytes: 10}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := flowtest.New(t)
			north, south := f.Organization("north").ID, f.Organization("south").ID
			keep(f, north, 50, 100)
			keep(f, south, 50, 100)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					check.NoError(t, replay.Trim(t.Context(), f.Database, north, c.bounds), "trimming")
				})
			}
			all.Wait()
			check.NoError(t, replay.Trim(t.Context(), f.Database, north, c.bounds), "trimming")
			kept := f.Count("idempotency_keys WHERE organization_id = $1 AND status = 200", north)
			check.Equal(t, "kept", kept, c.want, "answers")
			newest := f.Count("idempotency_keys WHERE organization_id = $1 AND substr(key, 2)::int > 50 - $2 AND status = 200", north, c.want)
			check.Equal(t, "newest", newest, c.want, "of the answers kept")
			check.Equal(t, "at work", f.Count("idempotency_keys WHERE organization_id = $1 AND status IS NULL", north), 1, "requests")
			check.Equal(t, "of others", f.Count("idempotency_keys WHERE organization_id = $1", south), 51, "rows")
		})
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	b := replay.Bounds{Answers: 100_000, Bytes: 128 << 20}
	check.Equal(t, "of none", b.Share(0), 0.001, "bytes")
	check.Equal(t, "of much", b.Share(100<<20), 1, "bytes")
}
