package simulate

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/assignment"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// copied are the tables whose rows a sandbox begins with, after those that they refer to, with the condition of
// the rows and what they have there.
var copied = []struct{ table, where, set string }{
	{"organizations", "id = $1", `{"managed_by": null, "managed_fields": []}`},
	{"course_types", "$1::bigint IS NOT NULL", "{}"},
	{"courses", "organization_id = $1", "{}"},
	{"catalog_items", "organization_id = $1 OR organization_id IS NULL", "{}"},
	{"roster_sources", "organization_id = $1", `{"had_enrollments": false, "managed_by": null}`},
}

// copyRows copies rows, with their ids, into a new database.
func copyRows(ctx context.Context, from, to *pg.Tx, org id.Organization) error {
	var b pg.Batch
	b.Queue(`DELETE FROM course_types`) // which the schema brings along
	for _, c := range copied {
		var rows []byte
		err := from.QueryRow(ctx, `
			SELECT coalesce(jsonb_agg(to_jsonb(t) || $2::jsonb), '[]') FROM `+c.table+` t WHERE `+c.where, org, c.set).Scan(&rows)
		if err != nil {
			return err
		}
		b.Queue(`
			INSERT INTO `+c.table+` OVERRIDING SYSTEM VALUE
			SELECT * FROM jsonb_populate_recordset(NULL::`+c.table+`, $1)`, rows)
		if c.table != "course_types" {
			b.Queue(`
				SELECT setval(pg_get_serial_sequence($1, 'id'), max(id)) FROM `+c.table+` HAVING max(id) IS NOT NULL`, c.table)
		}
	}
	return b.Send(ctx, to)
}

// due is when each kind of things is due first; nil: never.
type due struct {
	Day      *clock.Date // of enrollments
	Due      *time.Time  // unfinished work
	Expires  *time.Time  // work that is overdue, by its due date
	Plan     *time.Time
	Task     *time.Time
	Delivery *time.Time
}

// selectDue reads each minimum from an index. There is one organization in the database.
func selectDue(ctx context.Context, q pg.Querier, org id.Organization) (due, error) {
	return pg.One[due](ctx, q, `
		SELECT
			(SELECT min(next_day) FROM enrollments WHERE organization_id = $1 AND next_day IS NOT NULL) AS day,
			(SELECT min(due_at) FROM assignments WHERE organization_id = $1
				AND status IN ('pending', 'in_progress') AND overdue_at IS NULL) AS due,
			(SELECT min(due_at) FROM assignments WHERE organization_id = $1
				AND status IN ('pending', 'in_progress') AND overdue_at IS NOT NULL) AS expires,
			(SELECT min(next_run_at) FROM plans WHERE organization_id = $1 AND next_run_at IS NOT NULL) AS plan,
			(SELECT min(run_at) FROM outbox_tasks) AS task,
			(SELECT min(CASE WHEN q.asked THEN q.due_at ELSE greatest(q.due_at, h.next_probe_at) END)
				FROM webhook_queue q
				JOIN webhook_endpoints e ON e.id = q.endpoint_id
				JOIN webhook_health h ON h.endpoint_id = q.endpoint_id
				WHERE q.organization_id = $1 AND (e.switched_on OR q.asked)) AS delivery`, org)
}

// tick is how long after its due date work is overdue: the next whole second.
const tick = time.Second

func (d due) times(zone *time.Location) (times [Kinds]time.Time) {
	if d.Day != nil {
		times[Calendar] = clock.DayStart(*d.Day, zone)
	}
	first := func(which int, at *time.Time, after time.Duration) {
		if at == nil {
			return
		}
		if t := at.Truncate(tick).Add(tick + after); times[which].IsZero() || t.Before(times[which]) {
			times[which] = t
		}
	}
	first(Overdue, d.Due, 0)
	first(Overdue, d.Expires, assignment.ExpireAfter)
	for which, at := range map[int]*time.Time{Planned: d.Plan, Task: d.Task, Delivery: d.Delivery} {
		if at != nil {
			times[which] = *at
		}
	}
	return times
}
