package rosterimport_test

import "testing"

// Whoever deletes by hand what rosters refer to takes along what refers to it.
func TestWhatIsDeletedTakesItsRosterAlong(t *testing.T) {
	t.Parallel()
	h := open(t)
	left := func(want string) {
		t.Helper()
		if got := h.text(t, `SELECT concat_ws(' ', (SELECT count(*) FROM members), (SELECT count(*) FROM roster_identities), (SELECT count(*) FROM roster_class_members),
			(SELECT count(*) FROM directory))`); got != want {
			t.Fatalf("members, external ids, places and entries of the directory: %s, want %s", got, want)
		}
	}
	h.run(t, people("s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,").with("s1,c1,One", "s2,c1,One", "s2,c2,Two"))
	left("2 2 3 2")
	h.exec(t, `DELETE FROM roster_classes WHERE external_id = 'c2'`)
	left("2 2 2 2")
	h.exec(t, `DELETE FROM accounts WHERE email = 'ana@institute.org'`)
	left("1 1 1 1")
	h.exec(t, `DELETE FROM roster_sources`)
	left("1 0 0 1")
	h.exec(t, `DELETE FROM organizations`)
	left("0 0 0 0")
}
