package rosterimport_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Reference: roster#files.
func TestAFileMakesPeopleAndClassesAndARepeatMakesNone(t *testing.T) {
	t.Parallel()
	h := open(t)
	file := people("s1,Ana@Institute.org,Ana,Lopez,student", "s2,ben@institute.org,Ben,Okri,", "t1,tea@institute.org,Tea,Cher,teacher").
		with("s1,c1,Class One", "s2,c1,Class One", "s1,c2,Class Two", "t1,c1,Class One", "s9,c1,Class One")
	r := h.run(t, file)
	want(t, r, roster.Applied, roster.Counts{Create: 2, Skip: 1, ClassesCreated: 2, SeatsAdded: 3})
	if got := h.members(t); got != "ana@institute.org:Ana Lopez:active; ben@institute.org:Ben Okri:active" {
		t.Errorf("members: %s", got)
	}
	if got := h.seats(t); got != "Class One:ana@institute.org; Class One:ben@institute.org; Class Two:ana@institute.org" {
		t.Errorf("seats: %s", got)
	}
	if got := h.issues(t, r); got != "people:4 teacher_reported warning; enrollments:5 teacher_reported warning; enrollments:6 unknown_person error" {
		t.Errorf("issues: %s", got)
	}
	state := h.state(t)
	again := h.run(t, file)
	want(t, again, roster.Applied, roster.Counts{Skip: 3})
	if n := h.text(t, `SELECT count(*)::text FROM roster_changes WHERE run_id = $1`, again.ID); n != "0" {
		t.Errorf("a repeat has %s changes", n)
	}
	if got := h.state(t); got != state {
		t.Errorf("a repeat wrote rows:\n%s\nbefore:\n%s", got, state)
	}
}

// state shows every version of every row that an import writes: a row that is written
// again, even with the same values, has another xmin.
func (h *house) state(t testing.TB) string {
	t.Helper()
	var lines []string
	for _, table := range []string{"accounts", "members", "roster_identities", "roster_classes", "roster_class_members"} {
		lines = append(lines, table+": "+h.text(t, `SELECT coalesce(string_agg(x.xmin::text || ' ' || x::text, E'\n' ORDER BY x.ctid), '') FROM `+table+` x`))
	}
	return strings.Join(lines, "\n")
}

type issueCase struct {
	file    upload
	issues  string
	members string // besides Ana and Ben; "" for none
	before  string // a statement between the two files; $1 is the organization
}

// Each issue code, and what becomes of its row.
// Reference: roster#issues.
func TestIssues(t *testing.T) {
	t.Parallel()
	first := people("s1,ana@institute.org,Ana,Lopez,student", "s2,ben@institute.org,Ben,Okri,student").with("s1,c1,One")
	cases := map[string]issueCase{
		"missing_external_id":    {file: people(",new@institute.org,New,One,", "s1,ana@institute.org,Ana,Lopez,"), issues: "people:2 missing_external_id error"},
		"missing_email":          {file: people("s3,,New,One,", "s1,ana@institute.org,Ana,Lopez,"), issues: "people:2 missing_email error"},
		"invalid_email":          {file: people("s3,new@,New,One,", "s1,ana@institute.org,Ana,Lopez,"), issues: "people:2 invalid_email error"},
		"duplicate, identical":   {file: people("s3,new@institute.org,New,One,", "s3,new@institute.org,New,One,"), issues: "people:3 duplicate_external_id warning", members: "new@institute.org:New One:active"},
		"duplicate, conflicting": {file: people("s3,new@institute.org,New,One,", "s3,other@institute.org,New,One,"), issues: "people:2 duplicate_external_id error; people:3 duplicate_external_id error"},
		"duplicate_email":        {file: people("s3,new@institute.org,New,One,", "s4,NEW@institute.org,New,Two,"), issues: "people:2 duplicate_email error; people:3 duplicate_email error"},
		"email_changed, kept": {file: people("s1,ana2@institute.org,Ana,Lopez,"), issues: "people:2 email_changed warning",
			before: `UPDATE accounts SET last_login = now() WHERE email LIKE 'ana@%' AND $1 > 0`},
		"external_id_reassigned, two people": {file: people("s1,ben@institute.org,Ana,Lopez,"), issues: "people:2 external_id_reassigned error"},
		"external_id_reassigned, new person": {file: people("s1,new@institute.org,New,One,"), issues: "people:2 external_id_reassigned error"},
		"external_id_reassigned, swapped":    {file: people("s1,ben@institute.org,Ana,Lopez,", "s2,ana@institute.org,Ben,Okri,"), issues: "people:2 external_id_reassigned error; people:3 external_id_reassigned error"},
		"external_id_reassigned, new id":     {file: people("s9,ana@institute.org,Ana,Lopez,"), issues: "people:2 external_id_reassigned warning"},
		"external_id_reassigned, both ids":   {file: people("s9,ana@institute.org,Ana,Lopez,", "s1,free@institute.org,Ana,Lopez,"), issues: "people:2 external_id_reassigned error; people:3 external_id_reassigned error"},
		"teacher_reported":                   {file: people("t1,tea@institute.org,Tea,Cher,Teacher").with("t1,c1,One"), issues: "people:2 teacher_reported warning; enrollments:2 teacher_reported warning"},
		"admin_role_not_granted":             {file: people("a1,boss@institute.org,Big,Boss,owner"), issues: "people:2 admin_role_not_granted warning"},
		"unknown_role":                       {file: people("x1,x@institute.org,X,Y,janitor"), issues: "people:2 unknown_role error"},
		"not_managed, staff": {file: people("s1,ana@institute.org,Ana,Lopez,"), issues: "people:2 not_managed warning",
			before: `UPDATE members SET role = 'owner', updated_at = now() WHERE organization_id = $1 AND user_id = (SELECT id FROM accounts WHERE email LIKE 'ana@%')`},
		"not_managed, name kept": {file: people("s1,ana@institute.org,Anna,Lopez,"), issues: "people:2 not_managed info",
			before: `UPDATE accounts SET last_login = now() WHERE email LIKE 'ana@%' AND $1 > 0`},
		"unknown_person":      {file: people("s1,ana@institute.org,Ana,Lopez,").with("s77,c1,One"), issues: "enrollments:2 unknown_person error"},
		"class_name_conflict": {file: people("s1,ana@institute.org,Ana,Lopez,").with("s1,c7,Seven", "s2,c7,Sieben"), issues: "enrollments:2 class_name_conflict warning"},
		"bad_row":             {file: people("s3,new@institute.org,New,One,student,more", "s1,ana@institute.org,Ana,Lopez,"), issues: "people:2 bad_row error"},
		"suspicious_value":    {file: people("s3,new@institute.org,=1+1,One,"), issues: "people:2 suspicious_value warning", members: "new@institute.org:=1+1 One:active"},
		"encoding_assumed":    {file: people("s3,new@institute.org,Jos\xe9,One,"), issues: "people:2 encoding_assumed warning", members: "new@institute.org:José One:active"},
	}
	for _, code := range []roster.Code{roster.MissingExternalID, roster.MissingEmail, roster.InvalidEmail, roster.DuplicateExternalID, roster.DuplicateEmail,
		roster.EmailChanged, roster.ExternalIDReassigned, roster.TeacherReported, roster.AdminRoleNotGranted, roster.UnknownRole, roster.NotManaged,
		roster.UnknownPerson, roster.ClassNameConflict, roster.BadRow, roster.SuspiciousValue, roster.EncodingAssumed} {
		if !slices.ContainsFunc(slices.Collect(maps.Values(cases)), func(c issueCase) bool { return strings.Contains(c.issues, " "+string(code)+" ") }) {
			t.Errorf("no case tells of %s", code)
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			want(t, h.run(t, first), roster.Applied, roster.Counts{Create: 2, ClassesCreated: 1, SeatsAdded: 1})
			if c.before != "" {
				h.exec(t, c.before, h.org)
			}
			r := h.run(t, c.file)
			if check.Equal(t, "r.State", r.State, roster.Applied, "%s (%s): %s", r.State, r.Fault, h.issues(t, r)) {
				check.Equal(t, "issues", h.issues(t, r), c.issues, "%s (%s): %s", r.State, r.Fault, h.issues(t, r))
			}
			all := "ana@institute.org:Ana Lopez:active; ben@institute.org:Ben Okri:active"
			if c.members != "" {
				all += "; " + c.members
			}
			if got := h.members(t); got != all {
				t.Errorf("members: %s", got)
			}
		})
	}
}

func TestChangesFollowTheFileWhereTheAccountIsTheImports(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.run(t, people("s1,ana@institute.org,Ana,Lopez,student"))
	r := h.run(t, people("s1,ana.lopez@institute.org,Ana,Lopez-Diaz,student"))
	want(t, r, roster.Applied, roster.Counts{Update: 1})
	if got := h.issues(t, r); got != "people:2 email_changed info" {
		t.Errorf("issues: %s", got)
	}
	if got := h.members(t); got != "ana.lopez@institute.org:Ana Lopez-Diaz:active" {
		t.Errorf("members: %s", got)
	}
	check.Equal(t, "accounts of the roster without a password", h.text(t,
		`SELECT count(*)::text FROM accounts WHERE created_via = 'roster' AND password_hash IS NULL AND NOT own_password`), "1", "after a change")
	check.Equal(t, "number of mails", h.text(t, `SELECT count(*)::text FROM emails`), "0", "after a change")
}

// Reference: students#membership.
func TestLeaversBecomeInactiveAndComeBackOnTheSameAccount(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.snapshots(t)
	both := people("s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,").snapshot()
	h.run(t, both)
	user := h.text(t, `SELECT id::text FROM accounts WHERE email = 'ben@institute.org'`)
	r := h.run(t, people("s1,ana@institute.org,Ana,Lopez,", "s3,cy@institute.org,Cy,Twombly,").snapshot())
	want(t, r, roster.Applied, roster.Counts{Skip: 2, Update: 1, Deactivate: 1})
	if got := h.members(t); !strings.Contains(got, "ben@institute.org:Ben Okri:inactive") {
		t.Errorf("members: %s", got)
	}
	want(t, h.run(t, both), roster.Applied, roster.Counts{Skip: 2, Update: 1})
	check.Equal(t, "status", h.text(t, `SELECT status FROM members WHERE user_id = $1::bigint`, user), "active", "after coming back")
}

// snapshots lets the default source send them.
func (h *house) snapshots(t testing.TB) {
	t.Helper()
	if _, err := roster.PutSource(t.Context(), h.DB, olive, h.org, roster.DefaultSource, func(s *roster.Settings) { s.AuthoritativeEnabled = true }, h.now); err != nil {
		t.Fatal(err)
	}
}

func TestWhatTheImportDidNotMakeItLeavesAlone(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.exec(t, `WITH a AS (INSERT INTO accounts (email, username, first_name, last_name, created_via, created_at, updated_at)
			VALUES ('ana@institute.org', 'ana', 'Ana', 'Lopez', 'api', now(), now()), ('gone@institute.org', 'gone', 'Gone', 'Girl', 'api', now(), now()) RETURNING id, email)
		INSERT INTO members (organization_id, user_id, role, status, created_via, joined_at, updated_at)
		SELECT $1, id, 'member', CASE WHEN email LIKE 'gone%' THEN 'inactive' ELSE 'active' END, 'api', now(), now() FROM a`, h.org)
	r := h.run(t, people("s1,ana@institute.org,Other,Name,", "s2,gone@institute.org,Gone,Girl,", "s3,cy@institute.org,Cy,Twombly,").snapshot())
	want(t, r, roster.Applied, roster.Counts{Create: 1, Update: 1, Skip: 1})
	if got := h.issues(t, r); got != "people:2 not_managed info; people:3 not_managed warning" {
		t.Errorf("issues: %s", got)
	}
	gone := h.run(t, people("s3,cy@institute.org,Cy,Twombly,").snapshot())
	want(t, gone, roster.Applied, roster.Counts{Skip: 1})
	if got := h.members(t); got != "ana@institute.org:Ana Lopez:active; cy@institute.org:Cy Twombly:active; gone@institute.org:Gone Girl:inactive" {
		t.Errorf("members: %s", got)
	}
	// Staff end a membership that an import made: it stays ended.
	h.exec(t, `UPDATE members SET status = 'inactive', updated_at = now() WHERE organization_id = $1 AND status = 'active' AND created_via = 'roster'`, h.org)
	ended := h.run(t, people("s3,cy@institute.org,Cy,Twombly,"))
	want(t, ended, roster.Applied, roster.Counts{Skip: 1})
	if got := h.issues(t, ended); got != "people:2 not_managed warning" {
		t.Errorf("issues: %s", got)
	}
}

func TestAnotherSourceKeepsAPersonActive(t *testing.T) {
	t.Parallel()
	h := open(t)
	three := []string{"s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,"}
	a := people(three...).snapshot()
	h.run(t, a)
	other := people("x1,ben@institute.org,Ben,Okri,")
	other.source = "other"
	want(t, h.run(t, other), roster.Applied, roster.Counts{Update: 1})
	want(t, h.run(t, people(three[0], three[2]).snapshot()), roster.Applied, roster.Counts{Skip: 2})
	if got := h.members(t); strings.Contains(got, "inactive") {
		t.Errorf("members: %s", got)
	}
}

// Each guard, and that nothing is written when it holds a run.
// Reference: roster#guards.
func TestGuards(t *testing.T) {
	t.Parallel()
	var full []string
	for i := range 60 {
		full = append(full, fmt.Sprintf("s%d,s%d@institute.org,Given,Family%d,", i, i, i))
	}
	var places []string
	for i := range 50 {
		places = append(places, fmt.Sprintf("s%d,c%d,Class", i, i%5))
	}
	all := people(full...).with("s0,c1,One", "s1,c1,One").snapshot()
	inClasses := people(full...).with(places...).snapshot()
	for name, c := range map[string]struct {
		file  upload
		codes string
		state roster.State
		first *upload // before it; nil: all
	}{
		"more than half of the places": {file: people(full...).with(places[:24]...).snapshot(), codes: "implausible_unenrolments", state: roster.Held, first: &inClasses},
		"six of fifty places":          {file: people(full...).with(places[6:]...).snapshot(), codes: "implausible_unenrolments", state: roster.Held, first: &inClasses},
		"a tenth of the places":        {file: people(full...).with(places[5:]...).snapshot(), state: roster.Applied, first: &inClasses},
		"places of an additive import": {file: people(full...).with(places[:1]...), state: roster.Applied, first: &inClasses},
		"every place in another class": {file: people(full...).with("s0,c9,Nine", "s1,c9,Nine").snapshot(), codes: "implausible_unenrolments", state: roster.Held},
		"more than half":               {file: people(full[:29]...).with("s0,c1,One").snapshot(), codes: "implausible_share", state: roster.Held},
		"five and more than a tenth":   {file: people(full[:53]...).with("s0,c1,One").snapshot(), codes: "implausible_share", state: roster.Held},
		"a tenth":                      {file: people(full[:54]...).with("s0,c1,One").snapshot(), codes: "", state: roster.Applied},
		"a header with no rows":        {file: people().with("s0,c1,One").snapshot(), codes: "empty_file implausible_share", state: roster.Held},
		"no file at all":               {file: upload{mode: roster.Snapshot}, codes: "empty_file implausible_share missing_section", state: roster.Held},
		"enrollments.csv is missing":   {file: people(full...).snapshot(), codes: "missing_section", state: roster.Held},
		"enrollments.csv has no rows":  {file: people(full...).with().snapshot(), codes: "missing_section", state: roster.Held},
		"rows that cannot be read":     {file: people(append([]string{`"s0"x,"y`}, full[1:]...)...).with("s1,c1,One").snapshot(), codes: "unreadable_rows", state: roster.Held},
		"places that cannot be read":   {file: people(full...).with("s0,c1,One", "s1,,One").snapshot(), codes: "unreadable_rows", state: roster.Held},
		"a place that nobody loses":    {file: people(full...).with("s0,c1,One", "s1,c1,One", "s2,,One").snapshot(), codes: "", state: roster.Applied},
		"known ids of invalid rows":    {file: people(append([]string{"s0,,,,", "s1,no address,,,", "s2,s2@institute.org,,,,,,x"}, full[3:]...)...).with("s0,c1,One").snapshot(), codes: "", state: roster.Applied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			if c.first == nil {
				c.first = &all
			}
			if r := h.run(t, *c.first); r.State != roster.Applied {
				t.Fatal(r.State)
			}
			state := h.state(t)
			r := h.run(t, c.file)
			var codes []string
			for _, reason := range r.Reasons {
				codes = append(codes, reason.Code)
			}
			check.Equal(check.Now(t), "state", r.State, c.state, "for %q (%s)", codes, r.Fault)
			check.Equal(check.Now(t), "reasons", strings.Join(codes, " "), c.codes, "(%s)", r.Fault)
			if c.state == roster.Held {
				check.Equal(t, "the rows", h.state(t), state, "after a held run")
			}
		})
	}
}

func TestASnapshotWithADamagedHeaderIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.run(t, people("s1,ana@institute.org,Ana,Lopez,").snapshot())
	for _, header := range []string{"person_external_i,email", "person_external_id;e-mail", "s1,ana@institute.org", "\x00\x01", "person_external_id,email,email", `"person_external_id,email`} {
		r := h.run(t, upload{file: []byte(header + "\nx1,x@institute.org\n"), mode: roster.Snapshot})
		if check.Equal(t, "r.State", r.State, roster.Refused, "%q: %s %s", header, r.State, r.Fault) {
			check.True(t, "there is a fault", r.Fault != "", "%q: %s %s", header, r.State, r.Fault)
		}
		if got := h.members(t); got != "ana@institute.org:Ana Lopez:active" {
			t.Fatalf("%q: members: %s", header, got)
		}
	}
}

func TestAnApprovedRunIsPlannedAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	rows := []string{"s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,"}
	h.run(t, people(rows...).snapshot())
	r := h.run(t, people(rows[0]).snapshot())
	want(t, r, roster.Held, roster.Counts{Skip: 1, Update: 2, Deactivate: 2})
	h.exec(t, `UPDATE members SET created_via = 'api' WHERE organization_id = $1 AND user_id = (SELECT id FROM accounts WHERE email LIKE 'ben@%')`, h.org)
	if err := roster.Approve(t.Context(), h.DB, olive, h.org, r.ID, h.now); err != nil {
		t.Fatal(err)
	}
	h.work(t)
	want(t, h.find(t, r.ID), roster.Applied, roster.Counts{Skip: 1, Update: 1, Deactivate: 1})

	// What would now deactivate more people than were shown is held again.
	more := h.run(t, people("s9,new@institute.org,New,One,").snapshot())
	want(t, more, roster.Held, roster.Counts{Create: 1, Update: 1, Deactivate: 1})
	h.exec(t, `UPDATE members SET status = 'active', created_via = 'roster' WHERE organization_id = $1`, h.org)
	h.exec(t, `UPDATE roster_identities SET present = true, left_at = NULL WHERE organization_id = $1`, h.org)
	if err := roster.Approve(t.Context(), h.DB, olive, h.org, more.ID, h.now); err != nil {
		t.Fatal(err)
	}
	h.work(t)
	if again := h.find(t, more.ID); check.Equal(t, "again.State", again.State, roster.Held, "%s %v", again.State, again.Reasons) {
		check.Equal(t, "the first reason's code", again.Reasons[0].Code, "changed_since_review", "%s %v", again.State, again.Reasons)
	}
}

// A held run ends by itself once a newer one of its source was applied, or nobody has decided for long.
func TestHeldRunsEndByThemselves(t *testing.T) {
	t.Parallel()
	h := open(t)
	rows := []string{"s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,"}
	other := func(u upload) upload { u.source = "other"; return u }
	h.run(t, people(rows...).snapshot())
	h.run(t, other(people("o1,oda@institute.org,Oda,One,")).snapshot())
	outdated, kept := h.run(t, people(rows[0]).snapshot()), h.run(t, other(people()).snapshot())
	sweep := func(states ...roster.State) {
		t.Helper()
		check.NoError(t, roster.EndStale(t.Context(), h.DB, h.now.AddDate(0, 0, -roster.HeldDays), h.now), "the sweep")
		for i, r := range []roster.Run{outdated, kept} {
			check.Equal(t, "the state", h.find(t, r.ID).State, states[i], "run %d", i)
		}
	}
	sweep(roster.Held, roster.Held)
	preview := people(rows...)
	preview.dryRun = true
	h.run(t, preview)
	sweep(roster.Held, roster.Held)
	h.run(t, people(rows...).snapshot())
	sweep(roster.Discarded, roster.Held)
	h.now = h.now.AddDate(0, 0, roster.HeldDays)
	sweep(roster.Discarded, roster.Discarded)
	check.Equal(t, "who decided", h.find(t, kept.ID).DecidedBy, audit.Scheduled.Name, "")
	check.Equal(t, "what is kept of the files", h.text(t, `SELECT count(*)::text FROM roster_chunks WHERE run_id = ANY ($1)`, []id.RosterRun{outdated.ID, kept.ID}), "0", "")
	check.Equal(t, "entries", h.text(t, `SELECT string_agg(actor_kind || ' ' || action || ' ' || target, '; ' ORDER BY id) FROM audit_log
		WHERE organization_id = $1 AND actor_kind = 'schedule'`, h.org),
		fmt.Sprintf("schedule discarded roster import %d; schedule discarded roster import %d", outdated.ID, kept.ID), "")
	check.Equal(t, "approving", fault.KindOf(roster.Approve(t.Context(), h.DB, olive, h.org, kept.ID, h.now)), fault.Conflict, "")
}

// An approval is for the places in classes that were shown, too.
func TestAnApprovedRunTakesNoMorePlacesThanWereShown(t *testing.T) {
	t.Parallel()
	h := open(t)
	three := people("s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,")
	all := three.with("s1,c1,One", "s2,c1,One", "s3,c1,One")
	h.run(t, all.snapshot())
	shown := h.run(t, three.with("s3,c1,One").snapshot())
	want(t, shown, roster.Held, roster.Counts{Skip: 3, SeatsRemoved: 2})
	h.exec(t, `INSERT INTO roster_classes (organization_id, source_id, external_id, name, updated_at)
		SELECT $1, id, 'c2', 'Two', now() FROM roster_sources WHERE organization_id = $1`, h.org)
	h.exec(t, `INSERT INTO roster_class_members (class_id, user_id, active, updated_at)
		SELECT k.id, i.user_id, true, now() FROM roster_classes k, roster_identities i WHERE k.external_id = 'c2' AND i.organization_id = $1`, h.org)
	again := h.approve(t, shown)
	want(t, again, roster.Held, roster.Counts{Skip: 3, SeatsRemoved: 5})
	check.Equal(t, "the reason", again.Reasons[0].Code, "changed_since_review", "%v", again.Reasons)
	want(t, h.approve(t, again), roster.Applied, roster.Counts{Skip: 3, SeatsRemoved: 5})
}

// Nightly imports that change nothing leave the last change as it is, and it can be taken back.
func TestUndoWorksOverLaterRunsThatChangedNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	file := people("s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,").with("s1,c1,One")
	r := h.run(t, file)
	want(t, h.run(t, file), roster.Applied, roster.Counts{Skip: 2})
	want(t, h.run(t, file), roster.Applied, roster.Counts{Skip: 2})
	want(t, h.undo(t, r.ID), roster.Applied, roster.Counts{Update: 2, Deactivate: 2, SeatsRemoved: 1})
	check.Equal(t, "the run", h.find(t, r.ID).State, roster.Undone, "the run is %s", h.find(t, r.ID).State)

	r = h.run(t, file)
	want(t, h.run(t, people("s3,cy@institute.org,Cy,Twombly,")), roster.Applied, roster.Counts{Create: 1})
	_, err := roster.Undo(t.Context(), h.DB, olive, h.org, r.ID, h.now)
	check.True(t, "run_outdated", fault.Has(err, "run_outdated"), "after a run that changed something: %v", err)
	h.run(t, file)
	waiting := h.submit(t, file)
	_, err = roster.Undo(t.Context(), h.DB, olive, h.org, waiting-1, h.now)
	check.True(t, "run_outdated", fault.Has(err, "run_outdated"), "while another one waits: %v", err)
}

// Whoever has a course that is not over stays an active member, and the undoing says so.
func TestUndoKeepsWhoHasACourse(t *testing.T) {
	t.Parallel()
	h := open(t)
	three := []string{"s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,"}
	r := h.run(t, people(three...))
	h.enroll(t, "ana@institute.org", 30)
	h.enroll(t, "ben@institute.org", -1) // over
	back := h.undo(t, r.ID)
	want(t, back, roster.Applied, roster.Counts{Update: 2, Deactivate: 2, Skip: 1})
	check.Equal(t, "issues", h.issues(t, back), "people:2 not_managed warning", "%s", h.issues(t, back))
	members := "ana@institute.org:Ana Lopez:active; ben@institute.org:Ben Okri:inactive; cy@institute.org:Cy Twombly:inactive"
	check.Equal(t, "members", h.members(t), members, "%s", h.members(t))

	// Nor is somebody made inactive who was before the import, and has bought a course since it.
	r = h.run(t, people(three...))
	want(t, r, roster.Applied, roster.Counts{Update: 2, Skip: 1})
	h.enroll(t, "ben@institute.org", 30)
	want(t, h.undo(t, r.ID), roster.Applied, roster.Counts{Update: 1, Deactivate: 1, Skip: 1})
	check.Equal(t, "members", h.members(t), strings.Replace(members, "Okri:inactive", "Okri:active", 1), "%s", h.members(t))
}

// Reference: roster#undo.
func TestUndoTakesBackWhatHasNotChangedSince(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.run(t, people("s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,").with("s1,c1,One", "s2,c1,One").snapshot())
	before, seats := h.members(t), h.seats(t)
	r := h.run(t, people("s1,ana@institute.org,Anna,Lopez,", "s3,cy@institute.org,Cy,Twombly,", "s4,dee@institute.org,Dee,Dee,", "s5,eve@institute.org,Eve,Arden,").
		with("s1,c1,Uno", "s4,c1,Uno").snapshot())
	want(t, r, roster.Applied, roster.Counts{Create: 2, Update: 2, Deactivate: 1, Skip: 1, ClassesRenamed: 1, SeatsAdded: 1, SeatsRemoved: 1})
	h.exec(t, `UPDATE accounts SET last_login = $2 WHERE email = 'eve@institute.org' AND $1 > 0`, h.org, h.now)
	back := h.undo(t, r.ID)
	want(t, back, roster.Applied, roster.Counts{Update: 3, Deactivate: 1, Skip: 1, ClassesRenamed: 1, SeatsAdded: 1, SeatsRemoved: 1})
	if got := h.members(t); got != before+"; dee@institute.org:Dee Dee:inactive; eve@institute.org:Eve Arden:active" {
		t.Errorf("members: %s", got)
	}
	if got := h.seats(t); got != seats {
		t.Errorf("seats: %s", got)
	}
	if got := h.find(t, r.ID).State; got != roster.Undone {
		t.Errorf("the run is %s", got)
	}
	_, err := roster.Undo(t.Context(), h.DB, olive, h.org, r.ID, h.now)
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("undone twice: %v", err)
	}
}

// Who signed in before the import, and not since, is no reason to keep what it did.
func TestUndoMindsOnlyWhatWasUsedSince(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.snapshots(t)
	three := []string{"s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,"}
	h.run(t, people(three...).snapshot())
	h.exec(t, `UPDATE accounts SET last_login = $2, own_password = true, updated_at = $2 WHERE $1 > 0`, h.org, h.now)
	h.run(t, people(three[0], three[2]).snapshot())
	before := h.members(t)
	back := h.run(t, people(three...).snapshot())
	want(t, back, roster.Applied, roster.Counts{Update: 1, Skip: 2})
	want(t, h.undo(t, back.ID), roster.Applied, roster.Counts{Update: 1, Deactivate: 1})
	if got := h.members(t); check.Equal(t, "got", got, before, "members: %s", got) {
		check.Contains(t, "the members", got, "ben@institute.org:Ben Okri:inactive", "members: %s", got)
	}
}

// Somebody known by email gets an id of the source and a place in a class: undoing takes
// both, the place first, which is found by the id.
func TestUndoEmptiesThePlacesOfThoseWhomItForgets(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.run(t, people("s1,ana@institute.org,Ana,Lopez,"))
	linked := people("x1,ana@institute.org,Ana,Lopez,").with("x1,c1,One")
	linked.source = "other"
	r := h.run(t, linked)
	want(t, r, roster.Applied, roster.Counts{Update: 1, ClassesCreated: 1, SeatsAdded: 1})
	want(t, h.undo(t, r.ID), roster.Applied, roster.Counts{Update: 1, SeatsRemoved: 1})
	if got := h.seats(t); got != "" {
		t.Errorf("seats: %s", got)
	}
	if got := h.text(t, `SELECT string_agg(external_id, ' ') FROM roster_identities`); got != "s1" {
		t.Errorf("external ids: %s", got)
	}
}

func (h *house) undo(t testing.TB, run id.RosterRun) roster.Run {
	t.Helper()
	undo, err := roster.Undo(t.Context(), h.DB, olive, h.org, run, h.now)
	if err != nil {
		t.Fatal(err)
	}
	h.work(t)
	h.now = h.now.Add(1)
	return h.find(t, undo)
}

func TestADryRunWritesNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.run(t, people("s1,ana@institute.org,Ana,Lopez,").snapshot())
	state := h.state(t)
	preview := people("s2,ben@institute.org,Ben,Okri,").with("s2,c1,One").snapshot()
	preview.dryRun = true
	r := h.run(t, preview)
	want(t, r, roster.Previewed, roster.Counts{Create: 1, Update: 1, Deactivate: 1, ClassesCreated: 1, SeatsAdded: 1})
	check.Equal(t, "number of reasons", len(r.Reasons), 1, "%v", r.Reasons)
	check.Equal(t, "the rows", h.state(t), state, "after a preview")
}

func TestRunsOfAnOrganizationGoOneByOne(t *testing.T) {
	t.Parallel()
	h := open(t)
	first := h.submit(t, people("s1,ana@institute.org,Ana,Lopez,"))
	second := h.submit(t, people("s1,ana@institute.org,Ana,Lopez,"))
	job := h.claim(t)
	check.Equal(check.Now(t), "number of pending runs", len(job), 1, "%+v", job)
	check.Equal(check.Now(t), "the pending run", job[0].Subject, int64(first), "%+v", job)
	h.do(t, job[0])
	h.work(t)
	want(t, h.find(t, second), roster.Applied, roster.Counts{Skip: 1})
}

func TestEventsTellWhoJoinedAndWhoLeft(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.exec(t, `INSERT INTO webhook_endpoints (organization_id, slot, url, created_at, updated_at) VALUES ($1, 1, 'https://receiver.test/', now(), now())`, h.org)
	rows := []string{"s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,"}
	events := func(want string) {
		t.Helper()
		got := h.text(t, `SELECT coalesce(string_agg(e.type || ' ' || (e.data->>'email') || ' ' || (e.data->'membership'->>'status'), '; ' ORDER BY e.type, e.data->>'email'), '')
			FROM webhook_events e JOIN webhook_queue d ON d.event_id = e.id WHERE e.organization_id = $1`, h.org)
		if got != want {
			t.Fatalf("events: %s", got)
		}
		h.exec(t, `DELETE FROM webhook_events WHERE organization_id = $1`, h.org)
	}
	h.run(t, people(rows...).snapshot())
	events("student.joined ana@institute.org active; student.joined ben@institute.org active; student.joined cy@institute.org active")
	h.run(t, people(rows[0], rows[2]).snapshot())
	events("student.left ben@institute.org inactive")
	h.run(t, people(rows...).snapshot())
	events("student.joined ben@institute.org active")
	h.run(t, people(rows...).snapshot())
	events("")
}

// Reference: roster#guards.
func TestASourceSaysWhatIsHeld(t *testing.T) {
	t.Parallel()
	rows := []string{"s1,ana@institute.org,Ana,Lopez,", "s2,ben@institute.org,Ben,Okri,", "s3,cy@institute.org,Cy,Twombly,", "s4,di@institute.org,Di,Ng,"}
	for name, c := range map[string]struct {
		settings roster.Settings
		left     int // of the people
		codes    string
	}{
		"a quarter, as usual":   {roster.Settings{Approval: roster.ApproveGuarded}, 3, ""},
		"each is approved":      {roster.Settings{Approval: roster.ApproveAlways}, 4, "approval_required"},
		"more than the share":   {roster.Settings{Approval: roster.ApproveGuarded, GuardPercent: new(24)}, 3, "implausible_share"},
		"the share":             {roster.Settings{Approval: roster.ApproveGuarded, GuardPercent: new(25)}, 3, ""},
		"nobody may leave":      {roster.Settings{Approval: roster.ApproveGuarded, GuardPercent: new(0)}, 4, ""},
		"most may leave, a few": {roster.Settings{Approval: roster.ApproveGuarded, GuardPercent: new(75)}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.run(t, people(rows...).snapshot())
			c.settings.AuthoritativeEnabled = true
			_, err := roster.PutSource(t.Context(), h.DB, olive, h.org, roster.DefaultSource, func(s *roster.Settings) { *s = c.settings }, h.now)
			check.NoError(check.Now(t), err, "")
			r := h.run(t, people(rows[:c.left]...).snapshot())
			var codes []string
			for _, reason := range r.Reasons {
				codes = append(codes, reason.Code)
			}
			check.Equal(t, "reasons", strings.Join(codes, " "), c.codes, "(%s)", r.Fault)
		})
	}
}
