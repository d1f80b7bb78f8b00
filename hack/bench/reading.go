package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
)

var readingCases = []benchCase{
	{"reading", "every list and report over 10 million results, 1 million assignments and a year of activity", onEstate(reading)},
	{"activity-ingest", "POST /activity with 10,000 events a call", activityIngest},
	{"work-ingest", "POST /work with 1,000 final results a call and one URL", workIngest},
}

// reader calls the partner API of one organization.
type reader struct {
	base, key string
}

func (h *house) reader(ctx context.Context, slug string) (reader, error) {
	key, err := h.key(ctx, slug)
	return reader{fmt.Sprintf("http://127.0.0.1:%d/api/v1/", h.settings.Ports.API), key}, err
}

// key makes a key of an organization, which may read.
func (h *house) key(ctx context.Context, slug string) (string, error) {
	var made struct{ Key string }
	err := h.settings.Platform(ctx, http.MethodPost, "organizations/"+slug+"/api-keys", `{"name": "bench", "access": "read_only"}`, &made)
	return made.Key, err
}

// get reads an answer to its end and tells how long it took and how many bytes it had.
func (c reader) get(ctx context.Context, path string) (time.Duration, int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("X-API-Key", c.key)
	req.Header.Set("Accept-Encoding", "identity")
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, res.Status)
	}
	return time.Since(began), n, err
}

func (c reader) repeat(ctx context.Context, n int, path string) (times, error) {
	return repeat(n, func(int) (time.Duration, error) {
		took, _, err := c.get(ctx, path)
		return took, err
	})
}

func reading(ctx context.Context, r *run, e *estate) error {
	c, err := e.house.reader(ctx, "estate-0")
	if err != nil {
		return err
	}
	for _, measure := range []func(context.Context, *run, *estate, reader) error{resultPages, progressMemory, everyFilter, everyPlan} {
		if err := measure(ctx, r, e, c); err != nil {
			return err
		}
	}
	return e.house.printStatements(ctx, r)
}

// resultPages compares the first page with one near the end, and with the bare limit.
func resultPages(ctx context.Context, r *run, e *estate, c reader) error {
	big := e.orgs[0]
	deep := int64(float64(big.results) * 0.99)
	cursor, err := page.New(e.house.db, e.house.webhooks.Box).Encode(ctx, page.List{Organization: id.Organization(big.id), Name: "results"}, page.Position{deep})
	if err != nil {
		return err
	}
	first, err := c.repeat(ctx, 60, "results/?limit=500")
	if err != nil {
		return err
	}
	late, err := c.repeat(ctx, 60, "results/?limit=500&cursor="+cursor)
	if err != nil {
		return err
	}
	bare, err := repeat(60, func(int) (time.Duration, error) { return bareResults(ctx, e, deep) })
	if err != nil {
		return err
	}
	r.step("500 results, first page", first, 0)
	r.step("500 results, page at 99 %", late, 0)
	r.step("500 results, bare select and encode", bare, 0)
	ratio := float64(late.At(.5)) / float64(first.At(.5))
	r.verdict("page at 99 % : first page", ratio <= 1.2 && ratio >= 1/1.2, "p50 within 1.2 times", "%.2f times, of %d results", ratio, big.results)
	ratio = float64(late.At(.5)) / float64(bare.At(.5))
	r.verdict("results : bare select and encode", ratio <= 1.5, "p50 at most 1.5 times", "%.2f times", ratio)
	return nil
}

// bareResult is what the bare limit selects and encodes.
type bareResult struct {
	Ref, Kind, Type, Attempt     string
	User                         int64
	Email, FirstName, LastName   string
	Item                         int64
	Title                        string
	Started, Completed, Released *time.Time
	Score, MaxScore              *int64
	Sections                     *string
	Position                     int64
}

// bareResults selects a page into structs and encodes it, and nothing else: over a warm
// connection, with a statement that is prepared, and without looking at who is a student.
func bareResults(ctx context.Context, e *estate, after int64) (time.Duration, error) {
	began := time.Now()
	rows, err := e.house.db.Query(ctx, `
		SELECT r.ref, r.kind, r.type, r.attempt, r.user_id, a.email, a.first_name, a.last_name, r.item_id, i.title,
			r.started_at, r.completed_at, r.released_at, r.score_e4, r.max_score_e4, r.sections::text, r.position
		FROM results r JOIN accounts a ON a.id = r.user_id JOIN catalog_items i ON i.id = r.item_id
		WHERE r.organization_id = $1 AND r.position > $2 ORDER BY r.position LIMIT 500`, e.orgs[0].id, after)
	if err != nil {
		return 0, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[bareResult])
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		return 0, errors.New("the bare select found nothing")
	}
	_, err = json.Marshal(found)
	return time.Since(began), err
}

// progressMemory measures how far a long report lets api-server grow.
func progressMemory(ctx context.Context, r *run, e *estate, c reader) error {
	pid := e.house.api.Identity().PID
	if _, _, err := c.get(ctx, "progress/daily/?from="+e.day(-1)+"&to="+e.day(0)); err != nil {
		return err
	}
	e.house.notePeaks()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil { // forgets the peak so far
		return err
	}
	before := residentMemory(pid)
	took, size, err := c.get(ctx, "progress/daily/?from="+e.day(-91)+"&to="+e.day(0))
	if err != nil {
		return err
	}
	peak := peakRSS(pid)
	grown := float64(peak-before) / (1 << 20)
	r.verdict("progress of everyone, 92 days", before > 0 && peak > 0 && grown < 32, "api-server grows by less than 32 MiB",
		"%.1f MiB for an answer of %.1f MiB in %s", grown, float64(size)/(1<<20), round(took))
	return nil
}

// day is a date before the end of the estate's year.
func (e *estate) day(days int) string { return e.now.AddDate(0, 0, days).Format(time.DateOnly) }
