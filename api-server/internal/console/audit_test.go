package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/audit"
)

// What cannot be recorded is not done: no key and no URL whose secret nobody has seen.
func TestWithoutItsAuditRowNothingIsChanged(t *testing.T) {
	t.Parallel()
	s := open(t)
	b := s.signedIn(t, "olive")
	count := func(table string) (n int) {
		t.Helper()
		if err := s.DB.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	keys := count("api_keys")
	s.exec(t, `ALTER TABLE audit_log RENAME TO audit_log_away`)
	for path, form := range map[string]url.Values{
		"/console/north/api-keys/": {"name": {"Nobody's"}},
		"/console/north/webhooks/": {"url": {"https://hooks.north-institute.org/in"}, "time_zone": {"UTC"}},
	} {
		if status, page, _ := b.post(t, path, form); status != http.StatusInternalServerError {
			t.Errorf("POST %s: status %d, want 500\n%s", path, status, page)
		}
	}
	if got := count("api_keys"); got != keys {
		t.Errorf("%d keys, want the %d of before", got, keys)
	}
	if got := count("webhook_endpoints"); got != 0 {
		t.Errorf("%d webhook URLs, want none", got)
	}
}

func TestThePlatformsCommandsAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.Platform.Post(t, "organizations/north/webhook-endpoints", map[string]any{"url": "https://hooks.north-institute.org/in"}).Want(t, http.StatusCreated)
	var kind audit.Kind
	var target string
	err := s.DB.QueryRow(t.Context(), `SELECT actor_kind, target FROM audit_log WHERE action = 'added webhook URL'`).Scan(&kind, &target)
	if err != nil {
		t.Fatal(err)
	}
	if kind != audit.PlatformKey {
		t.Errorf("the actor is a %s, want a %s", kind, audit.PlatformKey)
	}
	if target != "https://hooks.north-institute.org/in" {
		t.Errorf("the target is %s, want the URL", target)
	}
	status, page, _ := s.signedIn(t, "olive").get(t, "/console/north/audit-log/")
	want(t, "the audit log", status, page, http.StatusOK, "added webhook URL", "platform administrator")
}

// Everybody who had to do with an import is in the log: who allowed snapshots, whose key sent
// the file, and who decided about it.
func TestAnImportsCommandsAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	s := open(t)
	path := s.hold(t)
	b := s.signedIn(t, "adam")
	s.exec(t, `ALTER TABLE audit_log RENAME TO audit_log_away`)
	if status, page, _ := b.post(t, path+"discard", nil); status != http.StatusInternalServerError {
		t.Errorf("discard without its row: status %d, want 500\n%s", status, page)
	}
	s.exec(t, `ALTER TABLE audit_log_away RENAME TO audit_log`)
	if status, page, _ := b.post(t, path+"discard", nil); status != http.StatusSeeOther { // still held
		t.Fatalf("discard: status %d, want 303\n%s", status, page)
	}
	rows, err := s.DB.Query(t.Context(), `
		SELECT actor_kind || ' ' || action FROM audit_log WHERE action LIKE '%roster%' ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"platform_key set up roster source", "partner_key submitted roster import",
		"partner_key submitted roster import", "staff discarded roster import"}; !slices.Equal(got, want) {
		t.Errorf("the audit log has %q, want %q", got, want)
	}
}
