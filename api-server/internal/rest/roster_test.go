package rest_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/api-server/internal/apitest"
	"github.com/registrar-dev/registrar/internal/domain/roster/rostertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

const rosterHeader = "person_external_id,email,first_name,last_name,role\n"

// form makes a form's body with an archive, its fields before or after it.
func form(t *testing.T, archive []byte, before, after map[string]string) (contentType, body string) {
	t.Helper()
	return formWith(t, "roster.zip", archive, before, after)
}

// formWith is form for an archive of another name.
func formWith(t *testing.T, name string, archive []byte, before, after map[string]string) (contentType, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	fields := func(all map[string]string) {
		for name, value := range all {
			if err := w.WriteField(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	fields(before)
	if archive != nil {
		part, err := w.CreateFormFile("archive", name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write(archive)
	}
	fields(after)
	_ = w.Close()
	return w.FormDataContentType(), b.String()
}

func zipOf(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i])
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.Write([]byte(files[i+1]))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type rosterAnswer struct {
	Status  string         `json:"status"`
	RunID   int64          `json:"run_id"`
	Mode    string         `json:"mode"`
	Source  string         `json:"source"`
	Counts  map[string]int `json:"counts"`
	Classes map[string]int `json:"classes"`
	Issues  []struct {
		Line int
		Code string
	} `json:"issues"`
	Reasons   []string `json:"reasons"`
	ReviewURL string   `json:"review_url"`
}

func (a rosterAnswer) String() string {
	return fmt.Sprintf("%s %s %s create=%d update=%d skip=%d deactivate=%d issues=%d", a.Status, a.Mode, a.Source,
		a.Counts["create"], a.Counts["update"], a.Counts["skip"], a.Counts["deactivate"], len(a.Issues))
}

func send(t *testing.T, c *apitest.Client, contentType, body string, status int) rosterAnswer {
	t.Helper()
	var a rosterAnswer
	c.With("Content-Type", contentType).Post(t, "roster/import/", body).Want(t, status).Into(t, &a)
	return a
}

// Reference: roster#upload.
func TestRosterImportTakesEveryInputForm(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.ImportRosters(t)
	north := e.Organization(t, "north")
	rows := rosterHeader + "s1,ana@institute.org,Ana,Lopez,student\n"
	archive := zipOf(t, "people.csv", rows, "enrollments.csv", "person_external_id,class_external_id,class_name\ns1,c1,One\n")

	contentType, body := form(t, archive, map[string]string{"mode": "additive_only", "source": "sis"}, nil)
	if a := send(t, north.Full, contentType, body, 200); check.Equal(t, "the answer", a.String(), "applied additive_only sis create=1 update=0 skip=0 deactivate=0 issues=0", "form: %s", a) &&
		check.Equal(t, "number of added class places", a.Classes["add"], 1, "form: %s", a) {
		check.True(t, "the answer has a run", a.RunID != 0, "form: %s", a)
	}
	contentType, body = form(t, archive, nil, map[string]string{"source": "sis", "dry_run": "true"})
	if a := send(t, north.Full, contentType, body, 200); a.String() != "dry_run additive_only sis create=0 update=0 skip=1 deactivate=0 issues=0" {
		t.Errorf("form with the fields last: %s", a)
	}
	contentType, body = form(t, []byte(rows), map[string]string{"source": "sis"}, nil)
	if a := send(t, north.Full, contentType, body, 200); a.String() != "applied additive_only sis create=0 update=0 skip=1 deactivate=0 issues=0" {
		t.Errorf("bare people.csv in a form: %s", a)
	}
	headers := north.Full.With("X-Roster-Mode", "additive_only").With("X-Roster-Source", "sis")
	if a := send(t, headers, "application/zip", string(archive), 200); a.String() != "applied additive_only sis create=0 update=0 skip=1 deactivate=0 issues=0" {
		t.Errorf("raw archive: %s", a)
	}
	if a := send(t, north.Full, "text/csv", rows, 200); a.String() != "applied additive_only default create=0 update=1 skip=0 deactivate=0 issues=0" {
		t.Errorf("raw people.csv from another source: %s", a)
	}
}

// Reference: roster#import-answers.
func TestRosterImportRefusals(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.ImportRosters(t)
	north := e.Organization(t, "north")
	rows := rosterHeader + "s1,ana@institute.org,Ana,Lopez,student\n"
	csv := north.Full.With("Content-Type", "text/csv")
	post := func(c *apitest.Client, body string) *apitest.Answer { return c.Post(t, "roster/import/", body) }

	post(north.ReadOnly.With("Content-Type", "text/csv"), rows).WantFault(t, 403, "read_only_key", "")
	post(e.Partner("").With("Content-Type", "text/csv"), rows).WantFault(t, 401, "missing_api_key", "")
	post(csv.With("X-Roster-Mode", "everything"), rows).WantFault(t, 400, "not_a_choice", "mode")
	post(csv.With("X-Roster-Source", strings.Repeat("s", 101)), rows).WantFault(t, 400, "too_long", "source")
	post(csv.With("X-Roster-Dry-Run", "perhaps"), rows).WantFault(t, 400, "not_a_boolean", "dry_run")
	post(csv.With("X-Roster-Mode", "authoritative_snapshot"), rows).WantFault(t, 403, "authoritative_not_enabled", "")
	post(north.Full, rows).WantFault(t, 400, "unsupported_content_type", "")
	post(csv, rosterHeader).WantFault(t, 400, "no_usable_people", "")
	post(csv, "").WantFault(t, 400, "empty_file", "")
	post(north.Full.With("Content-Type", "application/zip"), rows).WantFault(t, 400, "not_a_zip", "")
	post(north.Full.With("Content-Type", "multipart/form-data"), rows).WantFault(t, 400, "body_unreadable", "")

	contentType, body := form(t, nil, map[string]string{"mode": "additive_only"}, nil)
	post(north.Full.With("Content-Type", contentType), body).WantFault(t, 400, "missing", "archive")
	contentType, body = form(t, []byte(rows), nil, map[string]string{"mode": "authoritative_snapshot"})
	post(north.Full.With("Content-Type", contentType), body).WantFault(t, 403, "authoritative_not_enabled", "")
	contentType, body = form(t, []byte(rows), nil, nil)
	post(north.Full.With("Content-Type", contentType), body[:len(body)-30]).WantFault(t, 400, "body_unreadable", "")

	large := rosterHeader + strings.Repeat("s,", 25<<19)
	post(csv, large).WantFault(t, 413, "file_too_large", "")
	contentType, body = form(t, []byte(large), nil, nil)
	post(north.Full.With("Content-Type", contentType), body).WantFault(t, 413, "file_too_large", "")

	var people, runs int
	err := e.DB.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM accounts), (SELECT count(*) FROM roster_runs WHERE state = 'uploading')`).Scan(&people, &runs)
	if check.NoError(t, err, "%d people, %d unfinished uploads, %v", people, runs, err) &&
		check.Equal(t, "people", people, 0, "%d people, %d unfinished uploads, %v", people, runs, err) {
		check.Equal(t, "runs", runs, 0, "%d people, %d unfinished uploads, %v", people, runs, err)
	}
}

// Whatever is sent for a roster by mistake, the answer says what it is and what to send.
func TestWhatIsNoRosterIsNamed(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.ImportRosters(t)
	north := e.Organization(t, "north").Full
	rows := rosterHeader + "s1,ana@institute.org,Ana,Lopez,student\n"
	archive := string(zipOf(t, "people.csv", rows))
	workbook := string(zipOf(t, "[Content_Types].xml", "<Types/>", "xl/workbook.xml", "<workbook/>"))
	const page, pdf, gzip = "<!DOCTYPE html>\n<html><body>Sign in</body></html>", "%PDF-1.7\n1 0 obj", "\x1f\x8b\x08\x00\x00\x00\x00\x00"
	for _, c := range []struct{ name, content, code, says string }{
		{"x.zip", archive[4:], "not_a_zip", "beginning is lost"},
		{"x.zip", "hello", "not_a_zip", "send an archive that holds people.csv"},
		{"X.ZIP", page, "not_a_zip", "HTML"},
		{"x.zip", gzip, "not_a_zip", "gzip"},
		{"x.zip", archive[:len(archive)-20], "archive_damaged", "make it again"},
		{"x.zip", "", "empty_file", "send a people.csv"},
		{"people.csv", "", "empty_file", "send a people.csv"},
		{"people.csv", "hello", "missing_column", "read as: hello"},
		{"people.csv", page, "not_a_csv", "HTML"},
		{"people.csv", gzip, "not_a_csv", "gzip"},
		{"people.pdf", pdf, "not_a_csv", "PDF"},
		{"people.xlsx", workbook, "not_a_csv", "Excel workbook"},
		{"roster.zip", workbook, "not_a_csv", "Excel workbook"},
		{"", pdf, "not_a_csv", "save the list as CSV"},
	} {
		contentType, body := formWith(t, c.name, []byte(c.content), nil, nil)
		f := north.With("Content-Type", contentType).Post(t, "roster/import/", body).WantFault(t, 400, c.code, "")
		if check.Contains(t, "error", f.Error, c.says, "%s, %.20q: %s", c.name, c.content, f.Error) {
			check.Equal(t, "number of errors", len(f.Errors), 1, "%s, %.20q: %s", c.name, c.content, f.Error)
		}
	}
	utf16 := "\xff\xfe" + strings.Join(strings.Split(rows, ""), "\x00") + "\x00"
	for _, name := range []string{"people.csv", "people.zip"} {
		contentType, body := formWith(t, name, []byte(utf16), nil, nil)
		if a := send(t, north, contentType, body, 200); a.Counts["create"]+a.Counts["skip"] != 1 {
			t.Errorf("UTF-16 as %s: %s", name, a)
		}
	}
}

func TestARosterFormSendsEachFieldOnce(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.ImportRosters(t)
	north := e.Organization(t, "north").Full
	for _, name := range []string{"mode", "source", "dry_run", "archive"} {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		for range 2 {
			if err := w.WriteField(name, map[string]string{"mode": "additive_only", "source": "sis", "dry_run": "true", "archive": rosterHeader}[name]); err != nil {
				t.Fatal(err)
			}
		}
		_ = w.Close()
		north.With("Content-Type", w.FormDataContentType()).Post(t, "roster/import/", b.String()).WantFault(t, 400, "sent_twice", name)
	}
}

func TestRosterSnapshotIsHeldReviewedAndTakenBack(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.ImportRosters(t)
	north := e.Organization(t, "north")
	south := e.Organization(t, "south")
	e.Platform.Put(t, "organizations/north/roster-sources/default", map[string]any{"authoritative_enabled": true}).Want(t, 200)
	snapshot := north.Full.With("X-Roster-Mode", "authoritative_snapshot")
	full := rosterHeader
	for i := range 10 {
		full += fmt.Sprintf("s%d,s%d@institute.org,Given%d,Family,student\n", i, i, i)
	}
	if a := send(t, snapshot, "text/csv", full, 200); a.Counts["create"] != 10 {
		t.Fatal(a)
	}
	three := rosterHeader + "s0,s0@institute.org,Given0,Family,student\ns1,s1@institute.org,Given1,Family,student\nnew,new@institute.org,New,Comer,student\n"
	held := send(t, snapshot, "text/csv", three, 202)
	check.Equal(check.Now(t), "the answer", held.String(), "held authoritative_snapshot default create=1 update=8 skip=2 deactivate=8 issues=0", "%s %v %s", held, held.Reasons, held.ReviewURL)
	check.Equal(check.Now(t), "number of reasons", len(held.Reasons), 1, "%s %v %s", held, held.Reasons, held.ReviewURL)
	check.Equal(check.Now(t), "held.ReviewURL", held.ReviewURL, fmt.Sprintf("%s/console/north/roster-runs/%d/", apitest.PublicURL, held.RunID), "%s %v %s", held, held.Reasons, held.ReviewURL)
	members := func(want int) {
		t.Helper()
		var got int
		if err := e.DB.QueryRow(t.Context(), `SELECT count(*) FROM members WHERE organization_id = $1 AND status = 'active'`, north.ID).Scan(&got); check.NoError(check.Now(t), err, "%d active members, want %d (%v)", got, want, err) {
			check.Equal(check.Now(t), "got", got, want, "%d active members, want %d (%v)", got, want, err)
		}
	}
	members(10)
	runs := "organizations/north/roster-runs"
	one := fmt.Sprintf("%s/%d", runs, held.RunID)
	if got := e.Platform.Get(t, runs).Want(t, 200).Object(t)["roster_runs"].([]any); len(got) != 2 {
		t.Errorf("%d runs are listed", len(got))
	}
	if got := e.Platform.Get(t, one+"/changes").Want(t, 200).Object(t)["changes"].([]any); len(got) != 9 {
		t.Errorf("%d changes are listed", len(got))
	}
	e.Platform.Get(t, one+"/issues.csv").Want(t, 200)
	e.Platform.Get(t, fmt.Sprintf("organizations/south/roster-runs/%d", held.RunID)).WantFault(t, 404, "not_found", "")
	e.Platform.Post(t, fmt.Sprintf("organizations/south/roster-runs/%d/approve", held.RunID), nil).WantFault(t, 404, "not_found", "")
	e.Platform.Post(t, one+"/undo", nil).WantFault(t, 409, "run_state", "")
	if got := e.Platform.Post(t, one+"/approve", nil).Want(t, 200).Object(t); got["state"] != "applied" {
		t.Fatal(got)
	}
	members(3)
	e.Platform.Post(t, one+"/approve", nil).WantFault(t, 409, "run_state", "")
	if got := e.Platform.Post(t, one+"/undo", nil).Want(t, 200).Object(t); check.Equal(check.Now(t), "state", got["state"], "applied", "%v", got) &&
		check.Equal(check.Now(t), "undoes", got["undoes"], any(float64(held.RunID)), "%v", got) {
		check.Equal(check.Now(t), "update", got["update"], any(float64(9)), "%v", got)
	}
	members(10)
	if got := e.Platform.Get(t, one).Want(t, 200).Object(t)["state"]; got != "undone" {
		t.Error(got)
	}
	before := send(t, snapshot, "text/csv", three, 202)
	send(t, snapshot, "text/csv", full, 200)
	e.Platform.Post(t, fmt.Sprintf("%s/%d/approve", runs, before.RunID), nil).WantFault(t, 409, "run_outdated", "")
	again := send(t, snapshot, "text/csv", three, 202)
	if got := e.Platform.Post(t, fmt.Sprintf("%s/%d/discard", runs, again.RunID), nil).Want(t, 200).Object(t); got["state"] != "discarded" {
		t.Fatal(got)
	}
	members(10)
	e.Platform.Get(t, runs+"/999999").WantFault(t, 404, "not_found", "")
	if got := e.Platform.Get(t, "organizations/south/roster-runs").Want(t, 200).Object(t)["roster_runs"].([]any); len(got) != 0 {
		t.Errorf("%s sees %d runs", south.Slug, len(got))
	}
}

// Every file of the corpus gets its status (reference: roster#import-answers) and a text, and what cannot be used
// writes nothing at all.
func TestHostileRosters(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	e.ImportRosters(t)
	north := e.Organization(t, "north").Full.With("Content-Type", "text/csv")
	written := func() (n int) {
		return count(t, e, `SELECT (SELECT count(*) FROM accounts) + (SELECT count(*) FROM members) + (SELECT count(*) FROM roster_identities)
			+ (SELECT count(*) FROM roster_classes) + (SELECT count(*) FROM roster_class_members) + (SELECT count(*) FROM roster_chunks)`)
	}
	for i, f := range rostertest.Hostile() {
		before := written()
		from := north.With("X-Roster-Source", fmt.Sprint(i))
		answer := from.Post(t, "roster/import/", string(f.Content))
		code, refused := strings.CutPrefix(f.Want, "invalid: ")
		if none := f.Want == "0" || strings.HasPrefix(f.Want, "0 "); none {
			code, refused = "no_usable_people", true
		}
		switch {
		case refused:
			t.Run(f.Name, func(t *testing.T) { answer.WantFault(t, 400, code, "") })
			if after := written(); after != before {
				t.Errorf("%s: %d rows were written", f.Name, after-before)
			}
		default:
			t.Run(f.Name, func(t *testing.T) { answer.Want(t, 200) })
		}
	}
}

func TestRosterImportsAreBounded(t *testing.T) {
	t.Parallel()
	e := apitest.New(t)
	north := e.Organization(t, "north")
	fields := map[string]string{}
	for i := range 21 {
		fields[fmt.Sprintf("field%d", i)] = "x"
	}
	contentType, body := form(t, []byte(rosterHeader), fields, nil)
	north.Full.With("Content-Type", contentType).Post(t, "roster/import/", body).WantFault(t, 400, "too_many_parts", "")
	sql(t, e, `INSERT INTO roster_runs (organization_id, state, requested_by, created_at, updated_at) SELECT $1, 'queued', 'tests', now(), now() FROM generate_series(1, 8)`, north.ID)
	busy := north.Full.With("Content-Type", "text/csv").Post(t, "roster/import/", rosterHeader)
	if busy.WantFault(t, 503, "too_many_runs", ""); busy.Header.Get("Retry-After") == "" {
		t.Error("it does not say when to send it again")
	}
}
