package sandbox

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// In the installation's own database:

// Channel carries the ids of organizations whose sandboxes have work.
const Channel = "sandboxes"

const sandboxColumns = `
	organization_id AS organization,
	generation,
	created_at,
	filled_at,
	asked,
	done`

// ofNobody are the organizations whose sandboxes are as good as gone.
const ofNobody = `organization_id IN (SELECT id FROM organizations WHERE erased_at IS NOT NULL)`

// Find reads the organization's sandbox. ErrNone when there is none, or the organization was erased.
func Find(ctx context.Context, q pg.Querier, org id.Organization) (Sandbox, error) {
	s, err := pg.One[Sandbox](ctx, q, `SELECT `+sandboxColumns+` FROM sandboxes WHERE organization_id = $1 AND NOT `+ofNobody, org)
	if pg.None(err) {
		return s, ErrNone
	}
	return s, err
}

// Pending lists the sandboxes that have work.
func Pending(ctx context.Context, q pg.Querier) ([]Sandbox, error) {
	return pg.List[Sandbox](ctx, q, `SELECT `+sandboxColumns+` FROM sandboxes WHERE asked > done AND NOT `+ofNobody+` ORDER BY organization_id`)
}

// Listed is a sandbox with the slug of its organization.
type Listed struct {
	Slug string
	Sandbox
}

// List lists all sandboxes by the slugs of their organizations.
func List(ctx context.Context, q pg.Querier) ([]Listed, error) {
	return pg.List[Listed](ctx, q, `
		SELECT slug, s.* FROM organizations o
		JOIN (SELECT `+sandboxColumns+` FROM sandboxes) AS s ON s.organization = o.id
		WHERE o.erased_at IS NULL
		ORDER BY slug`)
}

// Put writes a new sandbox, or the next database of one.
func Put(ctx context.Context, tx *pg.Tx, s Sandbox) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO sandboxes (organization_id, generation, created_at, filled_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (organization_id) DO UPDATE SET generation = excluded.generation, filled_at = excluded.filled_at`,
		s.Organization, s.Generation, s.CreatedAt, s.FilledAt)
	return err
}

// Delete deletes the organization's sandbox; its database is another matter.
func Delete(ctx context.Context, tx *pg.Tx, org id.Organization) error {
	_, err := tx.Exec(ctx, `DELETE FROM sandboxes WHERE organization_id = $1`, org)
	return err
}

// Ask says that the sandbox has work, and wakes a worker.
func Ask(ctx context.Context, db *pg.DB, org id.Organization) error {
	return db.InTx(ctx, func(tx *pg.Tx) error {
		tx.Wake(Channel, strconv.FormatInt(int64(org), 10))
		_, err := tx.Exec(ctx, `UPDATE sandboxes SET asked = asked + 1 WHERE organization_id = $1`, org)
		return err
	})
}

// Finish says that the work is done that had been asked for when s was read.
func Finish(ctx context.Context, q pg.Querier, s Sandbox) error {
	_, err := q.Exec(ctx, `
		UPDATE sandboxes SET done = least($3, asked) WHERE organization_id = $1 AND generation = $2 AND done < $3`,
		s.Organization, s.Generation, s.Asked)
	return err
}

// In a sandbox's database:

// Size is how many bytes the database has on its server's disk.
func Size(ctx context.Context, q pg.Querier) (bytes int64, err error) {
	err = q.QueryRow(ctx, `SELECT pg_database_size(current_database())`).Scan(&bytes)
	return bytes, err
}

// Start gives the organization of a sandbox's database its clock.
func Start(ctx context.Context, q pg.Querier, org id.Organization, now time.Time, today clock.Date) error {
	_, err := q.Exec(ctx, `
		INSERT INTO sandbox_clock (organization_id, now_at, from_at, kept_on) VALUES ($1, $2, $2, $3)`, org, now, today)
	return err
}

// Read reads the clock.
func Read(ctx context.Context, q pg.Querier, org id.Organization) (Clock, error) {
	return pg.One[Clock](ctx, q, `
		SELECT
			now_at AS now,
			from_at AS from,
			target_at AS target,
			receiver,
			kept_on
		FROM sandbox_clock WHERE organization_id = $1`, org)
}

// Move says where the clock is to go. Clock.Check has allowed it; Conflict when another call was faster.
func Move(ctx context.Context, q pg.Querier, org id.Organization, to time.Time, by Receiver) (moved bool, err error) {
	tag, err := q.Exec(ctx, `
		UPDATE sandbox_clock SET from_at = now_at, target_at = $2, receiver = $3
		WHERE organization_id = $1 AND target_at IS NULL AND now_at <= $2`, org, to, by)
	return tag.RowsAffected() == 1, err
}

// Begin makes the caller the one that moves the clock, and makes due again what the one before had in hand: its task at the
// time it was due, and its deliveries.
func Begin(ctx context.Context, tx *pg.Tx, org id.Organization) (Mover, error) {
	m := Mover{Organization: org}
	err := tx.QueryRow(ctx, `UPDATE sandbox_clock SET mover = mover + 1 WHERE organization_id = $1 RETURNING mover`, org).Scan(&m.Number)
	if err != nil {
		return m, err
	}
	var b pg.Batch
	b.Queue(`
		UPDATE outbox_tasks t SET run_at = c.task_due_at FROM sandbox_clock c
		WHERE c.organization_id = $1 AND t.id = c.task_id`, org)
	b.Queue(`
		UPDATE sandbox_clock SET task_id = NULL, task_due_at = NULL WHERE organization_id = $1`, org)
	b.Queue(`DELETE FROM webhook_leases WHERE organization_id = $1`, org)
	return m, b.Send(ctx, tx)
}

// Set moves the clock forward; arrived says that it stands still from now on.
func Set(ctx context.Context, q pg.Querier, m Mover, now time.Time, arrived bool) error {
	return mine(q.Exec(ctx, `
		UPDATE sandbox_clock SET now_at = $3, target_at = CASE WHEN $4 THEN NULL ELSE target_at END
		WHERE organization_id = $1 AND mover = $2 AND now_at <= $3`, m.Organization, m.Number, now, arrived))
}

// Kept says that the daily work of a day is done.
func Kept(ctx context.Context, q pg.Querier, m Mover, day clock.Date) error {
	return mine(q.Exec(ctx, `
		UPDATE sandbox_clock SET kept_on = $3 WHERE organization_id = $1 AND mover = $2`, m.Organization, m.Number, day))
}

// mine refuses who changed no clock: another process moves it.
func mine(tag pgconn.CommandTag, err error) error {
	if err == nil && tag.RowsAffected() == 0 {
		return errTakenOver
	}
	return err
}

// Task is a task of the outbox that the sandbox has in hand.
type Task struct {
	task.Outbox
	Kind task.Kind
}

// Take takes the first task of the outbox that is due. None: pg.None, also for who moves the clock no more. Until the next
// Take, Begin can tell when it was due.
func Take(ctx context.Context, tx *pg.Tx, m Mover, now time.Time) (Task, error) {
	type row struct {
		Task  id.Task
		Claim int
		Kind  task.Kind
	}
	r, err := pg.One[row](ctx, tx, `
		WITH own AS (
			SELECT organization_id FROM sandbox_clock WHERE organization_id = $1 AND mover = $2 FOR UPDATE
		), first AS (
			SELECT id, run_at FROM outbox_tasks WHERE run_at <= $3 AND EXISTS (SELECT FROM own)
			ORDER BY run_at, id LIMIT 1 FOR UPDATE
		), noted AS (
			UPDATE sandbox_clock c SET task_id = first.id, task_due_at = first.run_at FROM first, own
			WHERE c.organization_id = own.organization_id
		)
		UPDATE outbox_tasks t SET claims = claims + 1 FROM first WHERE t.id = first.id
		RETURNING t.id AS task, t.claims AS claim, t.kind`, m.Organization, m.Number, now)
	return Task{task.Outbox{Task: r.Task, Claim: r.Claim}, r.Kind}, err
}

// Done forgets the task in hand.
func Done(ctx context.Context, q pg.Querier, m Mover) error {
	return mine(q.Exec(ctx, `
		UPDATE sandbox_clock SET task_id = NULL, task_due_at = NULL WHERE organization_id = $1 AND mover = $2`, m.Organization, m.Number))
}

// Keep keeps a mail; one that is there stays as it is.
func Keep(ctx context.Context, q pg.Querier, org id.Organization, m Mail) error {
	_, err := q.Exec(ctx, `
		INSERT INTO sandbox_mails (
			organization_id,
			email_id,
			sent_at,
			recipient,
			subject,
			plain,
			html
		) VALUES (@org, @id, @at, @recipient, @subject, @plain, @html)
		ON CONFLICT DO NOTHING`,
		pg.Args{
			"org":       org,
			"id":        m.ID,
			"at":        m.SentAt,
			"recipient": m.Recipient,
			"subject":   m.Subject,
			"plain":     m.Plain,
			"html":      m.HTML,
		})
	return err
}

// Mails lists up to limit mails with ids above after, by id.
func Mails(ctx context.Context, q pg.Querier, org id.Organization, after id.Email, limit int) ([]Mail, error) {
	return pg.List[Mail](ctx, q, `
		SELECT
			email_id AS id,
			sent_at,
			recipient,
			subject,
			plain,
			html
		FROM sandbox_mails WHERE organization_id = $1 AND email_id > $2
		ORDER BY email_id LIMIT $3`, org, after, limit)
}
