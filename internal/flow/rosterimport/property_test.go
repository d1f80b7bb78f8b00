package rosterimport_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/roster/diff"
)

// draw makes a file of few people, ids, addresses and classes, so that they meet often.
func draw(t *rapid.T) upload {
	pick := func(name string, from ...string) string { return rapid.SampledFrom(from).Draw(t, name) }
	var rows, seats []string
	for range rapid.IntRange(0, 6).Draw(t, "rows") {
		rows = append(rows, strings.Join([]string{pick("id", "a", "b", "c", "d", "e", ""), pick("email", "u@x.org", "v@x.org", "w@x.org", "x@x.org", "y@x.org", "", "bad"),
			pick("first", "Ana", "Ben", ""), pick("last", "Lo", "Mi"), pick("role", "", "", "", "student", "teacher", "owner", "janitor")}, ","))
	}
	for range rapid.IntRange(0, 5).Draw(t, "seats") {
		seats = append(seats, strings.Join([]string{pick("who", "a", "b", "c", "d", "e", "z"), pick("class", "k", "l"), pick("class name", "One", "Uno", "")}, ","))
	}
	u := people(rows...)
	if rapid.Bool().Draw(t, "has enrollments") {
		u = u.with(seats...)
	}
	u.mode = rapid.SampledFrom([]roster.Mode{roster.Additive, roster.Snapshot}).Draw(t, "mode")
	u.source = pick("source", "default", "default", "other")
	return u
}

// meddling is what others do between two imports; $1 is the organization.
var meddling = []string{
	`SELECT $1::bigint`,
	`UPDATE members SET status = 'inactive', updated_at = now() WHERE organization_id = $1 AND user_id = (SELECT min(user_id) FROM members WHERE status = 'active')`,
	`UPDATE members SET status = 'active', updated_at = now() WHERE organization_id = $1 AND user_id = (SELECT min(user_id) FROM members WHERE status = 'inactive')`,
	`UPDATE members SET role = 'owner', updated_at = now() WHERE organization_id = $1 AND user_id = (SELECT max(user_id) FROM members)`,
	`DELETE FROM members WHERE organization_id = $1 AND user_id = (SELECT max(user_id) FROM members)`,
	`UPDATE accounts SET last_login = '2026-11-01', updated_at = '2026-11-01' WHERE id = (SELECT min(id) FROM accounts WHERE $1 > 0)`,
	`WITH a AS (INSERT INTO accounts (email, username, first_name, last_name, created_via, created_at, updated_at)
		VALUES ('u@x.org', 'someone', 'Una', 'Known', 'api', now(), now()) ON CONFLICT DO NOTHING RETURNING id)
	 INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
		SELECT $1, id, 'member', 'active', 'api', now(), now() FROM a`,
	`INSERT INTO accounts (email, username, first_name, last_name, created_via, created_at, updated_at)
		SELECT 'v@x.org', 'elsewhere', 'Vic', 'Else', 'api', now(), now() WHERE $1 > 0 ON CONFLICT DO NOTHING`,
}

// Whatever has happened and whatever the files hold, the promises of an import hold.
// Reference: roster#promises.
func TestPromisesOfAnImport(t *testing.T) {
	t.Parallel()
	h := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		for _, table := range []string{"roster_class_members", "roster_classes", "roster_identities", "roster_runs", "roster_sources", "members", "accounts"} {
			h.exec(t, `DELETE FROM `+table)
		}
		h.snapshots(t)
		for range rapid.IntRange(1, 4).Draw(rt, "imports") {
			meddle := rapid.SampledFrom(meddling).Draw(rt, "meddling")
			h.exec(t, strings.ReplaceAll(meddle, "now()", h.now.Format("'2006-01-02 15:04:05Z'::timestamptz")), h.org)
			h.importAndCheck(t, rt, draw(rt))
		}
	})
}

func (h *house) importAndCheck(t *testing.T, rt *rapid.T, u upload) {
	before, seated, untouchable, w := h.people(t), h.seated(t), h.untouchable(t), h.world(t, u)
	preview := u
	preview.dryRun = true
	planned := h.run(t, preview)
	if got := h.people(t); got != before {
		rt.Fatalf("a preview wrote:\n%s\nbefore:\n%s", got, before)
	}
	r := h.run(t, u)
	if got, want := h.planOf(t, r), h.planOf(t, planned); got != want {
		rt.Fatalf("the run:\n%s\nits preview:\n%s", got, want)
	}
	if got, want := h.planOf(t, r), w.plan(u); got != want {
		rt.Fatalf("the run:\n%s\nplanned in memory:\n%s\nof\n%s\nbefore:\n%s", got, want, u.file, before)
	}
	if r.State == roster.Held {
		if got := h.people(t); got != before {
			rt.Fatalf("a held run wrote:\n%s\nbefore:\n%s", got, before)
		}
		if err := roster.Approve(t.Context(), h.DB, olive, h.org, r.ID, h.now); err != nil {
			t.Fatal(err)
		}
		h.work(t)
		r = h.find(t, r.ID)
	}
	if r.State == roster.Refused {
		if got := h.people(t); got != before {
			rt.Fatalf("a refused run wrote:\n%s\nbefore:\n%s", got, before)
		}
		return
	}
	if r.State != roster.Applied {
		rt.Fatalf("the run is %s", r.State)
	}
	if got := h.untouchable(t); got != untouchable {
		rt.Fatalf("what no import made has changed:\n%s\nbefore:\n%s", got, untouchable)
	}
	if u.mode == roster.Additive {
		h.checkNobodyLeft(t, rt, before, seated)
	}
	h.checkNewSeats(t, rt, before)
	h.checkRepeat(t, rt, u)
	if rapid.Bool().Draw(rt, "undo") {
		h.checkUndo(t, rt, r, before)
	}
}

// people shows who is a member and sits where, one a line, as "email first last status" and
// "class email".
func (h *house) people(t testing.TB) string {
	t.Helper()
	return h.text(t, `SELECT coalesce(string_agg(line, E'\n' ORDER BY line), '') FROM (
		SELECT concat_ws(' ', 'member', a.email, a.first_name, a.last_name, m.role, m.status) AS line
			FROM members m JOIN accounts a ON a.id = m.user_id WHERE m.organization_id = $1
		UNION ALL SELECT concat_ws(' ', 'seat', s.name, k.external_id, k.name, a.email) FROM roster_class_members c
			JOIN roster_classes k ON k.id = c.class_id JOIN roster_sources s ON s.id = k.source_id JOIN accounts a ON a.id = c.user_id WHERE c.active) AS lines`, h.org)
}

// untouchable is what an import may not change, with the version of each row.
func (h *house) untouchable(t testing.TB) string {
	t.Helper()
	return h.text(t, `SELECT coalesce(string_agg(line, E'\n' ORDER BY line), '') FROM (
		SELECT x.xmin || ' ' || x::text AS line FROM accounts x WHERE created_via <> 'roster' OR last_login IS NOT NULL
		UNION ALL SELECT x.xmin || ' ' || x::text FROM members x WHERE created_via <> 'roster' OR role <> 'member') AS lines`)
}

// seated are the places taken, one a line, as "class person": ids, since a file can change an address.
func (h *house) seated(t testing.TB) string {
	t.Helper()
	return h.text(t, `SELECT coalesce(string_agg(class_id || ' ' || user_id, E'\n'), '') FROM roster_class_members WHERE active`)
}

func (h *house) checkNobodyLeft(t *testing.T, rt *rapid.T, before, seated string) {
	after, sit := h.people(t), strings.Split(h.seated(t), "\n")
	for seat := range strings.SplitSeq(seated, "\n") {
		if seat != "" && !slices.Contains(sit, seat) {
			rt.Fatalf("an additive import took the place %q; after:\n%s\nbefore:\n%s", seat, after, before)
		}
	}
	if was, is := strings.Count(before, " active"), strings.Count(after, " active"); is < was {
		rt.Fatalf("an additive import left %d of %d active", is, was)
	}
}

// checkNewSeats: no import puts staff, or somebody who is no active member, into a class.
func (h *house) checkNewSeats(t *testing.T, rt *rapid.T, before string) {
	sits := func(people string) map[string]string { // by source, class and address; the address
		seats := map[string]string{}
		for line := range strings.SplitSeq(people, "\n") {
			if f := strings.Fields(line); len(f) > 0 && f[0] == "seat" {
				seats[f[1]+" "+f[2]+" "+f[len(f)-1]] = f[len(f)-1]
			}
		}
		return seats
	}
	after, had := h.people(t), sits(before)
	for seat, address := range sits(after) {
		student := func(line string) bool {
			return strings.HasPrefix(line, "member "+address+" ") && strings.HasSuffix(line, " member active")
		}
		if _, ok := had[seat]; !ok && !slices.ContainsFunc(strings.Split(after, "\n"), student) {
			rt.Fatalf("an import made the seat %s:\n%s\nbefore:\n%s", seat, after, before)
		}
	}
}

func (h *house) checkRepeat(t *testing.T, rt *rapid.T, u upload) {
	state := h.state(t)
	again := h.run(t, u)
	if again.State == roster.Held { // nobody is left, and that is worth a look each time
		if err := roster.Approve(t.Context(), h.DB, olive, h.org, again.ID, h.now); err != nil {
			t.Fatal(err)
		}
		h.work(t)
		again = h.find(t, again.ID)
	}
	if got := h.state(t); got != state {
		rt.Fatalf("the same file again (%s) wrote:\n%s\nbefore:\n%s", again.State, got, state)
	}
	if n := h.text(t, `SELECT concat_ws(' ', (SELECT count(*) FROM roster_changes WHERE run_id = $1), (SELECT count(*) FROM roster_class_changes WHERE run_id = $1))`, again.ID); n != "0 0" {
		rt.Fatalf("the same file again has %s changes", n)
	}
}

// checkUndo takes the run back: everybody is as before, and who came with it is inactive.
func (h *house) checkUndo(t *testing.T, rt *rapid.T, r roster.Run, before string) {
	// The repeat is newer, which an undoing otherwise minds.
	h.exec(t, `DELETE FROM roster_runs WHERE organization_id = $1 AND id > $2`, h.org, r.ID)
	h.undo(t, r.ID)
	after := strings.Split(h.people(t), "\n")
	for line := range strings.SplitSeq(before, "\n") {
		if line == "" {
			continue
		}
		i := slices.Index(after, line)
		if i < 0 {
			rt.Fatalf("after undoing there is no %q:\n%s\nbefore:\n%s", line, strings.Join(after, "\n"), before)
		}
		after = slices.Delete(after, i, i+1)
	}
	for _, line := range after {
		if line != "" && (!strings.HasPrefix(line, "member ") || !strings.HasSuffix(line, " inactive")) {
			rt.Fatalf("undoing left %q; before:\n%s", line, before)
		}
	}
}

// planOf shows what a run is to do and to tell.
func (h *house) planOf(t testing.TB, r roster.Run) string {
	t.Helper()
	var p planned
	changes, err := diff.Changes(t.Context(), h.DB, r.ID, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	p.changes = changes
	if p.classes, err = diff.NextClassChanges(t.Context(), h.DB, r.ID, 0, 1000); err != nil {
		t.Fatal(err)
	}
	if p.issues, _, err = diff.Issues(t.Context(), h.DB, r.ID, 0, 1000); err != nil {
		t.Fatal(err)
	}
	p.counts, p.reasons, p.fault = r.Counts, r.Reasons, r.FaultCode
	return p.String()
}

// planned is a plan as both planners make it.
type planned struct {
	changes []roster.Change
	classes []roster.ClassChange
	issues  []roster.Issue
	counts  roster.Counts
	reasons []roster.Reason
	fault   string
}

func (p planned) String() string {
	if p.fault != "" {
		return "refused: " + p.fault
	}
	var lines []string
	for _, c := range p.changes {
		lines = append(lines, fmt.Sprintf("%d:%d %s %b user %d id %q before %q", c.N, c.Line, c.Action, c.Effects, c.User, c.ExternalID, c.BeforeID))
	}
	classes := []string{}
	for _, c := range p.classes {
		classes = append(classes, fmt.Sprintf("class %s %q %q before %q: %q", c.Action, c.Class, c.Name, c.Before, c.Person))
	}
	slices.Sort(classes) // their order means nothing
	for _, i := range p.issues {
		classes = append(classes, fmt.Sprintf("issue %s:%d %q %s %s %s", i.File, i.Line, i.PersonExternalID, i.Code, i.Severity, i.Message))
	}
	return fmt.Sprintf("%+v %v\n%s\n%s", p.counts, p.reasons, strings.Join(lines, "\n"), strings.Join(classes, "\n"))
}
