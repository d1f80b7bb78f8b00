package rest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/openapi"
	"github.com/registrar-dev/registrar/api-server/internal/rest"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/kit/apicheck"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/queue/queuetest"
)

const keyHeader = "Idempotency-Key"

// Reference: conventions#repeats.
func TestAnIdempotencyKeyGetsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	keyed := north.Full.With(keyHeader, "order-7")
	body := `{"email": "ana@institute.org", "first_name": "Ana", "password_mode": "generate"}`
	first := keyed.Post(t, provisionPath, body).Want(t, 201)
	again := keyed.Post(t, provisionPath, body).Want(t, 201)
	if check.Equal(t, "the answer", string(again.Body), string(first.Body), "again: %v\n%s\nfirst:\n%s", again.Header, again.Body, first.Body) &&
		check.Equal(t, "Idempotency-Replayed", again.Header.Get("Idempotency-Replayed"), "true", "again: %v\n%s\nfirst:\n%s", again.Header, again.Body, first.Body) &&
		check.Equal(t, "Idempotency-Replayed", first.Header.Get("Idempotency-Replayed"), "", "again: %v\n%s\nfirst:\n%s", again.Header, again.Body, first.Body) &&
		check.Equal(t, "Content-Type", again.Header.Get("Content-Type"), first.Header.Get("Content-Type"), "again: %v\n%s\nfirst:\n%s", again.Header, again.Body, first.Body) {
		check.True(t, "the request has an id of its own", again.Header.Get("X-Request-Id") != first.Header.Get("X-Request-Id"), "again: %v\n%s\nfirst:\n%s", again.Header, again.Body, first.Body)
	}
	keyed.Post(t, provisionPath, strings.Replace(body, "Ana", "Eve", 1)).WantFault(t, 422, "idempotency_key_reused", "")
	north.Full.With(keyHeader, "order-8").Post(t, provisionPath, body).Want(t, 200)
	south.Full.With(keyHeader, "order-7").Post(t, provisionPath, strings.Replace(body, "Ana", "Eve", 1)).Want(t, 200)
	bad := north.Full.With(keyHeader, "order-9")
	refused := bad.Post(t, provisionPath, `{"email": "ana"}`).Want(t, 400)
	if repeated := bad.Post(t, provisionPath, `{"email": "ana"}`).Want(t, 400); check.Equal(t, "the answer", string(repeated.Body), string(refused.Body), "%s\n%s", refused.Body, repeated.Body) {
		check.Equal(t, "Idempotency-Replayed", repeated.Header.Get("Idempotency-Replayed"), "true", "%s\n%s", refused.Body, repeated.Body)
	}
	for _, key := range []string{"two words", strings.Repeat("x", 256), "ä"} {
		north.Full.With(keyHeader, key).Post(t, provisionPath, body).WantFault(t, 400, "invalid_idempotency_key", "")
	}
	north.ReadOnly.With(keyHeader, "order-7").Post(t, provisionPath, body).WantFault(t, 403, "read_only_key", "")
	if n := count(t, e, `SELECT count(*) FROM idempotency_keys WHERE position('password'::bytea IN sealed) > 0`); n != 0 {
		t.Errorf("%d answers are stored in the clear", n)
	}
	exec(t, e, `UPDATE idempotency_keys SET created_at = created_at - interval '25 hours'`)
	if after := keyed.Post(t, provisionPath, body).Want(t, 200); after.Header.Get("Idempotency-Replayed") != "" {
		t.Error("a key is remembered for more than a day")
	}
}

// The headers of a roster are as much of the request as its file: a preview's key does not
// answer for the import, nor one source's for another's.
func TestAnIdempotencyKeyKnowsWhatIsToBeDoneWithAFile(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.ImportRosters(t)
	keyed := e.Organization(t, "north").Full.With(keyHeader, "roster-7").With("Content-Type", "text/csv")
	rows := rosterHeader + "s1,ana@institute.org,Ana,Lopez,\n"
	preview := keyed.With("X-Roster-Dry-Run", "true")
	first := preview.Post(t, "roster/import/", rows).Want(t, 200)
	if again := preview.Post(t, "roster/import/", rows).Want(t, 200); check.Equal(t, "the answer", string(again.Body), string(first.Body), "%s\n%s", first.Body, again.Body) {
		check.Equal(t, "Idempotency-Replayed", again.Header.Get("Idempotency-Replayed"), "true", "%s\n%s", first.Body, again.Body)
	}
	for _, other := range []*apitest.Client{keyed, keyed.With("X-Roster-Dry-Run", "false"), preview.With("X-Roster-Source", "sis"), preview.With("X-Roster-Mode", "additive_only")} {
		other.Post(t, "roster/import/", rows).WantFault(t, 422, "idempotency_key_reused", "")
	}
	preview.Post(t, "roster/import/?x=1", rows).WantFault(t, 422, "idempotency_key_reused", "")
	if n := count(t, e, `SELECT count(*) FROM accounts WHERE email = 'ana@institute.org'`); n != 0 {
		t.Errorf("%d people were made by previews", n)
	}
}

func TestConcurrentRequestsWithOneIdempotencyKey(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	keyed := e.Organization(t, "north").Full.With(keyHeader, "order-7")
	var mu sync.Mutex
	bodies, fresh := map[string]int{}, 0
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			a := keyed.Post(t, provisionPath, `{"email": "ana@institute.org", "first_name": "Ana"}`).Want(t, 201)
			mu.Lock()
			defer mu.Unlock()
			bodies[string(a.Body)]++
			if a.Header.Get("Idempotency-Replayed") == "" {
				fresh++
			}
		})
	}
	wg.Wait()
	if check.Equal(t, "number of bodies", len(bodies), 1, "%d different answers, %d requests were worked on", len(bodies), fresh) {
		check.Equal(t, "fresh", fresh, 1, "%d different answers, %d requests were worked on", len(bodies), fresh)
	}
}

// A process that died at work leaves a row that falls silent.
func TestAKeyOfADeadWorkerIsTakenOver(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	keyed := e.Organization(t, "north").Full.With(keyHeader, "order-7")
	body := `{"email": "ana@institute.org", "first_name": "Ana"}`
	keyed.Post(t, provisionPath, body).Want(t, 201)
	exec(t, e, `UPDATE idempotency_keys SET status = NULL, sealed = NULL, alive_at = now() - interval '21 s'`)
	keyed.Post(t, provisionPath, strings.Replace(body, "Ana", "Eve", 1)).WantFault(t, 422, "idempotency_key_reused", "")
	keyed.Post(t, provisionPath, body).Want(t, 200) // what was committed stays
	if again := keyed.Post(t, provisionPath, body).Want(t, 200); again.Header.Get("Idempotency-Replayed") != "true" {
		t.Error("the answer of the second worker was not kept")
	}
}

// Reference: conventions#repeats.
func TestFailuresAreNotKept(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	keyed := e.Organization(t, "north").Full.With(keyHeader, "order-7")
	body := `{"email": "ana@institute.org", "first_name": "Ana"}`
	exec(t, e, `ALTER TABLE members RENAME TO members_away`)
	keyed.Post(t, provisionPath, body).WantFault(t, 500, "internal", "")
	exec(t, e, `ALTER TABLE members_away RENAME TO members`)
	keyed.Post(t, provisionPath, body).Want(t, 201)
}

// What something else than the request decided is worked on again once that has changed.
// Reference: conventions#repeats.
func TestARefusalWhoseReasonIsGoneIsNotRepeated(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	e.Platform.Post(t, "organizations/north/courses", `{"name": "Batch", "course_type": "toefl", "open_for_enrolment": false}`).Want(t, 201)
	e.Platform.Put(t, "organizations/north/catalog/tests/mock", `{"title": "Mock", "type": "ielts"}`).Want(t, 201)
	enable := func(on bool) {
		e.Platform.Put(t, "organizations/north", map[string]any{"language_tests_enabled": on}).Want(t, 200)
	}
	enable(false)
	for _, c := range []struct {
		name, path, body string
		status           int
		code             string
		mend             func()
		then             int
	}{
		{"403", provisionPath, `{"email": "ana@institute.org", "first_name": "Ana"}`, 403, "language_tests_disabled", func() { enable(true) }, 201},
		{"404", "assignments/", `{"email": "ben@institute.org", "kind": "test", "item_id": 1}`, 404, "student_not_found",
			func() { granted(t, north, "ben@institute.org") }, 201},
		{"409", "assignments/", `{"email": "ana@institute.org", "kind": "test", "item_id": 1}`, 409, "no_access",
			func() { granted(t, north, "ana@institute.org") }, 201},
		{"400", provisionPath, `{"email": "ana@institute.org", "first_name": "Ana", "course_ids": 1}`, 400, "course_closed",
			func() { patchCourse(t, e, 1, `{"open_for_enrolment": true}`) }, 200},
		{"500", provisionPath, `{"email": "cem@institute.org", "first_name": "Cem"}`, 500, "internal",
			func() { exec(t, e, `ALTER TABLE members_away RENAME TO members`) }, 201},
	} {
		if c.status == 500 {
			exec(t, e, `ALTER TABLE members RENAME TO members_away`)
		}
		keyed := north.Full.With(keyHeader, "order-"+c.name)
		var f apitest.Fault
		keyed.Post(t, c.path, c.body).Want(t, c.status).Into(t, &f)
		check.Equal(t, "code", f.Code, c.code, "%s: %+v", c.name, f)
		check.Equal(t, "keys kept", count(t, e, `SELECT count(*) FROM idempotency_keys WHERE key = 'order-`+c.name+`'`), 0, "%s", c.name)
		c.mend()
		again := keyed.Post(t, c.path, c.body).Want(t, c.then)
		check.Equal(t, "Idempotency-Replayed", again.Header.Get("Idempotency-Replayed"), "", "%s: %s", c.name, again.Body)
		repeated := keyed.Post(t, c.path, c.body).Want(t, c.then)
		check.Equal(t, "Idempotency-Replayed", repeated.Header.Get("Idempotency-Replayed"), "true", "%s: %s", c.name, repeated.Body)
	}
}

// With and without its trailing slash a path is one request. Reference: conventions#repeats.
func TestAKeyKnowsAPathWithAndWithoutItsSlash(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	keyed := e.Organization(t, "north").Full.With(keyHeader, "order-7")
	body := `{"email": "ana@institute.org", "first_name": "Ana", "password_mode": "generate"}`
	first := keyed.Post(t, "provision/student/", body).Want(t, 201)
	again := keyed.Post(t, "provision/student", body).Want(t, 201)
	check.Equal(t, "again.Body", string(again.Body), string(first.Body), "the path without its slash is another request")
}

// A refusal is not kept where it is many times as long as the request.
func TestLongRefusalsAreNotStored(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	keyed := e.Organization(t, "north").Full.With(keyHeader, "order-7")
	body := `{"email": "ana", "first_name": "Ana", "courses": "` + strings.Repeat("x,", 1500) + `"}`
	first := keyed.Post(t, provisionPath, body).Want(t, 400)
	check.True(check.Now(t), "the answer is long", len(first.Body) > 4<<10, "%d bytes", len(first.Body))
	// An answer of this length arrives before its key is let go.
	kept := func() int { return count(t, e, `SELECT count(*) FROM idempotency_keys`) }
	for deadline := time.Now().Add(time.Minute); kept() > 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	check.Equal(t, "keys kept", kept(), 0, "%d bytes were stored for %d that were sent", len(first.Body), len(body))
	again := keyed.Post(t, provisionPath, body).Want(t, 400)
	check.Equal(t, "again.Body", string(again.Body), string(first.Body), "worked on again")
}

// Reference: limits#rate.
func TestAKeyIsLimitedInItsRate(t *testing.T) {
	t.Parallel()
	e := apitest.New(t, func(d *server.Deps) {
		d.Redis, d.Rate = queuetest.New(t), rest.Rate{PerSecond: 1, Burst: 3}
	})
	for n := 0; ; n++ {
		north := e.Organization(t, fmt.Sprint("north-", n))
		began := time.Now()
		calls := []*apitest.Answer{north.Full.Get(t, "ping/"), north.Full.Get(t, "ping/"), north.Full.Get(t, "ping/"), north.Full.Post(t, provisionPath, `{}`)}
		if time.Since(began) >= time.Second { // one more is allowed already
			continue
		}
		for i, a := range calls[:3] {
			h := a.Want(t, 200).Header
			if check.Equal(t, "RateLimit-Limit", h.Get("RateLimit-Limit"), "3", "header = %v", h) &&
				check.Equal(t, "RateLimit-Remaining", h.Get("RateLimit-Remaining"), fmt.Sprint(2-i), "header = %v", h) {
				check.True(t, "there is a RateLimit-Reset", h.Get("RateLimit-Reset") != "", "header = %v", h)
				check.Equal(t, "RateLimit-Policy", h.Get("RateLimit-Policy"), `"key";q=3;w=3`, "header = %v", h)
				check.Contains(t, "RateLimit", h.Get("RateLimit"), fmt.Sprintf(`"key";r=%d;t=`, 2-i), "header = %v", h)
			}
		}
		refused := calls[3]
		refused.WantFault(t, 429, "rate_limited", "")
		if check.True(t, "there is a Retry-After", refused.Header.Get("Retry-After") != "", "header = %v", refused.Header) {
			check.Equal(t, "RateLimit-Remaining", refused.Header.Get("RateLimit-Remaining"), "0", "header = %v", refused.Header)
		}
		north.ReadOnly.Get(t, "ping/").Want(t, 200) // another key
		return
	}
}

func TestEveryOperationIsLimitedInItsRate(t *testing.T) {
	t.Parallel()
	rdb := queuetest.New(t)
	e := apitest.New(t, func(d *server.Deps) { d.Redis, d.Rate = rdb, rest.Rate{PerSecond: 1, Burst: 1} })
	north := e.Organization(t, "north")
	var keys []string
	began := time.Now()
	for kept := false; !kept; { // Redis forgets it after a second
		check.True(check.Now(t), "a key is found within a minute", time.Since(began) < time.Minute, "")
		north.Full.Get(t, "ping/").Want(t, 200)
		var err error
		keys, err = rdb.Keys(t.Context(), "*").Result()
		check.NoError(check.Now(t), err, "")
		check.True(check.Now(t), "there is at most one key", len(keys) <= 1, "%v", keys)
		kept = len(keys) == 1 && rdb.Persist(t.Context(), keys[0]).Val()
	}
	// The next call may come in an hour.
	check.NoError(check.Now(t), rdb.IncrByFloat(t.Context(), keys[0], 3600).Err(), "")
	document, err := apicheck.New(openapi.Partner())
	if err != nil {
		t.Fatal(err)
	}
	for _, operation := range document.Operations() {
		method, path, _ := strings.Cut(operation, " ")
		if strings.HasPrefix(path, "/api/v1/events/schemas/") { // needs no key
			continue
		}
		var body any
		if method == "POST" {
			body = `{}`
		}
		north.Full.Do(t, method, path, body).WantFault(t, 429, "rate_limited", "")
	}
}

func TestWithoutRedisNothingIsLimited(t *testing.T) {
	t.Parallel()
	rdb, err := queue.Connect("redis://127.0.0.1:1", queue.TLS{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rdb.Close() })
	e := apitest.New(t, func(d *server.Deps) { d.Redis, d.Rate = rdb, rest.Rate{PerSecond: 1, Burst: 1} })
	north := e.Organization(t, "north")
	for range 5 {
		if h := north.Full.Get(t, "ping/").Want(t, 200).Header; h.Get("RateLimit-Limit") != "" {
			t.Errorf("header = %v", h)
		}
	}
	if text := e.Log.String(); strings.Count(text, "rate limits are not applied") != 1 {
		t.Errorf("the log says it %d times", strings.Count(text, "rate limits are not applied"))
	}
}

func exec(t *testing.T, e *apitest.Env, sql string) {
	t.Helper()
	if _, err := e.DB.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, e *apitest.Env, sql string) (n int) {
	t.Helper()
	if err := e.DB.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
