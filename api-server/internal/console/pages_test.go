package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/browsertest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// enter signs the person in, in a real browser.
func (s *site) enter(b *browsertest.Browser, name string) {
	b.Visit(s.URL() + "/console/")
	b.Type("#name", name+"@north-institute.org")
	b.Type("#password", password)
	b.Press("Sign in")
	b.Await("nav[aria-label=Console]")
}

// shownPages are the console's pages, by their routes, without its downloads.
func shownPages(t *testing.T, s *site) []string {
	t.Helper()
	return slices.DeleteFunc(walk(t, s), func(route string) bool {
		return !strings.HasPrefix(route, "GET /console") || strings.Contains(route, "{file}") || strings.HasSuffix(route, ".csv") || strings.HasSuffix(route, ".jsonl")
	})
}

// wideTables are the captions of tables that have to be moved sideways.
const wideTables = `[...document.querySelectorAll(".scroll")].filter(s => s.scrollWidth > s.clientWidth).map(s => s.innerText.slice(0, 80)).join("; ")`

// largestPage is how many characters a page may have.
const largestPage = 100_000

// Every page, with something on it, is one that everybody can use: with a screen reader,
// in the dark, on a telephone.
func TestEveryPageIsForEverybody(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t)
	s := open(t, withSandboxes(t))
	s.Platform.Put(t, "organizations/north/sandbox", nil).Want(t, http.StatusCreated)
	target := s.furnish(t)
	s.enter(b, "olive")
	for _, route := range shownPages(t, s) {
		_, pattern, _ := strings.Cut(route, " ")
		name := strings.Trim(strings.NewReplacer("/console", "page", "{slug}", "", "{id}", "one", "{delivery}", "one", "//", "-", "/", "-").Replace(pattern), "-")
		b.Size(1280, 900)
		b.Visit(s.URL() + target(pattern))
		b.Accessible(name)
		b.Screenshot(name)
		if !strings.HasSuffix(pattern, "/sandbox") { // TestTheSandboxInABrowser has somebody in it
			b.Pictures("../../../docs/console/" + pictureName(pattern))
		}
		if strings.HasSuffix(pattern, "/lms/{id}") { // what comes back from the LMS and goes there is further down
			b.Value(`document.getElementById("rosters").scrollIntoView(); ""`)
			b.Pictures("../../../docs/console/lms-one-marks")
		}
		if wide := b.Value(wideTables); wide != "" {
			t.Errorf("%s has tables that do not fit 1280 pixels: %s", pattern, wide)
		}
		if n, err := strconv.Atoi(b.Value(`String(document.documentElement.outerHTML.length)`)); check.NoError(t, err, "%s", pattern) && n > largestPage {
			t.Errorf("%s has %d bytes, more than %d", pattern, n, largestPage)
		}
		b.Size(390, 844)
		b.Accessible(name + ", on a telephone")
		if b.WiderThanWindow() {
			t.Errorf("%s scrolls sideways on a telephone", pattern)
		}
		b.Screenshot(name + "-telephone")
		if !strings.HasSuffix(pattern, "/sandbox") {
			b.Pictures("../../../docs/console/" + pictureName(pattern) + "-telephone")
		}
		if b.Count("details") == 0 {
			continue
		}
		b.Value(`for (const asked of document.querySelectorAll("details")) asked.open = true; ""`)
		b.Accessible(name + ", with all that opens, on a telephone")
		if b.WiderThanWindow() {
			t.Errorf("%s scrolls sideways on a telephone once what asks is open", pattern)
		}
		b.Screenshot(name + "-telephone-opened")
	}
}

// pictureName is a page's name among the pictures of docs.
func pictureName(pattern string) string {
	name := strings.NewReplacer("/console/{slug}", "", "{id}", "one", "{delivery}", "one", "{group}", "group", "/", "-").Replace(pattern)
	switch name = strings.Trim(name, "-"); {
	case pattern == "/console":
		return "start"
	case name == "":
		return "overview"
	}
	return name
}

// evil tries to get out of text, attributes, scripts and templates.
const evil = `'"><img src=x data-evil onerror=alert(1)><script data-evil>window.evil=1</script></title><svg data-evil onload=alert(2)>{{7}}`

// kept are columns of which the programs read what they mean, or that addresses are made of.
var kept = []string{"slug", "time_zone", "timezone", "password_hash", "traceparent", "lease", "exam", "pace", "level", "course_type", "name_key", "fault_code"}

// poison puts evil behind every text that is stored, as far as the schema lets it.
func poison(t *testing.T, s *site) (columns []string) {
	t.Helper()
	rows, err := s.DB.Query(t.Context(), `
		SELECT c.table_name, c.column_name FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
		WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' AND c.data_type = 'text' AND c.column_name <> ALL ($1)
		  AND c.table_name NOT IN ('sessions', 'course_types', 'goose_db_version') ORDER BY 1, 2`, kept)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Table, Column string }])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		sql := fmt.Sprintf(`UPDATE %s SET %s = %[2]s || $1`, pgx.Identifier{c.Table}.Sanitize(), pgx.Identifier{c.Column}.Sanitize())
		if tag, err := s.DB.Exec(t.Context(), sql, evil); err == nil && tag.RowsAffected() > 0 { // else a constraint keeps the column to words of ours
			columns = append(columns, c.Table+"."+c.Column)
		}
	}
	for _, sql := range []string{
		`UPDATE webhook_journal SET response_body = convert_to($1, 'UTF8'), request_headers = json_build_object($1::text, $1::text)`,
		`UPDATE plan_history SET detail = (SELECT jsonb_object_agg(key, CASE jsonb_typeof(value) WHEN 'string' THEN to_jsonb($1::text) ELSE value END) FROM jsonb_each(detail::jsonb))
			WHERE detail::jsonb <> '{}'`,
	} {
		if _, err := s.DB.Exec(t.Context(), sql, evil); err != nil {
			t.Fatal(err)
		}
	}
	return columns
}

// Whatever is stored comes out as text. The browser fails the test when a script runs, a
// dialog opens, another host is asked or the policy had to stop something.
func TestStoredTextStaysText(t *testing.T) {
	t.Parallel()
	b := browsertest.Open(t)
	s := open(t)
	target := s.furnish(t)
	s.enter(b, "olive")
	s.signedIn(t, "adam").post(t, "/console/north/api-keys/", url.Values{"name": {"For the audit log"}})
	columns := poison(t, s)
	for _, must := range []string{"accounts.first_name", "accounts.email", "organizations.name", "courses.name", "catalog_items.title", "api_keys.name",
		"webhook_endpoints.url", "audit_log.actor_name", "audit_log.action", "audit_log.target", "roster_changes.email", "roster_issues.message",
		"roster_sources.name", "roster_runs.requested_by", "emails.recipient"} {
		if !slices.Contains(columns, must) {
			t.Errorf("%s could not be poisoned, only %q", must, columns)
		}
	}
	shown := 0
	for _, route := range append(shownPages(t, s), "GET /my-courses", "GET /change-password", "GET /sessions") {
		_, pattern, _ := strings.Cut(route, " ")
		b.Visit(s.URL() + target(pattern))
		if check.Equal(t, "number of headings", b.Count("h1"), 1, "%s is no page of ours:\n%s", pattern, b.Text()) {
			check.Lacks(t, "the page", b.Text(), "Something went wrong", "%s is no page of ours:\n%s", pattern, b.Text())
		}
		if n := b.Count("[data-evil], [onerror], [onload], main img, main script"); n != 0 {
			t.Errorf("%s: %d elements were put into the page", pattern, n)
		}
		if b.Value(`String(window.evil)`) != "undefined" {
			t.Errorf("%s: a stored script ran", pattern)
		}
		shown += strings.Count(b.Text(), "onerror=alert(1)")
	}
	if shown < 20 {
		t.Errorf("the pages show only %d of the hostile texts", shown)
	}
	b.Screenshot("hostile")
}
