package rosterimport_test

import (
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/roster/rostertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

const (
	userHead  = "sourcedId,status,enabledUser,role,givenName,familyName,email\n"
	classHead = "sourcedId,status,title\n"
	placeHead = "classSourcedId,userSourcedId,role,status,endDate\n"
)

// oneRoster is an archive whose manifest says what its arguments do, as "users bulk"; the files come after it, as names and
// texts in turns.
func oneRoster(said string, files ...string) upload {
	manifest := rostertest.Manifest("1.2", strings.Split(said, ", ")...)
	return upload{file: rostertest.Archive(append([]string{"manifest.csv", manifest}, files...)...)}
}

func lines(rows ...string) string { return strings.Join(rows, "\n") + "\n" }

// school is a whole school.
func school(users, classes, places string) upload {
	return oneRoster("users bulk, classes bulk, enrollments bulk", "users.csv", userHead+users, "classes.csv", classHead+classes, "enrollments.csv", placeHead+places)
}

var (
	three   = lines("u1,,true,student,Ana,Lopez,ana@institute.org", "u2,,true,student,Ben,Okri,ben@institute.org", "u3,,true,student,Cy,Twombly,cy@institute.org")
	classes = lines("c1,,Math", "c2,,Art", "c3,,Music")
	places  = lines("c1,u1,student,,", "c1,u2,student,,", "c2,u3,student,,")
)

// A OneRoster archive does what the same people and places do in the format of our own, and again it does nothing.
// Reference: roster#oneroster.
func TestOneRosterIsPlannedAsOurOwnFormat(t *testing.T) {
	t.Parallel()
	ours, theirs := open(t), open(t)
	own := people("u1,ana@institute.org,Ana,Lopez,student", "u2,ben@institute.org,Ben,Okri,", "u3,cy@institute.org,Cy,Twombly,", "t1,tea@institute.org,Tea,Cher,teacher").
		with("u1,c1,Math", "u2,c1,Math", "u3,c2,Art")
	file := school(three+lines("t1,,true,teacher,Tea,Cher,tea@institute.org", "g1,,true,guardian,Gus,Lopez,gus@institute.org"), classes,
		places+lines("c1,t1,teacher,,", "c1,g1,guardian,,", "c9,u1,student,,"))
	ours.run(t, own)
	r := theirs.run(t, file)
	want(t, r, roster.Applied, roster.Counts{Create: 3, Skip: 1, ClassesCreated: 4, SeatsAdded: 4})
	check.Equal(t, "members", theirs.members(t), ours.members(t), "%s", theirs.members(t))
	check.Equal(t, "places", theirs.seats(t), "Art:cy@institute.org; Math:ana@institute.org; Math:ben@institute.org; c9:ana@institute.org", "%s", theirs.seats(t))
	check.Equal(t, "issues", theirs.issues(t, r), "users:5 teacher_reported warning; enrollments:5 teacher_reported warning; enrollments:7 unknown_class warning", "%s", theirs.issues(t, r))
	state := theirs.state(t)
	want(t, theirs.run(t, file), roster.Applied, roster.Counts{Skip: 4})
	check.Equal(t, "state", theirs.state(t), state, "a repeat wrote rows")
	want(t, theirs.undo(t, r.ID), roster.Applied, roster.Counts{Update: 3, Deactivate: 3, SeatsRemoved: 4})
}

// The rules for who and what leaves, by the mode of the import and by what the manifest says.
// Reference: roster#oneroster.
func TestWhatLeavesWithOneRoster(t *testing.T) {
	t.Parallel()
	const (
		all       = "ana@institute.org:Ana Lopez:active; ben@institute.org:Ben Okri:active; cy@institute.org:Cy Twombly:active"
		withoutCy = "ana@institute.org:Ana Lopez:active; ben@institute.org:Ben Okri:active; cy@institute.org:Cy Twombly:inactive"
		seats     = "Art:cy@institute.org; Math:ana@institute.org; Math:ben@institute.org"
	)
	two := strings.Replace(three, "u3,,true", "u3,tobedeleted,true", 1)
	delta := func(files ...string) upload {
		return oneRoster("users delta, roles delta, classes delta, enrollments delta", files...)
	}
	for name, c := range map[string]struct {
		file             upload
		members, seats   string // after it, as a snapshot
		issues           string // of it, as an addition
		counts, snapshot roster.Counts
	}{
		"a bulk file without one": {file: school(three[:strings.Index(three, "u3")], classes, places), members: withoutCy, seats: "Art:cy@institute.org; Math:ana@institute.org; Math:ben@institute.org",
			counts: roster.Counts{Skip: 2}, snapshot: roster.Counts{Skip: 2, Update: 1, Deactivate: 1}},
		"a bulk file that calls one deleted": {file: school(two, classes, places), members: withoutCy, seats: seats, issues: "users:4 withdrawn warning",
			counts: roster.Counts{Skip: 3}, snapshot: roster.Counts{Skip: 2, Update: 1, Deactivate: 1}},
		"a bulk file with one not enabled": {file: school(strings.Replace(three, "u3,,true", "u3,,false", 1), classes, places), members: withoutCy, seats: seats, issues: "users:4 withdrawn warning",
			counts: roster.Counts{Skip: 3}, snapshot: roster.Counts{Skip: 2, Update: 1, Deactivate: 1}},
		"a bulk file with a place that has ended": {file: school(three, classes, strings.Replace(places, "c2,u3,student,,", "c2,u3,student,,2026-11-20", 1)), members: all,
			seats: "Math:ana@institute.org; Math:ben@institute.org", counts: roster.Counts{Skip: 3}, snapshot: roster.Counts{Skip: 3, SeatsRemoved: 1}},
		"a bulk file with a class that is deleted": {file: school(three, strings.Replace(classes, "c2,,", "c2,tobedeleted,", 1), places), members: all,
			seats: "Math:ana@institute.org; Math:ben@institute.org", counts: roster.Counts{Skip: 3}, snapshot: roster.Counts{Skip: 3, SeatsRemoved: 1}},
		"a delta of one": {file: delta("users.csv", userHead+"u1,active,true,student,Ana,Lopez,ana@institute.org\n"), members: all, seats: seats,
			counts: roster.Counts{Skip: 1}, snapshot: roster.Counts{Skip: 1}},
		"an empty classes.csv and a class that is new": {file: oneRoster("users bulk, classes bulk, enrollments bulk", "users.csv", userHead+three, "classes.csv", "",
			"enrollments.csv", placeHead+places+"c9,u1,student,,\n"), members: all, seats: seats + "; c9:ana@institute.org",
			counts: roster.Counts{Skip: 3, ClassesCreated: 1, SeatsAdded: 1}, snapshot: roster.Counts{Skip: 3, ClassesCreated: 1, SeatsAdded: 1}},
		"a delta of nothing": {file: delta("users.csv", userHead, "enrollments.csv", placeHead), members: all, seats: seats},
		"a delta that calls one deleted": {file: delta("users.csv", userHead+"u3,tobedeleted,,,,,\n"), members: withoutCy, seats: seats, issues: "users:2 withdrawn warning",
			counts: roster.Counts{Skip: 1}, snapshot: roster.Counts{Update: 1, Deactivate: 1}},
		"a delta that calls nobody known deleted": {file: delta("users.csv", userHead+"u77,tobedeleted,,,,,\n"), members: all, seats: seats, issues: "users:2 withdrawn warning",
			counts: roster.Counts{Skip: 1}},
		"a delta that calls a place deleted": {file: delta("enrollments.csv", placeHead+"c1,u2,student,tobedeleted,\n"), members: all, seats: "Art:cy@institute.org; Math:ana@institute.org",
			issues: "enrollments:2 withdrawn warning", snapshot: roster.Counts{SeatsRemoved: 1}},
		"a delta that moves one": {file: delta("enrollments.csv", placeHead+"c1,u2,student,tobedeleted,\nc2,u2,student,active,\nc1,u2,student,active,\n"), members: all,
			seats: "Art:ben@institute.org; " + seats, issues: "enrollments:2 withdrawn warning", counts: roster.Counts{SeatsAdded: 1}, snapshot: roster.Counts{SeatsAdded: 1}},
		"a delta that names a class for the second time": {file: delta("classes.csv", classHead+"c1,active,Algebra\nc4,active,Latin\n"), members: all,
			seats:  "Algebra:ana@institute.org; Algebra:ben@institute.org; Art:cy@institute.org",
			counts: roster.Counts{ClassesCreated: 1, ClassesRenamed: 1}, snapshot: roster.Counts{ClassesCreated: 1, ClassesRenamed: 1}},
		"a delta of a name, without a role": {file: delta("users.csv", "sourcedId,status,givenName,familyName,email\nu1,active,Anna,Lopez,ana@institute.org\nu9,active,New,One,new@institute.org\n"),
			members: strings.Replace(all, "Ana ", "Anna ", 1), seats: seats, issues: "users:3 unknown_role error",
			counts: roster.Counts{Update: 1, Skip: 1}, snapshot: roster.Counts{Update: 1, Skip: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			additive := open(t)
			additive.run(t, school(three, classes, places))
			before := additive.members(t)
			r := additive.run(t, c.file)
			want(t, r, roster.Applied, c.counts)
			check.Equal(t, "issues", additive.issues(t, r), c.issues, "%s", additive.issues(t, r))
			if c.counts.Update == 0 {
				check.Equal(t, "members after an addition", additive.members(t), before, "%s", additive.members(t))
			}

			snapshots := open(t)
			snapshots.snapshots(t)
			snapshots.run(t, school(three, classes, places).snapshot())
			r = snapshots.run(t, c.file.snapshot())
			want(t, r, roster.Applied, c.snapshot)
			check.Equal(t, "members", snapshots.members(t), c.members, "%s", snapshots.members(t))
			check.Equal(t, "places", snapshots.seats(t), c.seats, "%s", snapshots.seats(t))
			if r.Counts != (roster.Counts{Skip: r.Skip}) {
				snapshots.undo(t, r.ID)
				check.Equal(t, "places after the undoing", strings.ReplaceAll(snapshots.seats(t), "Algebra", "Math"), seats, "%s", snapshots.seats(t))
			}
		})
	}
}

// A class has the dates of its terms. They are planned, shown, carried out and taken back as names are, and do nothing: a term
// that is over takes no place away.
// Reference: roster#oneroster.
func TestClassesHaveTheDatesOfTheirTerms(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.snapshots(t)
	dates := func() string {
		return h.text(t, `SELECT string_agg(concat_ws(' ', external_id, name, start_date, end_date), '; ' ORDER BY external_id) FROM roster_classes`)
	}
	terms := func(fall, spring string, classes ...string) upload {
		return oneRoster("users bulk, classes bulk, enrollments bulk, academicSessions bulk", "users.csv", userHead+three, "classes.csv", "sourcedId,title,termSourcedIds\n"+lines(classes...),
			"enrollments.csv", placeHead+places, "academicSessions.csv", "sourcedId,startDate,endDate\n"+lines(fall, spring)).snapshot()
	}
	const fall, spring = "t1,2025-08-01,2025-12-20", "t2,2026-01-08,2026-06-30" // long over
	first := terms(fall, spring, "c1,Math,t1", `c2,Art,"t2,t1"`, "c3,Music,")
	want(t, h.run(t, first), roster.Applied, roster.Counts{Create: 3, ClassesCreated: 3, SeatsAdded: 3})
	const begun = "c1 Math 2025-08-01 2025-12-20; c2 Art 2025-08-01 2026-06-30; c3 Music"
	check.Equal(t, "dates", dates(), begun, "%s", dates())
	state := h.state(t)
	want(t, h.run(t, first), roster.Applied, roster.Counts{Skip: 3})
	check.Equal(t, "state", h.state(t), state, "a repeat wrote rows")

	next := terms("t1,2026-08-01,2026-12-20", spring, "c1,Algebra,t1", "c2,Art,t2", "c3,Music,t2", "c4,Latin,t9")
	preview := next
	preview.dryRun = true
	counts := roster.Counts{Skip: 3, ClassesCreated: 1, ClassesRenamed: 1, ClassesRescheduled: 3}
	want(t, h.run(t, preview), roster.Previewed, counts)
	check.Equal(t, "dates after a preview", dates(), begun, "%s", dates())
	r := h.run(t, next)
	want(t, r, roster.Applied, counts)
	check.Equal(t, "issues", h.issues(t, r), "classes:5 unknown_session warning", "%s", h.issues(t, r))
	check.Equal(t, "dates", dates(), "c1 Algebra 2026-08-01 2026-12-20; c2 Art 2026-01-08 2026-06-30; c3 Music 2026-01-08 2026-06-30; c4 Latin", "%s", dates())
	check.Equal(t, "changes", h.text(t, `SELECT string_agg(concat_ws(' ', action, class_external_id, coalesce(before_start_date::text, '-'), coalesce(before_end_date::text, '-'), '>', start_date, end_date), '; ' ORDER BY n)
		FROM roster_class_changes WHERE action = 'reschedule' AND run_id = $1`, r.ID), "reschedule c1 2025-08-01 2025-12-20 > 2026-08-01 2026-12-20; "+
		"reschedule c2 2025-08-01 2026-06-30 > 2026-01-08 2026-06-30; reschedule c3 - - > 2026-01-08 2026-06-30", "")
	check.Equal(t, "places", h.seats(t), "Algebra:ana@institute.org; Algebra:ben@institute.org; Art:cy@institute.org", "%s", h.seats(t))

	// A file that says nothing of terms, as one of our own format, changes no dates.
	silent := school(three, lines("c1,,Algebra", "c2,,Art", "c3,,Music", "c4,,Latin"), places).snapshot()
	want(t, h.run(t, silent), roster.Applied, roster.Counts{Skip: 3})
	want(t, h.undo(t, r.ID), roster.Applied, roster.Counts{ClassesRenamed: 1, ClassesRescheduled: 3})
	check.Equal(t, "dates after the undoing", dates(), begun+"; c4 Latin", "%s", dates())
}

// A bulk file has the guards of a snapshot, and a delta those that a delta can have.
// Reference: roster#oneroster.
func TestNoOneRosterFileEmptiesASchool(t *testing.T) {
	t.Parallel()
	gone := strings.NewReplacer(",,true", ",tobedeleted,true")
	over := strings.ReplaceAll(places, "student,,", "student,,2026-06-30")
	for name, c := range map[string]struct {
		file    upload
		reasons string
	}{
		"header lines alone":               {school("", classes, places), "empty_file implausible_share"},
		"guardians alone":                  {school("g1,,true,guardian,Gus,Lopez,gus@institute.org\n", classes, places), "empty_file implausible_share"},
		"an empty users.csv":               {oneRoster("users bulk, enrollments bulk", "users.csv", "", "enrollments.csv", placeHead+places), "empty_file implausible_share missing_section"},
		"everybody deleted":                {school(gone.Replace(three), classes, places), "implausible_share"},
		"nobody enabled":                   {school(strings.ReplaceAll(three, "true", "false"), classes, places), "implausible_share"},
		"the file of last year":            {school(three, classes, over), "implausible_unenrolments"},
		"no enrollments.csv":               {oneRoster("users bulk", "users.csv", userHead+three), "missing_section"},
		"an empty enrollments.csv":         {oneRoster("users bulk, enrollments bulk", "users.csv", userHead+three, "enrollments.csv", ""), "missing_section"},
		"a delta that deletes everybody":   {oneRoster("users delta", "users.csv", userHead+gone.Replace(three)), "implausible_share"},
		"a delta that ends every place":    {oneRoster("users absent, enrollments delta", "enrollments.csv", placeHead+strings.ReplaceAll(places, "student,,", "student,tobedeleted,")), "implausible_unenrolments"},
		"a bulk users.csv with a lost row": {school(three[:strings.Index(three, "u3")]+",,x\n", classes, places), "unreadable_rows"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.snapshots(t)
			h.run(t, school(three, classes, places).snapshot())
			members, seats := h.members(t), h.seats(t)
			r := h.run(t, c.file.snapshot())
			check.Equal(t, "state", r.State, roster.Held, "%s %s", r.State, r.Fault)
			var reasons []string
			for _, reason := range r.Reasons {
				reasons = append(reasons, reason.Code)
				check.False(t, "a reason names the file of the other format", strings.Contains(reason.Text, roster.PeopleFile), "%s", reason.Text)
			}
			check.Equal(t, "reasons", strings.Join(reasons, " "), c.reasons, "%v", r.Reasons)
			check.Equal(t, "members", h.members(t), members, "%s", h.members(t))
			check.Equal(t, "places", h.seats(t), seats, "%s", h.seats(t))
			want(t, h.approve(t, r), roster.Applied, r.Counts)
		})
	}
	t.Run("a class place ends on the day after its last", func(t *testing.T) {
		t.Parallel()
		h := open(t)
		h.snapshots(t)
		file := school(three, classes, strings.Replace(places, "c2,u3,student,,", "c2,u3,student,,2026-11-21", 1)).snapshot()
		want(t, h.run(t, file), roster.Applied, roster.Counts{Create: 3, ClassesCreated: 3, SeatsAdded: 3})
		h.now = h.now.Add(24 * time.Hour)
		want(t, h.run(t, file), roster.Applied, roster.Counts{Skip: 3, SeatsRemoved: 1})
	})
}

// What a run or its undoing says of a row is said of the file that was sent.
// Reference: roster#oneroster.
func TestIssuesNameTheFileThatWasSent(t *testing.T) {
	t.Parallel()
	h := open(t)
	none := h.run(t, oneRoster("users bulk", "users.csv", userHead+"u1,,true,student,Ana,Lopez,\n"))
	check.Equal(t, "fault", none.Fault, "no usable people in 1 rows of users.csv; line 2: email is missing", "%s", none.Fault)
	r := h.run(t, school(three+lines("u4,,true,student,Dee,Dee,ana@institute.org", ",,true,student,No,Id,no@institute.org"), classes+"c1,,Maths\n", places+"c1,u9,student,,\n"))
	check.Equal(t, "issues", h.issues(t, r), "users:6 missing_external_id error; users:2 duplicate_email error; users:5 duplicate_email error; "+
		"classes:2 class_name_conflict warning; enrollments:5 unknown_person error", "%s", h.issues(t, r))
	h.exec(t, `UPDATE accounts SET last_login = now() + interval '1 year' WHERE email LIKE 'ben@%'`)
	undone := h.undo(t, r.ID)
	check.Equal(t, "issues of the undoing", h.issues(t, undone), "users:3 not_managed warning", "%s", h.issues(t, undone))
	held := h.run(t, oneRoster("users partly", "users.csv", userHead+three))
	check.Equal(t, "state", held.State, roster.Refused, "%s", held.State)
	check.Equal(t, "code", held.FaultCode, "bad_manifest", "%s", fault.New(fault.Invalid, held.FaultCode, "%s", held.Fault))
}
