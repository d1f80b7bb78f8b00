package rest_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/domain/sandbox"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// sandboxEnv has sandboxes, for which nobody works.
func sandboxEnv(t *testing.T) (*apitest.Env, *simulate.Service) {
	t.Helper()
	var made *simulate.Service
	e := apitest.New(t, func(d *server.Deps) {
		var err error
		made, err = simulate.New(pgtest.Server(t), d.DB, d.Clock, slog.New(slog.DiscardHandler))
		check.NoError(check.Now(t), err, "%v", err)
		d.Sandboxes = made
	})
	return e, made
}

// inSandbox makes the organization's sandbox, and a client with a key of it.
func inSandbox(t *testing.T, e *apitest.Env, o apitest.Organization) apitest.Organization {
	t.Helper()
	e.Platform.Put(t, "organizations/"+o.Slug+"/sandbox", nil).Want(t, 201)
	key, _ := madeKey(t, e, o.Slug, map[string]any{"access": "full", "sandbox": true})
	check.True(check.Now(t), "it is a test key", strings.HasPrefix(key, "reg_test_"), "%.12s", key)
	o.FullKey, o.Full = key, e.Partner(key)
	return o
}

func emails(t *testing.T, o apitest.Organization) (all []string) {
	t.Helper()
	var page struct {
		Students []struct{ Email string }
	}
	o.Full.Get(t, "students/").Want(t, 200).Into(t, &page)
	for _, s := range page.Students {
		all = append(all, s.Email)
	}
	return all
}

// Whatever a key calls, it is about its own database: the real one, or the organization's sandbox, and never about
// another organization's.
func TestAKeyOfASandboxReachesTheSandboxAlone(t *testing.T) {
	t.Parallel()
	e, _ := sandboxEnv(t)
	north, south := e.Organization(t, "north"), e.Organization(t, "south")
	north.Full.Get(t, "sandbox/").WantFault(t, 404, "not_a_sandbox", "")
	north.Full.Post(t, "sandbox/wipe/", nil).WantFault(t, 404, "not_a_sandbox", "")
	e.Platform.Post(t, "organizations/north/api-keys", `{"name": "x", "access": "full", "sandbox": true}`).WantFault(t, 404, "no_sandbox", "")
	northern, southern := inSandbox(t, e, north), inSandbox(t, e, south)
	all := map[string]apitest.Organization{"north@real.test": north, "south@real.test": south, "north@sandbox.test": northern, "south@sandbox.test": southern}
	for email, o := range all {
		provision(t, o, email, `"courses": ["ielts"]`)
	}
	for email, o := range all {
		check.Slices(t, "students", emails(t, o), []string{email}, "that %s sees", email)
		var shown struct {
			Organization struct{ Slug string }
			Counts       struct {
				Students int `json:"students_with_access"`
			}
		}
		o.Full.Get(t, "organization/").Want(t, 200).Into(t, &shown)
		check.Equal(t, "the organization", shown.Organization.Slug, o.Slug, "of %s", email)
		check.Equal(t, "students", shown.Counts.Students, 1, "of %s", email)
	}
	// A cursor of one database is none of the other, though the organization is the same.
	var page struct {
		NextCursor string `json:"next_cursor"`
	}
	north.Full.Get(t, "students/").Want(t, 200).Into(t, &page)
	northern.Full.Get(t, "students/?cursor="+page.NextCursor).WantFault(t, 400, "invalid_cursor", "cursor")
	var rows int
	check.NoError(t, e.DB.QueryRow(t.Context(), `SELECT count(*) FROM accounts WHERE email LIKE '%sandbox%'`).Scan(&rows), "accounts")
	check.Equal(t, "accounts of sandboxes", rows, 0, "in the installation's own database")
}

// A text tells what a key is for, and no other text finds it.
func TestTheTextOfAKeySaysWhetherItIsOfASandbox(t *testing.T) {
	t.Parallel()
	e, _ := sandboxEnv(t)
	north := e.Organization(t, "north")
	northern := inSandbox(t, e, north)
	sql(t, e, `UPDATE api_keys SET sandbox = NOT sandbox`) // nothing does so
	later := apitest.Organization{Full: e.Partner(north.ReadOnlyKey)}
	later.Full.Get(t, "ping/").WantFault(t, 401, "invalid_api_key", "")
	e.Keys.Forget(north.ID)
	e.Partner(northern.FullKey).Get(t, "ping/").WantFault(t, 401, "invalid_api_key", "")
	e.Partner(strings.Replace(northern.FullKey, "reg_test_", "reg_", 1)).Get(t, "ping/").WantFault(t, 401, "invalid_api_key", "")
}

// A sandbox has its own time, which only moving it changes.
func TestASandboxHasItsOwnTime(t *testing.T) {
	t.Parallel()
	e, made := sandboxEnv(t)
	north := inSandbox(t, e, e.Organization(t, "north"))
	type shown struct {
		Clock  string
		Moving *struct {
			To       string
			Receiver string
			Progress float64
		}
		Next *struct{ Kind, At string }
	}
	show := func() (s shown) {
		north.Full.Get(t, "sandbox/").Want(t, 200).Into(t, &s)
		return s
	}
	check.Equal(t, "the clock", show().Clock, "2026-11-21T10:00:00+00:00", "of a new sandbox")
	e.Advance(240 * time.Hour)
	check.Equal(t, "the clock", show().Clock, "2026-11-21T10:00:00+00:00", "ten days later")
	provision(t, north, "ana@anywhere.example", `"courses": ["ielts"], "tenure_months": 2`)
	next := show().Next
	if check.True(check.Now(t), "something happens next", next != nil, "") {
		check.Equal(t, "what", next.Kind, "enrollments", "")
		check.Equal(t, "when", next.At, "2027-01-14T00:00:00+00:00", "the enrollment is about to expire")
	}
	for body, fault := range map[string][2]string{
		`{}`:                                          {"missing", "to"},
		`{"to": "2026-11-21T09:59:59Z"}`:              {"out_of_range", "to"},
		`{"to": "2028-11-21T10:00:01Z"}`:              {"out_of_range", "to"},
		`{"by": "P2Y1D"}`:                             {"out_of_range", "by"},
		`{"to": "2200-01-01T00:00:00Z"}`:              {"out_of_range", "to"},
		`{"by": "1 month"}`:                           {"invalid", "by"},
		`{"by": "P1M", "to": "2026-12-21T10:00:00Z"}`: {"invalid", "by"},
		`{"by": "P1M", "receiver": "sleeps"}`:         {"not_a_choice", "receiver"},
	} {
		north.Full.Freely().Post(t, "sandbox/advance/", body).WantFault(t, 400, fault[0], fault[1])
	}
	north.Full.Post(t, "sandbox/advance/", `{"by": "P1M", "receiver": "fails"}`).Want(t, 202)
	s := show()
	if check.True(check.Now(t), "it is moved", s.Moving != nil, "%+v", s) {
		check.Equal(t, "to", s.Moving.To, "2026-12-21T10:00:00+00:00", "")
		check.Equal(t, "the receiver", s.Moving.Receiver, "fails", "")
		check.Equal(t, "the progress", s.Moving.Progress, 0.0, "nobody works")
	}
	north.Full.Post(t, "provision/student/", `{"email": "ben@anywhere.example", "first_name": "Ben"}`).WantFault(t, 409, "clock_moving", "")
	north.Full.Post(t, "sandbox/advance/", `{"by": "P1M"}`).WantFault(t, 409, "clock_moving", "")
	north.Full.Get(t, "students/").Want(t, 200)
	pending, err := sandbox.Pending(t.Context(), made.DB)
	check.NoError(t, err, "%v", err)
	check.Equal(t, "sandboxes with work", len(pending), 1, "%+v", pending)
}

// Work that is asked for in the one database after the call's commit in the other is asked for again where that failed.
func TestWorkOfASandboxThatNoWorkerLearnedOfIsAskedForAgain(t *testing.T) {
	t.Parallel()
	e, made := sandboxEnv(t)
	north := inSandbox(t, e, e.Organization(t, "north"))
	pending := func() int {
		found, err := sandbox.Pending(t.Context(), made.DB)
		check.NoError(check.Now(t), err, "%v", err)
		return len(found)
	}
	north.Full.Get(t, "students/").Want(t, 200)
	check.Equal(t, "sandboxes with work", pending(), 0, "nothing is due")
	north.Full.Post(t, "provision/student/", `{"email": "ana@anywhere.example", "first_name": "Ana", "courses": ["ielts"]}`).Want(t, 201)
	_, err := made.DB.Exec(t.Context(), `UPDATE sandboxes SET asked = done`)
	check.NoError(check.Now(t), err, "%v", err)
	check.Equal(t, "sandboxes with work", pending(), 0, "it could not be asked for")
	north.Full.Get(t, "students/").Want(t, 200)
	check.Equal(t, "sandboxes with work", pending(), 1, "after the next call")
}

// What a call promises is asked for at once, and a wipe leaves nothing but what the organization has.
func TestWipingASandbox(t *testing.T) {
	t.Parallel()
	e, made := sandboxEnv(t)
	actual := e.Organization(t, "north")
	north := inSandbox(t, e, actual)
	count := func() int {
		pending, err := sandbox.Pending(t.Context(), made.DB)
		check.NoError(t, err, "%v", err)
		return len(pending)
	}
	check.Equal(t, "sandboxes with work", count(), 0, "before anything happened")
	north.Full.Post(t, "provision/student/", `{"email": "ana@anywhere.example", "first_name": "Ana", "courses": ["ielts"]}`).Want(t, 201)
	check.Equal(t, "sandboxes with work", count(), 1, "after a call that queued a mail")
	e.Platform.Put(t, "organizations/north/catalog/quizzes/q1", `{"title": "Words"}`).Want(t, 201)
	north.Full.Post(t, "sandbox/advance/", `{"by": "P1D"}`).Want(t, 202)
	var catalog struct{ Items []struct{ Title string } }
	north.Full.Get(t, "catalog/").Want(t, 200).Into(t, &catalog)
	check.Equal(t, "items", len(catalog.Items), 0, "%+v", catalog)
	north.Full.Post(t, "sandbox/wipe/", nil).Want(t, 200)
	north.Full.Get(t, "catalog/").Want(t, 200).Into(t, &catalog)
	check.Equal(t, "items", len(catalog.Items), 1, "%+v", catalog)
	check.Equal(t, "students", len(emails(t, north)), 0, "of a wiped sandbox")
	names, err := made.Databases.Names(t.Context())
	check.NoError(t, err, "%v", err)
	check.Slices(t, "databases", names, []string{sandbox.Sandbox{Organization: actual.ID, Generation: 2}.Database()}, "after a wipe")
	provision(t, north, "ana@anywhere.example", `"courses": ["ielts"]`)
	check.Equal(t, "students of the real organization", len(emails(t, actual)), 0, "")
	e.Platform.Delete(t, "organizations/north/sandbox").Want(t, 200)
	north.Full.Get(t, "students/").WantFault(t, 404, "no_sandbox", "")
	names, err = made.Databases.Names(t.Context())
	check.NoError(t, err, "%v", err)
	check.Equal(t, "databases", len(names), 0, "after the sandbox was deleted: %q", names)
	e.Advance(-time.Hour)
	e.Platform.Put(t, "organizations/north/sandbox", nil).Want(t, 201)
	var again struct{ Clock string }
	north.Full.Get(t, "sandbox/").Want(t, 200).Into(t, &again)
	check.Equal(t, "the clock", again.Clock, "2026-11-21T09:00:00+00:00", "of a sandbox that is made once more")
	check.Equal(t, "students", len(emails(t, north)), 0, "of a sandbox that is made once more")
	logged, err := pg.Column[string](t.Context(), e.DB, `
		SELECT actor_kind || ' ' || action FROM audit_log WHERE organization_id = $1 AND action LIKE '% sandbox' ORDER BY id`, actual.ID)
	check.NoError(t, err, "%v", err)
	check.Slices(t, "the audit log", logged,
		[]string{"platform_key created sandbox", "partner_key wiped sandbox", "platform_key deleted sandbox", "platform_key created sandbox"}, "")
}

func TestStudentsActInASandbox(t *testing.T) {
	t.Parallel()
	e, _ := sandboxEnv(t)
	actual := e.Organization(t, "north")
	var item struct {
		ID int64 `json:"item_id"`
	}
	e.Platform.Put(t, "organizations/north/catalog/tests/mock", `{"title": "Mock", "type": "ielts"}`).Want(t, 201).Into(t, &item)
	north := inSandbox(t, e, actual)
	ref := provisionAndAssign(t, north, "ana@anywhere.example", item.ID)
	act := func(body string) (result struct {
		ID    string `json:"result_id"`
		Score float64
	}) {
		north.Full.Post(t, "sandbox/act/", fmt.Sprintf(body, ref)).Want(t, http.StatusOK).Into(t, &result)
		return result
	}
	drawn := act(`{"assignment_id": %q, "seed": 7}`)
	check.Equal(t, "the result", act(`{"assignment_id": %q, "seed": 7}`), drawn, "of the same seed")
	check.Equal(t, "the score", act(`{"assignment_id": %q, "score": 6.5}`).Score, 6.5, "that was sent")
	var results struct{ Count int }
	north.Full.Get(t, "results/").Want(t, 200).Into(t, &results)
	check.Equal(t, "results", results.Count, 1, "")
	actual.Full.Get(t, "results/").Want(t, 200).Into(t, &results)
	check.Equal(t, "results of the real organization", results.Count, 0, "")
	north.Full.Post(t, "sandbox/act/", fmt.Sprintf(`{"assignment_id": %q, "score": 6.6}`, ref)).WantFault(t, 400, "off_scale", "score")
	north.Full.Post(t, "sandbox/act/", `{"assignment_id": "test-assignment:999"}`).WantFault(t, 404, "assignment_not_found", "")
	actual.Full.Post(t, "sandbox/act/", fmt.Sprintf(`{"assignment_id": %q}`, ref)).WantFault(t, 404, "not_a_sandbox", "")
}

// A database that is not the sandbox's is refused, whatever its name is.
func TestADatabaseWithoutItsClockIsNoSandbox(t *testing.T) {
	t.Parallel()
	e, made := sandboxEnv(t)
	north := e.Organization(t, "north")
	inSandbox(t, e, north)
	name := sandbox.Sandbox{Organization: north.ID, Generation: 1}.Database()
	quiet := slog.New(slog.DiscardHandler)
	check.NoError(t, made.Databases.Drop(t.Context(), name), "")
	check.NoError(t, made.Databases.Make(t.Context(), name, quiet), "")
	_, err := made.Open(t.Context(), sandbox.Sandbox{Organization: north.ID, Generation: 1})
	check.True(t, "it is refused", pg.None(err), "%v", err)
}

// Reference: limits#sandbox.
func TestAFullSandboxIsRefused(t *testing.T) {
	t.Parallel()
	e, made := sandboxEnv(t)
	north := inSandbox(t, e, e.Organization(t, "north"))
	check.Equal(t, "bytes", made.MaxSize, int64(512<<20), "that a sandbox may have")
	made.MaxSize = 1 << 20 // less than its schema has
	north.Full.Post(t, "provision/student/", `{"email": "ana@anywhere.example", "first_name": "Ana"}`).WantFault(t, 409, "sandbox_full", "")
	north.Full.Get(t, "students/").Want(t, 200)
	north.Full.Post(t, "sandbox/wipe/", nil).Want(t, 200)
	made.MaxSize = 512 << 20
	north.Full.Post(t, "provision/student/", `{"email": "ana@anywhere.example", "first_name": "Ana"}`).Want(t, 201)
}

// The repeat of a call moves the clock once, however far its first request moved it.
func TestARepeatMovesTheClockOnce(t *testing.T) {
	t.Parallel()
	e, made := sandboxEnv(t)
	north := inSandbox(t, e, e.Organization(t, "north"))
	advance := func() *apitest.Answer {
		t.Helper()
		return north.Full.With("Idempotency-Key", "once").Post(t, "sandbox/advance/", `{"by": "P1M"}`).Want(t, 202)
	}
	arrive := func() {
		t.Helper()
		found, err := sandbox.Find(t.Context(), made.DB, north.ID)
		check.NoError(check.Now(t), err, "%v", err)
		db, err := made.Open(t.Context(), found)
		check.NoError(check.Now(t), err, "%v", err)
		defer db.Close()
		c, err := sandbox.Read(t.Context(), db, north.ID)
		check.NoError(check.Now(t), err, "%v", err)
		check.True(check.Now(t), "the clock is moved", c.Target != nil, "%+v", c)
		err = sandbox.Set(t.Context(), db, sandbox.Mover{Organization: north.ID}, *c.Target, true)
		check.NoError(check.Now(t), err, "%v", err)
	}
	now := func() (shown struct{ Clock string }) {
		t.Helper()
		north.Full.Get(t, "sandbox/").Want(t, 200).Into(t, &shown)
		return shown
	}
	first := advance()
	arrive()
	check.Equal(t, "the answer", string(advance().Body), string(first.Body), "to a repeat")
	check.Equal(t, "the clock", now().Clock, "2026-12-21T10:00:00+00:00", "after a repeat")
	e.Advance(25 * time.Hour)
	advance()
	arrive()
	check.Equal(t, "the clock", now().Clock, "2027-01-21T10:00:00+00:00", "after the key has ended")
}

// Reference: organization#erasure.
func TestTheSandboxOfAnErasedOrganizationGoes(t *testing.T) {
	t.Parallel()
	e, made := sandboxEnv(t)
	north := inSandbox(t, e, e.Organization(t, "north"))
	names := func() int {
		t.Helper()
		check.NoError(t, made.Sweep(t.Context()), "sweeping")
		names, err := made.Databases.Names(t.Context())
		check.NoError(t, err, "%v", err)
		return len(names)
	}
	check.Equal(t, "databases", names(), 1, "before the erasure")
	e.Platform.Delete(t, "organizations/north").Want(t, 202)
	north.Full.Get(t, "students/").WantFault(t, 401, "invalid_api_key", "")
	var list struct{ Count int }
	e.Platform.Get(t, "sandboxes").Want(t, 200).Into(t, &list)
	check.Equal(t, "sandboxes", list.Count, 0, "after the erasure")
	check.Equal(t, "databases", names(), 0, "after the erasure")
}
