package rest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// results makes n final results of a user, from their organization, on one item.
type reportWork struct {
	e    *apitest.Env
	next int
}

func (w *reportWork) item(t *testing.T, path, body string) (id int64) {
	t.Helper()
	var made struct {
		ID int64 `json:"item_id"`
	}
	w.e.Platform.Put(t, path, body).Want(t, 201).Into(t, &made)
	return made.ID
}

// final stores a final result; position 0 is one that is held for review.
func (w *reportWork) final(t *testing.T, org, user, item int64, kind, typ, completed string, score, most float64) {
	t.Helper()
	w.next++
	sql(t, w.e, `
		INSERT INTO results (organization_id, ref, kind, type, user_id, item_id, attempt, state, completed_at, score_e4, max_score_e4, final_at, position, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, 'practice', 'finished', $7, $8, $9, now(), $10, now())`,
		org, fmt.Sprintf("test:%d", w.next), kind, typ, user, item, completed, int64(score*10_000), int64(most*10_000), w.next)
}

func TestProgress(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	w := &reportWork{e: e}
	ana, ben := provision(t, north, "ana@school.example", `"courses": "ielts"`), provision(t, north, "ben@school.example")
	cleo := provision(t, south, "cleo@school.example")
	ielts, sat := w.item(t, "catalog/tests/i1", `{"title": "I", "type": "ielts"}`), w.item(t, "catalog/tests/s1", `{"title": "S", "type": "sat"}`)
	quiz := w.item(t, "organizations/north/catalog/quizzes/q1", `{"title": "Q"}`)
	const n, s = 1, 2
	w.final(t, n, ana, ielts, "test", "ielts", "2026-11-19T23:59:59Z", 6.5, 9)
	w.final(t, n, ana, ielts, "test", "ielts", "2026-11-20T00:00:00Z", 6, 9)
	w.final(t, n, ana, ielts, "test", "ielts", "2026-11-20T18:29:59Z", 7, 9)
	w.final(t, n, ana, quiz, "quiz", "quiz", "2026-11-20T10:00:00Z", 80, 100)
	w.final(t, n, ben, sat, "test", "sat", "2026-11-20T10:00:00Z", 1200, 1600)
	w.final(t, n, ben, sat, "test", "sat", "2026-11-20T11:00:00Z", 700, 800)
	w.final(t, s, cleo, sat, "test", "sat", "2026-11-20T11:00:00Z", 700, 800)
	w.final(t, n, ana, ielts, "test", "ielts", "2026-10-22T10:00:00Z", 5, 9) // before the last 30 days
	w.final(t, n, ana, ielts, "test", "ielts", "2026-11-20T12:00:00Z", 9, 9)
	sql(t, e, `UPDATE results SET position = NULL, state = 'held' WHERE score_e4 = 90000`)
	get := func(query string) *apitest.Answer {
		return north.ReadOnly.Get(t, "progress/daily/?"+query).Want(t, 200)
	}
	get("").Golden(t, "progress")
	get("tz=Asia/Kolkata&user_id="+fmt.Sprint(ana)).Golden(t, "progress-kolkata")
	get("email=ana@school.example&kind=quiz").Golden(t, "progress-quiz")
	get("test_type=sat").Golden(t, "progress-sat")
	get("course_id=1&from=2025-11-20&to=2025-11-21").Golden(t, "progress-empty")
	if c := get("course_id=1&from=2026-10-22&to=2026-11-19").Object(t)["count"]; c != 2.0 {
		t.Errorf("%v rows of the course", c)
	}
	sql(t, e, `UPDATE members SET status = 'inactive' WHERE user_id = $1`, ben)
	if c := get("user_id=" + fmt.Sprint(ben)).Object(t)["count"]; c != 0.0 {
		t.Errorf("%v rows of one who left", c)
	}
}

// Reference: progress#progress-range.
func TestProgressRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	ana := provision(t, north, "ana@school.example", `"courses": "ielts"`)
	e.Platform.Put(t, "organizations/north/staff/owner@institute.org", `{"first_name": "Olive", "role": "owner"}`).Want(t, 201)
	get := func(query string) *apitest.Answer { return north.Full.Get(t, "progress/daily/?"+query) }
	get("from=2026-08-21&to=2026-11-21").WantFault(t, 400, "range_too_long", "from")
	get("from=2026-08-22&to=2026-11-21").Want(t, 200)
	get("email=ana@school.example&from=2025-11-21&to=2026-11-21").Want(t, 200)
	get("email=ana@school.example&from=2025-11-20&to=2026-11-21").WantFault(t, 400, "range_too_long", "from")
	get("from=2026-11-02&to=2026-11-01").WantFault(t, 400, "after_to", "from")
	get("tz=Mars/Base").WantFault(t, 400, "unknown_time_zone", "tz")
	get("kind=essay").WantFault(t, 400, "not_a_choice", "kind")
	get("test_type=latin").WantFault(t, 400, "not_a_choice", "test_type")
	get("email=owner@institute.org").WantFault(t, 404, "student_not_found", "")
	get("course_id=99").WantFault(t, 404, "not_found", "course_id")
	for _, query := range []string{"email=ana@school.example", "user_id=" + fmt.Sprint(ana), "course_id=1"} {
		south.Full.Get(t, "progress/daily/?"+query).Want(t, 404)
	}
	e.Partner("x").Get(t, "progress/daily/").WantFault(t, 401, "invalid_api_key", "")
}

// A fault that is found after the answer has begun must not look like the end of it.
func TestProgressIsCutOffWhenItCannotGoOn(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	w := &reportWork{e: e}
	ana := provision(t, north, "ana@school.example")
	quiz := w.item(t, "organizations/north/catalog/quizzes/q1", `{"title": "Q"}`)
	sql(t, e, `
		INSERT INTO results (organization_id, ref, kind, type, user_id, item_id, attempt, state, completed_at, score_e4, max_score_e4, final_at, position, updated_at)
		SELECT 1, 'test:' || i, 'quiz', 'type ' || i, $1, $2, 'practice', 'finished', timestamptz '2026-11-10T00:00:00Z' + i * interval '15 s',
			10000, 10000, now(), i, now() FROM generate_series(1, 40000) AS i`, ana, quiz)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.URL()+"/api/v1/progress/daily/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-API-Key", north.ReadOnlyKey)
	r.Header.Set("Accept-Encoding", "identity") // so long that a connection does not take all of it before somebody reads
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, 1000)); check.NoError(check.Now(t), err, "%v %v", res.StatusCode, err) {
		check.Equal(check.Now(t), "res.StatusCode", res.StatusCode, 200, "%v %v", res.StatusCode, err)
	}
	// The database ends the reader's session while the client has not read on.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ended := 0; ended == 0; {
		err := e.DB.QueryRow(ctx, `SELECT count(*) FILTER (WHERE pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE '%final_results%' AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'`).Scan(&ended)
		if err != nil {
			t.Fatal(err)
		}
	}
	rest, err := io.ReadAll(res.Body)
	if check.True(t, "there is an error", err != nil, "the answer ends as if it were whole: %v", err) {
		check.Lacks(t, "the rest of the answer", string(rest), `"count"`, "the answer ends as if it were whole: %v", err)
	}
}
