package pg_test

import (
	"slices"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// An organization can move to another cell (docs/scale.md) as the rows whose key it leads, and what hangs on them.
// So a new table belongs to one of these, or its key begins with organization_id.
var (
	// ofTheInstallation are tables that every cell has for itself.
	ofTheInstallation = []string{"activity_closed_days", "course_types", "goose_db_version", "leader_candidates", "leaders", "lms_keys", "organizations", "outbox_tasks", "page_keys"}

	// ofPeople are read before it is known which organization a call is about, or are a person's in all organizations:
	// what a directory of cells would lead by.
	ofPeople = []string{"accounts", "api_keys", "erasures", "factors", "factor_tries", "recovery_codes", "sessions", "set_password_tokens", "password_resets"}

	// byNumber have keys of their own that clients know, from before the rule, and organization_id besides.
	byNumber = []string{"arrivals", "assignments", "audit_log", "catalog_items", "courses", "directory", "emails", "enrollments", "plan_goals", "plans", "result_returns",
		"roster_classes", "roster_identities", "roster_runs", "roster_sources", "webhook_deliveries", "webhook_endpoints", "webhook_events", "webhook_recoveries"}

	// ofOthers are parts of a row of these.
	ofOthers = []string{"enrollment_refs", "plan_drills", "plan_history", "plan_tests", "roster_changes", "roster_chunks", "roster_class_changes", "roster_class_members",
		"roster_issues", "webhook_attempts", "webhook_health", "webhook_secrets"}
)

func TestAnOrganizationLeadsTheKeysOfItsTables(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	type table struct {
		Name string
		Own  bool // it has organization_id
	}
	others, err := pg.List[table](t.Context(), db, `
		SELECT
			t.relname AS name,
			EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attname = 'organization_id') AS own
		FROM pg_class t
		WHERE t.relnamespace = 'public'::regnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition
			AND EXISTS (
				SELECT FROM pg_index x JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
				WHERE x.indrelid = t.oid AND x.indisprimary AND a.attname <> 'organization_id'
			)`)
	check.NoError(check.Now(t), err, "")
	known := slices.Concat(ofTheInstallation, ofPeople, byNumber, ofOthers)
	for _, o := range others {
		if !slices.Contains(known, o.Name) {
			t.Errorf("the primary key of %s does not begin with organization_id: let it, so that an organization can be moved", o.Name)
		}
		check.Equal(t, "organization_id of "+o.Name, o.Own || !slices.Contains(byNumber, o.Name), true, "the table is in byNumber")
	}
	for _, name := range known {
		if !slices.ContainsFunc(others, func(o table) bool { return o.Name == name }) {
			t.Errorf("%s is listed here, and needs not be: take it out", name)
		}
	}
}

// Rows of one organization refer to rows of another by no foreign key, but for keys from before the rule.
func TestForeignKeysStayInAnOrganization(t *testing.T) {
	t.Parallel()
	known := []string{
		"assignments_item_id_fkey", // items of the platform's catalog are nobody's
		"plan_goals_enrollment_id_fkey",
		"plans_enrollment_id_fkey",
		"results_item_id_fkey",
		"roster_classes_source_id_fkey",
		"roster_runs_source_id_fkey",
		"roster_runs_undoes_fkey",
		"starter_tests_item_id_fkey",
		"webhook_recoveries_endpoint_id_fkey",
	}
	found, err := pg.Column[string](t.Context(), pgtest.New(t), `
		SELECT c.conname::text
		FROM pg_constraint c
		JOIN pg_attribute ours ON ours.attrelid = c.conrelid AND ours.attname = 'organization_id'
		JOIN pg_attribute theirs ON theirs.attrelid = c.confrelid AND theirs.attname = 'organization_id'
		WHERE c.contype = 'f' AND c.conparentid = 0 AND NOT (ours.attnum = ANY (c.conkey) AND theirs.attnum = ANY (c.confkey))
		ORDER BY c.conname`)
	check.NoError(check.Now(t), err, "")
	check.Slices(t, "foreign keys without the organization", found, known, "a new one names organization_id, too")
}
