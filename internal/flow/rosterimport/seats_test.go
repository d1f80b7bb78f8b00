package rosterimport_test

import (
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/pg"
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
