package rosterimport_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// Only active students get a place in a class, also where people.csv does not name the person.
func TestSeatsAreForActiveStudentsAlone(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.run(t, people("t1,tea@institute.org,Tea,Cher,", "s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,",
		"s4,dee@institute.org,Dee,Dee,"))
	h.exec(t, `UPDATE members m SET updated_at = now(), role = CASE WHEN email LIKE 'tea%' THEN 'teacher' ELSE 'member' END,
		status = CASE WHEN email LIKE 'ben%' THEN 'inactive' ELSE 'active' END FROM accounts a WHERE organization_id = $1 AND a.id = user_id`, h.org)
	h.exec(t, `DELETE FROM members m USING accounts a WHERE organization_id = $1 AND a.id = user_id AND email LIKE 'dee%'`, h.org)
	seats := []string{"t1,c1,Class", "s1,c1,Class", "s2,c1,Class", "s3,c1,Class", "s4,c1,Class"}
	r := h.run(t, people("s3,cy@institute.org,Cy,Twombly,").with(seats...))
	want(t, r, roster.Applied, roster.Counts{Skip: 1, ClassesCreated: 1, SeatsAdded: 2})
	if got := h.issues(t, r); got != "enrollments:2 not_managed warning; enrollments:4 not_managed warning; enrollments:6 not_managed warning" {
		t.Errorf("issues: %s", got)
	}
	if got := h.seats(t); got != "Class:ana@institute.org; Class:cy@institute.org" {
		t.Errorf("seats: %s", got)
	}
	gone := h.run(t, people("s1,ana@institute.org,Ana,Lopez,", "s5,eve@institute.org,Eve,Arden,", "s6,fay@institute.org,Fay,Wray,").with("s1,c1,Class", "s3,c2,Two").snapshot())
	want(t, gone, roster.Applied, roster.Counts{Create: 2, Update: 1, Deactivate: 1, Skip: 1, ClassesCreated: 1, SeatsRemoved: 1})
	if got := h.issues(t, gone); !strings.HasSuffix(got, "enrollments:3 unknown_person error") {
		t.Errorf("issues: %s", got)
	}
}

// Who becomes staff, or is made inactive, while a run is under way gets no place from it.
func TestSeatsAreForWhoIsAnActiveStudentByThen(t *testing.T) {
	t.Parallel()
	h := open(t)
	run := roster.Run{Organization: h.org}
	h.run(t, people("t1,tea@institute.org,Tea,Cher,", "s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,").with("s1,c1,Class"))
	source, err := roster.FindSource(t.Context(), h.DB, h.org, roster.DefaultSource)
	if err != nil {
		t.Fatal(err)
	}
	run.Source, run.Stamp = source, h.now
	h.exec(t, `UPDATE members m SET role = CASE WHEN email LIKE 'tea%' THEN 'teacher' ELSE 'member' END,
		status = CASE WHEN email LIKE 'ben%' THEN 'inactive' ELSE 'active' END FROM accounts a WHERE organization_id = $1 AND a.id = user_id`, h.org)
	h.tx(t, func(tx *pg.Tx) error {
		return roster.SaveClasses(t.Context(), tx, run, []roster.ClassChange{{Action: roster.CreateClass, Class: "c2", Name: "Two"},
			{Action: roster.AddSeat, Class: "c2", Person: "t1"}, {Action: roster.AddSeat, Class: "c2", Person: "s1"}, {Action: roster.AddSeat, Class: "c2", Person: "s2"}})
	})
	if got := h.seats(t); got != "Class:ana@institute.org; Two:ana@institute.org" {
		t.Errorf("seats: %s", got)
	}
}

// Nor does an undoing give a place back to who has become staff since.
func TestUndoGivesNoPlaceToWhoIsStaffByNow(t *testing.T) {
	t.Parallel()
	h := open(t)
	two := people("t1,tea@institute.org,Tea,Cher,", "s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,")
	h.run(t, two.with("t1,c1,Class", "s1,c1,Class", "s2,c1,Class").snapshot())
	r := h.approve(t, h.run(t, two.with("s2,c1,Class").snapshot()))
	h.exec(t, `UPDATE members m SET role = 'teacher', updated_at = $2 FROM accounts a WHERE organization_id = $1 AND a.id = user_id AND email LIKE 'tea%'`, h.org, h.now)
	want(t, h.undo(t, r.ID), roster.Applied, roster.Counts{SeatsAdded: 1})
	if got := h.seats(t); got != "Class:ana@institute.org; Class:ben@institute.org" {
		t.Errorf("seats: %s", got)
	}
}

// The planner expects one member and one person of an organization and a source that are new since the
// last ANALYZE. Places are given, taken and given back by the keys of the rows all the same.
func TestSeatsOfANewOrganizationAreFoundByTheirKeys(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.snapshots(t)
	if _, err := roster.PutSource(t.Context(), h.DB, olive, h.org, "other", nil, h.now); err != nil {
		t.Fatal(err)
	}
	h.exec(t, `INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
		SELECT -o, -n, 'owner', 'active', 'api', now(), now() FROM generate_series(1, 100) AS o, generate_series(1, 300) AS n`)
	h.exec(t, `INSERT INTO roster_identities (source_id, organization_id, external_id, user_id, present)
		SELECT -o, -o, 's' || n, -n, true FROM generate_series(1, 100) AS o, generate_series(1, 300) AS n`)
	h.exec(t, `INSERT INTO roster_classes (organization_id, source_id, external_id, name, updated_at)
		SELECT s.organization_id, s.id, 'c' || n, 'Class', now() FROM roster_sources s, generate_series(1, 4000) AS n WHERE s.organization_id = $1 AND s.name = 'other'`, h.org)
	h.exec(t, `INSERT INTO roster_class_members (class_id, user_id, active, updated_at)
		SELECT -c, -n, true, now() FROM generate_series(1, 100) AS c, generate_series(1, 300) AS n`)
	h.exec(t, `ANALYZE members, roster_identities, roster_classes, roster_class_members`)
	const n = 400
	seats := make([]string, n)
	for i := range seats {
		seats[i] = fmt.Sprintf("s%d,c%d,Class", i, i%7)
	}
	file := people(many(n)...)
	var run roster.Run
	for _, step := range []struct {
		name string
		do   func() roster.Run
		want roster.Counts
	}{
		{"given", func() roster.Run { return h.run(t, file.with(seats...).snapshot()) },
			roster.Counts{Create: n, ClassesCreated: 7, SeatsAdded: n}},
		{"the same again", func() roster.Run { return h.run(t, file.with(seats...).snapshot()) }, roster.Counts{Skip: n}},
		{"taken", func() roster.Run { return h.approve(t, h.run(t, file.with(seats[0]).snapshot())) },
			roster.Counts{Skip: n, SeatsRemoved: n - 1}},
		{"given back", func() roster.Run { return h.undo(t, run.ID) }, roster.Counts{SeatsAdded: n - 1}},
		{"left", func() roster.Run { return h.approve(t, h.run(t, people(many(2)...).with(seats[:2]...).snapshot())) },
			roster.Counts{Update: n - 2, Deactivate: n - 2, Skip: 2, SeatsRemoved: n - 2}},
		{"came back", func() roster.Run { return h.undo(t, run.ID) }, roster.Counts{Update: n - 2, SeatsAdded: n - 2}},
	} {
		before := pgtest.RowsRead(t, h.DB)
		run = step.do()
		want(t, run, roster.Applied, step.want)
		for table, rows := range pgtest.RowsRead(t, h.DB) { // some ten a place, and hundreds where all of them were read for each
			rows -= before[table]
			check.True(t, "rows read of "+table, rows <= 25*n, "%s: %d rows of %s were read for %d places", step.name, rows, table, n)
		}
	}
}

// A school that changes its ids, and people found by their addresses again: places are those of the new ids, and who has
// lost one loses it at once, also where a row still has the old id.
func TestPlacesFollowNewIDs(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.run(t, people("s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,").
		with("s1,c1,Class", "s2,c1,Class", "s3,c1,Class").snapshot())
	rekeyed := people("n1,ana@institute.org,Ana,Lopez,", "n2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,")
	same := h.run(t, rekeyed.with("n1,c1,Class", "n2,c1,Class", "s3,c1,Class").snapshot())
	want(t, same, roster.Applied, roster.Counts{Update: 2, Skip: 1})
	back := h.run(t, people("s1,ana@institute.org,Ana,Lopez,", "n2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,").
		with("n1,c1,Class", "n2,c1,Class", "s3,c1,Class").snapshot())
	want(t, back, roster.Applied, roster.Counts{Update: 1, Skip: 2, SeatsRemoved: 1})
	if got := h.issues(t, back); !strings.HasSuffix(got, "enrollments:2 unknown_person error") {
		t.Errorf("issues: %s", got)
	}
	if got := h.seats(t); got != "Class:ben@institute.org; Class:cy@institute.org" {
		t.Errorf("seats: %s", got)
	}
	want(t, h.undo(t, back.ID), roster.Applied, roster.Counts{Update: 1, SeatsAdded: 1})
	if got := h.seats(t); got != "Class:ana@institute.org; Class:ben@institute.org; Class:cy@institute.org" {
		t.Errorf("seats: %s", got)
	}
}
