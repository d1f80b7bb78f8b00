package reseal_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/registrar-dev/registrar/internal/domain/lti"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/flow/reseal"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// rotation is the keysets of a rotation's steps.
type rotation struct{ first, promoted, dropped []byte }

func rotate(t *testing.T) (r rotation) {
	t.Helper()
	must := func(text []byte, err error) []byte {
		check.NoError(check.Now(t), err, "a keyset")
		return text
	}
	r.first = must(seal.NewKeyset())
	r.promoted = must(seal.PromoteKey(must(seal.AddKey(r.first))))
	r.dropped = must(seal.DropKeys(r.promoted))
	return r
}

func boxOf(t *testing.T, keyset []byte) *seal.Box {
	t.Helper()
	box, err := seal.New(keyset)
	check.NoError(check.Now(t), err, "the keyset")
	return box
}

// fill stores something sealed in every column, some of it through those who read it.
func fill(t *testing.T, f *flowtest.Fixture, box *seal.Box, answers int) {
	t.Helper()
	north := f.Organization("north").ID
	webhooks := webhook.Service{DB: f.Database, Box: box, Policy: egress.New(egress.Config{})}
	e, _, err := webhooks.Add(t.Context(), audit.Platform, north, webhook.Settings{URL: new("https://hooks.north-institute.org/")}, time.Now())
	check.NoError(check.Now(t), err, "a webhook URL")
	_, _, err = webhooks.Rotate(t.Context(), audit.Platform, north, e.ID, "", time.Hour, time.Now())
	check.NoError(check.Now(t), err, "a second signing secret")
	_, _, _, err = lti.Service{DB: f.Database, Box: box}.Renew(t.Context(), audit.Platform, north, time.Now())
	check.NoError(check.Now(t), err, "a consumer")
	put := func(sql, place string, args ...any) {
		t.Helper()
		sealed, err := box.Seal(t.Context(), []byte("secret of "+place), place)
		check.NoError(check.Now(t), err, "%s", place)
		f.Exec(sql, append(args, sealed)...)
	}
	put(`INSERT INTO page_keys (version, sealed) VALUES (1, $1)`, "page_keys/1")
	put(`INSERT INTO erasures (user_id, erased_at, sealed) VALUES (7, now(), $1)`, "erasures/7")
	mail := uuid.New()
	put(`
		INSERT INTO emails (organization_id, reference, type, recipient, params, sealed, status, created_at, updated_at)
		VALUES ($1, $2, 'welcome', 'asha@north-institute.org', '{}', $3, 'queued', now(), now())`, "emails/"+mail.String(), north, mail)
	which := uuid.New()
	put(`
		WITH olive AS (
			INSERT INTO accounts (email, username, first_name, created_via, created_at, updated_at)
			VALUES ('olive@north-institute.org', 'olive', 'Olive', 'staff', now(), now()) RETURNING id)
		INSERT INTO factors (id, user_id, kind, name, created_at, sealed)
		SELECT $1, id, 'totp', 'Telephone', now(), $2 FROM olive`, "factors/"+which.String(), which)
	put(`
		INSERT INTO identity_providers (organization_id, issuer, client_id, sealed, version, students, created_at, updated_at)
		VALUES ($1, 'https://x.test', 'x', $2, 1, false, now(), now())`, fmt.Sprintf("identity_providers/%d/1", north), north)
	put(`INSERT INTO lms_keys (kid, public, created_at, signs_from, sealed) VALUES ('k1', '{}', now(), now(), $1)`, "lms_keys/k1")
	for i := range answers {
		key := fmt.Sprintf("order-%d", i)
		put(`
			INSERT INTO idempotency_keys (organization_id, key, request, holder, alive_at, status, created_at, sealed)
			VALUES ($1, $2, '', gen_random_uuid(), now(), 200, now(), $3)`, fmt.Sprintf("idempotency_keys/%d/%s", north, key), north, key)
	}
}

// opens reads everything that is sealed, and returns how much that is.
func opens(t *testing.T, db *pg.DB, box *seal.Box) (n int) {
	t.Helper()
	for _, c := range reseal.Columns() {
		rows, err := pg.List[struct {
			Context string
			Sealed  []byte
		}](t.Context(), db, `SELECT `+c.Context+` AS context, sealed FROM `+c.Table+` WHERE sealed IS NOT NULL`)
		check.NoError(check.Now(t), err, "%s", c.Table)
		check.True(t, "there is something", len(rows) > 0, "%s", c.Table)
		for _, r := range rows {
			_, err := box.Open(t.Context(), r.Sealed, r.Context)
			check.NoError(t, err, "%s", r.Context)
		}
		n += len(rows)
	}
	return n
}

func TestEverythingIsSealedWithThePresentKey(t *testing.T) {
	t.Parallel()
	f, keysets := flowtest.New(t), rotate(t)
	const answers = 450 // several batches
	fill(t, f, boxOf(t, keysets.first), answers)
	reg := prometheus.NewRegistry()
	var log strings.Builder
	s := reseal.New(f.Database, boxOf(t, keysets.promoted), slog.New(slog.NewTextHandler(&log, nil)), reg)
	_, older, err := reseal.Counts(t.Context(), f.Database, s.Box)
	check.NoError(check.Now(t), err, "counting")
	check.Equal(t, "sealed with the older key", older, answers+9, "before")
	for range 2 {
		check.NoError(check.Now(t), s.Sweep(t.Context()), "sweeping")
	}
	check.Equal(t, "sealed values", opens(t, f.Database, boxOf(t, keysets.dropped)), answers+9, "read without the older key")
	_, older, err = reseal.Counts(t.Context(), f.Database, s.Box)
	check.NoError(check.Now(t), err, "counting")
	check.Equal(t, "sealed with the older key", older, 0, "afterwards")
	check.Equal(t, "times that the log says so", strings.Count(log.String(), "nothing is encrypted with an older key"), 1, "%s", log.String())
	check.Contains(t, "the log", log.String(), fmt.Sprintf("now=%d left=0", answers+9), "%s", log.String())
	check.Equal(t, "series", testutil.CollectAndCount(reg), len(reseal.Columns()), "of the metric")
}

// A row that somebody else has locked is left for the next pass, and what is written meanwhile stays.
func TestARowThatIsInUseIsSealedTheNextTime(t *testing.T) {
	t.Parallel()
	f, keysets := flowtest.New(t), rotate(t)
	fill(t, f, boxOf(t, keysets.first), 3)
	s := reseal.New(f.Database, boxOf(t, keysets.promoted), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	err := f.Database.InTx(t.Context(), func(tx *pg.Tx) error {
		if _, err := tx.Exec(t.Context(), `UPDATE idempotency_keys SET content_type = 'text/plain' WHERE key = 'order-1'`); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return s.Sweep(ctx)
	})
	check.NoError(check.Now(t), err, "a sweep beside a transaction")
	_, older, err := reseal.Counts(t.Context(), f.Database, s.Box)
	check.NoError(check.Now(t), err, "counting")
	check.Equal(t, "sealed with the older key", older, 1, "the one that was in use")
	check.NoError(check.Now(t), s.Sweep(t.Context()), "the next sweep")
	opens(t, f.Database, boxOf(t, keysets.dropped))
	check.Equal(t, "what was written", f.Count("idempotency_keys WHERE content_type = 'text/plain'"), 1, "rows")
}

// With one key there is nothing to do, and nothing is read.
func TestNothingIsReadWithoutARotation(t *testing.T) {
	t.Parallel()
	box := boxOf(t, rotate(t).first)
	s := reseal.New(nil, box, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	check.NoError(t, s.Sweep(t.Context()), "without a database")
}

// Whoever adds a column of sealed values adds it to Columns.
func TestEveryColumnOfSealedValuesIsKnown(t *testing.T) {
	t.Parallel()
	tables, err := pg.Column[string](t.Context(), pgtest.New(t), `
		SELECT table_name::text FROM information_schema.columns
		WHERE table_schema = 'public' AND data_type = 'bytea' AND column_name LIKE '%sealed%' ORDER BY 1`)
	check.NoError(check.Now(t), err, "the columns")
	var known []string
	for _, c := range reseal.Columns() {
		known = append(known, c.Table)
	}
	slices.Sort(known)
	check.Slices(t, "the tables", tables, known, "with sealed values")
}
