package organization

import (
	"context"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// piece is a table with rows of organizations.
type piece struct {
	table       string
	most        int // rows of a transaction; 0: a thousand
	partitioned bool
	unindexed   bool // rows of an organization have no index: the table is read as a whole, in parts
}

func (p piece) some() int {
	if p.most == 0 {
		return 5000
	}
	return p.most
}

// people stands in the list of pieces for those who are or were in the organization.
const people = "people"

// pieces are in the order in which they are erased: first what would make others, and what refers to a row before the
// row. With a plan go its tests, drills and history; with an enrollment its references and goals; with a class its
// places; with a webhook URL its secrets, its health and recoveries.
var pieces = []piece{
	{table: "outbox_tasks", unindexed: true},
	{table: "api_keys"},
	{table: "sign_in_policies"},
	{table: "identity_providers"},
	{table: "mail_domains"},
	{table: "sandboxes"}, // its database goes within the hour
	{table: "lti_consumers"},
	{table: "lti_nonces"},
	{table: "lms_tickets"},
	{table: "lms_logins"},
	{table: "lms_choices"},
	{table: "lms_invitations"},
	{table: "lms_marks"},
	{table: "lms_people"},
	{table: "lms_contexts"},
	{table: "lms_registrations", most: 10},
	{table: "webhook_endpoints"},
	{table: "webhook_leases"},
	{table: "webhook_queue"},
	{table: "roster_chunks", most: 20},
	{table: "roster_changes"},
	{table: "roster_class_changes"},
	{table: "roster_issues"},
	{table: "roster_runs", most: 100},
	{table: "roster_identities"},
	{table: "roster_classes", most: 100},
	{table: "roster_sources", most: 10},
	{table: "plans", most: 50},
	{table: "staff_alerts"},
	{table: "mail_optouts"},
	{table: people},
	{table: "enrollments", most: 1000},
	{table: "members"},
	{table: "arrivals"},
	{table: "directory"},
	{table: "directory_words"},
	{table: "starter_tests"},
	{table: "courses", most: 100},
	{table: "plan_browsers"},
	{table: "plan_browser_sessions"},
	{table: "assignments"},
	{table: "assignment_positions"},
	{table: "results"},
	{table: "result_spans"},
	{table: "result_positions"},
	{table: "result_returns", unindexed: true},
	{table: "activity_events", partitioned: true, unindexed: true},
	{table: "activity_days"},
	{table: "catalog_items"},
	{table: "webhook_events", partitioned: true},
	{table: "webhook_journal", partitioned: true},
	{table: "webhook_deliveries", partitioned: true, unindexed: true},
	{table: "webhook_hours"},
	{table: "list_epochs"},
	{table: "organization_logos"},
	{table: "emails"},
	{table: "set_password_tokens", unindexed: true},
	{table: "idempotency_keys"},
	{table: "audit_log"},
}

// insertErasure remembers the slug by its hash alone, for who repeats the call.
func insertErasure(ctx context.Context, q pg.Querier, which id.Organization, slug string, now time.Time) error {
	_, err := q.Exec(ctx, `
		INSERT INTO organization_erasures (organization_id, slug_hash, erased_at) VALUES ($1, $2, $3)`, which, seal.Hash(slug), now)
	return err
}

// selectBySlug finds the last erasure of an organization of the slug that has not ended.
func selectBySlug(ctx context.Context, q pg.Querier, slug string) (which id.Organization, found bool, err error) {
	err = q.QueryRow(ctx, `
		SELECT organization_id FROM organization_erasures
		WHERE slug_hash = $1 AND finished_at IS NULL
		ORDER BY organization_id DESC LIMIT 1`, seal.Hash(slug)).Scan(&which)
	if pg.None(err) {
		return 0, false, nil
	}
	return which, err == nil, err
}

func selectErasure(ctx context.Context, q pg.Querier, which id.Organization) (e Erasure, err error) {
	e.Organization = which
	var finished *time.Time
	err = q.QueryRow(ctx, `
		SELECT erased_at, finished_at, deleted FROM organization_erasures
		WHERE organization_id = $1`, which).Scan(&e.At, &finished, &e.Deleted)
	if finished != nil {
		e.Finished = *finished
	}
	return e, err
}

// selectLeft counts what has an index.
func selectLeft(ctx context.Context, q pg.Querier, which id.Organization) (map[string]int64, error) {
	left := map[string]int64{}
	var b pg.Batch
	for _, p := range pieces {
		if p.unindexed || p.table == people {
			continue
		}
		var n int64
		b.Rows(func() error {
			if n > 0 {
				left[p.table] = n
			}
			return nil
		}, []any{&n}, `SELECT count_organization_rows($1, $2, $3)`, which, p.table, mostLeft)
	}
	return left, b.Send(ctx, q)
}

// dueErasure is one that the worker goes on with.
type dueErasure struct {
	Organization id.Organization
	Emptied      bool // once
}

func selectDue(ctx context.Context, q pg.Querier, before time.Time) ([]dueErasure, error) {
	return pg.List[dueErasure](ctx, q, `
		SELECT organization_id AS organization, emptied_at IS NOT NULL AS emptied
		FROM organization_erasures
		WHERE finished_at IS NULL AND (emptied_at IS NULL OR erased_at <= $1)
		ORDER BY erased_at, organization_id`, before)
}

func setEmptied(ctx context.Context, q pg.Querier, which id.Organization, now time.Time) error {
	_, err := q.Exec(ctx, `UPDATE organization_erasures SET emptied_at = $2 WHERE organization_id = $1`, which, now)
	return err
}

func setFinished(ctx context.Context, q pg.Querier, which id.Organization, now time.Time) error {
	_, err := q.Exec(ctx, `
		UPDATE organization_erasures SET finished_at = $2, slug_hash = NULL WHERE organization_id = $1`, which, now)
	return err
}

// selectPartitions lists the partitions of a table, the oldest first.
func selectPartitions(ctx context.Context, q pg.Querier, table string) ([]string, error) {
	return pg.Column[string](ctx, q, `
		SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = to_regclass($1::text) ORDER BY c.relname`, table)
}

// eraseRows deletes up to most rows, and counts them; nil: there is no such table any more.
func eraseRows(ctx context.Context, q pg.Querier, which id.Organization, table string, most int) (n *int64, err error) {
	err = q.QueryRow(ctx, `SELECT erase_organization_rows($1, $2, $3, $4)`, which, table, kindOf(table), most).Scan(&n)
	return n, err
}

// eraseBlocks returns nil behind the last block.
func eraseBlocks(ctx context.Context, q pg.Querier, which id.Organization, table string, start, blocks int64) (n *int64, err error) {
	err = q.QueryRow(ctx, `SELECT erase_organization_rows($1, $2, $3, 0, $4, $5)`, which, table, kindOf(table), start, blocks).Scan(&n)
	return n, err
}

// kindOf is what the rows of a partition are counted as.
func kindOf(table string) string {
	for _, p := range pieces {
		if p.partitioned && strings.HasPrefix(table, p.table+"_") {
			return p.table
		}
	}
	return table
}

// person is one of an organization's.
type person struct {
	User  id.User
	Email string
}

func selectPeople(ctx context.Context, q pg.Querier, which id.Organization, limit int) ([]person, error) {
	return pg.List[person](ctx, q, `
		SELECT d.user_id AS "user", coalesce(a.email, '') AS email
		FROM (SELECT user_id FROM directory WHERE organization_id = $1 LIMIT $2) AS d
		LEFT JOIN accounts a ON a.id = d.user_id`, which, limit)
}

func erasePeople(ctx context.Context, q pg.Querier, which id.Organization, users []id.User) error {
	_, err := q.Exec(ctx, `SELECT erase_organization_people($1, $2)`, which, users)
	return err
}

func eraseAccountsFromAudit(ctx context.Context, q pg.Querier, which id.Organization, behind, most int64) (last *int64, err error) {
	err = q.QueryRow(ctx, `SELECT erase_accounts_from_audit($1, $2, $3::integer)`, which, behind, most).Scan(&last)
	return last, err
}
