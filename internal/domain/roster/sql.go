package roster

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const sourceColumns = `s.id, s.name, s.authoritative_enabled, s.had_enrollments`

func oneSource(rows pgx.Rows, err error) (Source, error) {
	if err != nil {
		return Source{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Source])
}

func upsertSource(ctx context.Context, q pg.Querier, org id.Organization, name string, enabled *bool, now time.Time) (Source, error) {
	return oneSource(q.Query(ctx, `
		INSERT INTO roster_sources AS s (organization_id, name, authoritative_enabled, created_at, updated_at)
		VALUES ($1, $2, coalesce($3, false), $4, $4)
		ON CONFLICT (organization_id, name) DO UPDATE SET
			authoritative_enabled = coalesce($3, s.authoritative_enabled),
			updated_at = CASE WHEN $3 <> s.authoritative_enabled THEN $4 ELSE s.updated_at END
		RETURNING `+sourceColumns, org, name, enabled, now))
}

func selectSource(ctx context.Context, q pg.Querier, org id.Organization, name string) (Source, error) {
	return oneSource(q.Query(ctx, `SELECT `+sourceColumns+` FROM roster_sources s WHERE s.organization_id = $1 AND s.name = $2`, org, name))
}

const runColumns = `r.id, r.organization_id, ` + sourceColumns + `, coalesce(r.undoes, 0), r.mode, r.dry_run, r.zip_only, r.state,
	r.requested_by, r.size, r.created, r.updated, r.skipped, r.deactivated, r.classes_created, r.classes_renamed,
	r.seats_added, r.seats_removed, r.issues, r.has_enrollments, r.reasons, r.fault_code, r.fault, r.stamp, r.people_done,
	r.classes_done, r.decided_by, r.approved_leavers, r.created_at, r.finished_at`

const runTables = ` FROM roster_runs r JOIN roster_sources s ON s.id = r.source_id `

func scanRun(row pgx.CollectableRow) (r Run, err error) {
	var zip bool
	var reasons []byte
	var stamp, finished *time.Time
	c := &r.Counts
	err = row.Scan(&r.ID, &r.Organization, &r.Source.ID, &r.Source.Name, &r.Source.AuthoritativeEnabled, &r.Source.HadEnrollments,
		&r.Undoes, &r.Mode, &r.DryRun, &zip, &r.State, &r.RequestedBy, &r.Size, &c.Create, &c.Update, &c.Skip, &c.Deactivate,
		&c.ClassesCreated, &c.ClassesRenamed, &c.SeatsAdded, &c.SeatsRemoved, &r.Issues, &r.HasEnrollments, &reasons,
		&r.FaultCode, &r.Fault, &stamp, &r.PeopleDone, &r.ClassesDone, &r.DecidedBy, &r.Approved, &r.CreatedAt, &finished)
	if err != nil {
		return r, err
	}
	if zip {
		r.Form = ZipForm
	}
	if stamp != nil {
		r.Stamp = *stamp
	}
	if finished != nil {
		r.FinishedAt = *finished
	}
	return r, json.Unmarshal(reasons, &r.Reasons)
}

func oneRun(rows pgx.Rows, err error) (Run, error) {
	if err != nil {
		return Run{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanRun)
}

func insertRun(ctx context.Context, q pg.Querier, org id.Organization, undoes id.RosterRun, by string, now time.Time) (run id.RosterRun, err error) {
	err = q.QueryRow(ctx, `
		INSERT INTO roster_runs (organization_id, undoes, state, requested_by, created_at, updated_at)
		VALUES ($1, nullif($2::bigint, 0), 'uploading', $3, $4, $4) RETURNING id`, org, undoes, by, now).Scan(&run)
	return run, err
}

func countUnfinished(ctx context.Context, q pg.Querier, org id.Organization) (n int, err error) {
	err = q.QueryRow(ctx, `
		SELECT count(*) FROM roster_runs WHERE organization_id = $1 AND state IN ('queued', 'applying')`, org).Scan(&n)
	return n, err
}

func setQueued(ctx context.Context, q pg.Querier, org id.Organization, run id.RosterRun, d Draft, now time.Time) error {
	_, err := q.Exec(ctx, `
		UPDATE roster_runs SET state = 'queued', source_id = $3, mode = $4, dry_run = $5, zip_only = $6, size = $7, updated_at = $8
		WHERE organization_id = $1 AND id = $2`, org, run, d.Source.ID, d.Mode, d.DryRun, d.Form == ZipForm, d.Size, now)
	return err
}

func deleteUploading(ctx context.Context, q pg.Querier, org id.Organization, run id.RosterRun) error {
	_, err := q.Exec(ctx, `DELETE FROM roster_runs WHERE organization_id = $1 AND id = $2 AND state = 'uploading'`, org, run)
	return err
}

func selectRun(ctx context.Context, q pg.Querier, org id.Organization, run id.RosterRun) (Run, error) {
	return oneRun(q.Query(ctx, `SELECT `+runColumns+runTables+`WHERE r.organization_id = $1 AND r.id = $2`, org, run))
}

func lockRun(ctx context.Context, tx *pg.Tx, org id.Organization, run id.RosterRun) (Run, error) {
	return oneRun(tx.Query(ctx, `
		SELECT `+runColumns+runTables+`WHERE r.organization_id = $1 AND r.id = $2 FOR NO KEY UPDATE OF r`, org, run))
}

func selectRuns(ctx context.Context, q pg.Querier, org id.Organization, below id.RosterRun, limit int) ([]Run, error) {
	rows, err := q.Query(ctx, `
		SELECT `+runColumns+runTables+`WHERE r.organization_id = $1 AND r.state <> 'uploading' AND ($2 = 0 OR r.id < $2)
		ORDER BY r.id DESC LIMIT $3`, org, below, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanRun)
}

func selectWaiting(ctx context.Context, q pg.Querier, org id.Organization, limit int) ([]Run, error) {
	rows, err := q.Query(ctx, `
		SELECT `+runColumns+runTables+`WHERE r.organization_id = $1 AND r.state = 'held'
		ORDER BY r.id DESC LIMIT $2`, org, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanRun)
}

func selectNext(ctx context.Context, q pg.Querier, org id.Organization) (run id.RosterRun, err error) {
	err = q.QueryRow(ctx, `
		SELECT id FROM roster_runs WHERE organization_id = $1 AND state IN ('queued', 'applying') ORDER BY id LIMIT 1`, org).Scan(&run)
	return run, err
}

// selectNewer finds a run of the same source that was applied, or will be, after r.
func selectNewer(ctx context.Context, q pg.Querier, r Run) (newer id.RosterRun, err error) {
	err = q.QueryRow(ctx, `
		SELECT coalesce(max(n.id), 0) FROM roster_runs n
		WHERE n.organization_id = $1 AND n.source_id = $2 AND n.id > $3 AND NOT n.dry_run
		  AND n.state IN ('queued', 'applying', 'applied', 'undone')`, r.Organization, r.Source.ID, r.ID).Scan(&newer)
	return newer, err
}

func updatePlan(ctx context.Context, q pg.Querier, r Run, now time.Time) error {
	reasons, err := json.Marshal(r.Reasons)
	if err != nil {
		return err
	}
	if r.Reasons == nil {
		reasons = []byte("[]")
	}
	c := r.Counts
	_, err = q.Exec(ctx, `
		UPDATE roster_runs SET state = $3, created = $4, updated = $5, skipped = $6, deactivated = $7, classes_created = $8,
			classes_renamed = $9, seats_added = $10, seats_removed = $11, issues = $12, has_enrollments = $13, reasons = $14,
			fault_code = $15, fault = $16, stamp = $17, people_done = 0, classes_done = 0, updated_at = $18
		WHERE organization_id = $1 AND id = $2`,
		r.Organization, r.ID, r.State, c.Create, c.Update, c.Skip, c.Deactivate, c.ClassesCreated, c.ClassesRenamed,
		c.SeatsAdded, c.SeatsRemoved, r.Issues, r.HasEnrollments, reasons, r.FaultCode, r.Fault, r.Stamp, now)
	return err
}

func updateProgress(ctx context.Context, q pg.Querier, r Run) error {
	_, err := q.Exec(ctx, `
		UPDATE roster_runs SET people_done = $3, classes_done = $4 WHERE organization_id = $1 AND id = $2`,
		r.Organization, r.ID, r.PeopleDone, r.ClassesDone)
	return err
}

func setFinished(ctx context.Context, q pg.Querier, r Run, now time.Time) error {
	_, err := q.Exec(ctx, `
		WITH done AS (
			UPDATE roster_runs SET state = $3, fault_code = $4, fault = $5, updated_at = $6, finished_at = $6
			WHERE organization_id = $1 AND id = $2 RETURNING source_id, state, has_enrollments)
		UPDATE roster_sources s SET had_enrollments = true
		FROM done WHERE s.id = done.source_id AND done.state = 'applied' AND done.has_enrollments AND NOT s.had_enrollments`,
		r.Organization, r.ID, r.State, r.FaultCode, r.Fault, now)
	return err
}

func setApproved(ctx context.Context, q pg.Querier, r Run, by string, now time.Time) error {
	_, err := q.Exec(ctx, `
		UPDATE roster_runs SET decided_by = $3, approved_leavers = deactivated, finished_at = NULL, updated_at = $4
		WHERE organization_id = $1 AND id = $2`, r.Organization, r.ID, by, now)
	return err
}

func setDiscarded(ctx context.Context, q pg.Querier, r Run, by string, now time.Time) error {
	_, err := q.Exec(ctx, `
		UPDATE roster_runs SET state = 'discarded', decided_by = $3, updated_at = $4, finished_at = $4
		WHERE organization_id = $1 AND id = $2`, r.Organization, r.ID, by, now)
	return err
}

func setUndone(ctx context.Context, q pg.Querier, org id.Organization, run id.RosterRun, by string, now time.Time) error {
	_, err := q.Exec(ctx, `
		UPDATE roster_runs SET state = 'undone', decided_by = $3, updated_at = $4
		WHERE organization_id = $1 AND id = $2`, org, run, by, now)
	return err
}

func insertChunk(ctx context.Context, q pg.Querier, run id.RosterRun, n int, data []byte) error {
	_, err := q.Exec(ctx, `INSERT INTO roster_chunks (run_id, n, data) VALUES ($1, $2, $3)`, run, n, data)
	return err
}

func selectChunk(ctx context.Context, q pg.Querier, run id.RosterRun, n int) (data []byte, err error) {
	err = q.QueryRow(ctx, `SELECT data FROM roster_chunks WHERE run_id = $1 AND n = $2`, run, n).Scan(&data)
	return data, err
}

func deleteChunks(ctx context.Context, q pg.Querier, run id.RosterRun) error {
	_, err := q.Exec(ctx, `DELETE FROM roster_chunks WHERE run_id = $1`, run)
	return err
}

func queueDropIdentities(b *pg.Batch, r Run, all []Identity) {
	if len(all) == 0 {
		return
	}
	ids, _, users, _ := identityArrays(all)
	b.Queue(`
		DELETE FROM roster_identities i USING unnest($2::text[], $3::bigint[]) AS c(external_id, user_id)
		WHERE i.source_id = $1 AND i.external_id = c.external_id AND i.user_id = c.user_id`, r.Source.ID, ids, users)
}

func queueReplaceIdentities(b *pg.Batch, r Run, all []Identity) {
	if len(all) == 0 {
		return
	}
	ids, before, users, _ := identityArrays(all)
	b.Queue(`
		UPDATE roster_identities i SET external_id = c.external_id, present = true, left_at = NULL
		FROM unnest($2::text[], $3::text[], $4::bigint[]) AS c(external_id, before, user_id)
		WHERE i.source_id = $1 AND i.external_id = c.before AND i.user_id = c.user_id
		  AND NOT EXISTS (SELECT FROM roster_identities o WHERE o.source_id = $1 AND o.external_id = c.external_id)`,
		r.Source.ID, ids, before, users)
}

func queueInsertIdentities(b *pg.Batch, r Run, all []Identity) {
	if len(all) == 0 {
		return
	}
	ids, _, users, _ := identityArrays(all)
	b.Queue(`
		INSERT INTO roster_identities (source_id, organization_id, external_id, user_id, present)
		SELECT $1, $2, c.external_id, c.user_id, true FROM unnest($3::text[], $4::bigint[]) AS c(external_id, user_id)
		ON CONFLICT DO NOTHING`, r.Source.ID, r.Organization, ids, users)
}

func copyIdentities(ctx context.Context, q pg.Querier, r Run, all []Identity) error {
	_, err := q.CopyFrom(ctx, pgx.Identifier{"roster_identities"}, []string{"source_id", "organization_id", "external_id", "user_id", "present"},
		pgx.CopyFromSlice(len(all), func(i int) ([]any, error) {
			return []any{int64(r.Source.ID), int64(r.Organization), all[i].ExternalID, int64(all[i].User), true}, nil
		}))
	return err
}

func queueMarkIdentities(b *pg.Batch, r Run, all []Identity, present bool) {
	if len(all) == 0 {
		return
	}
	ids, _, users, ended := identityArrays(all)
	b.Queue(`
		UPDATE roster_identities i SET present = $5, left_at = CASE WHEN c.ended THEN $6::timestamptz END
		FROM unnest($2::text[], $3::bigint[], $4::boolean[]) AS c(external_id, user_id, ended)
		WHERE i.source_id = $1 AND i.external_id = c.external_id AND i.user_id = c.user_id`,
		r.Source.ID, ids, users, ended, present, r.Stamp)
}

func identityArrays(all []Identity) (ids, before []string, users []int64, ended []bool) {
	for _, i := range all {
		ids, before, users, ended = append(ids, i.ExternalID), append(before, i.BeforeID), append(users, int64(i.User)), append(ended, i.Ended)
	}
	return ids, before, users, ended
}

// Ending is a membership that an import ended, with the updated_at that it gave it.
type Ending struct {
	User id.User
	At   time.Time
}

func selectEndings(ctx context.Context, q pg.Querier, org id.Organization, users []id.User) ([]Ending, error) {
	rows, err := q.Query(ctx, `
		SELECT user_id, max(left_at) FROM roster_identities
		WHERE organization_id = $1 AND user_id = ANY ($2) AND left_at IS NOT NULL GROUP BY user_id`, org, users)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Ending])
}

const seatRows = `
	SELECT k.id AS class_id, i.user_id FROM unnest($2::text[], $3::text[]) AS c(class, person)
	JOIN roster_classes k ON k.source_id = $1 AND k.external_id = c.class
	JOIN roster_identities i ON i.source_id = $1 AND i.external_id = c.person`

func queueClassChanges(b *pg.Batch, r Run, action ClassAction, changes []ClassChange) {
	if len(changes) == 0 {
		return
	}
	var classes, names, persons []string
	for _, c := range changes {
		classes, names, persons = append(classes, c.Class), append(names, c.Name), append(persons, c.Person)
	}
	switch action {
	case CreateClass:
		b.Queue(`
			INSERT INTO roster_classes (organization_id, source_id, external_id, name, updated_at)
			SELECT $4, $1, c.class, c.name, $5 FROM unnest($2::text[], $3::text[]) AS c(class, name)
			ON CONFLICT DO NOTHING`, r.Source.ID, classes, names, r.Organization, r.Stamp)
	case RenameClass:
		b.Queue(`
			UPDATE roster_classes k SET name = c.name, updated_at = $4 FROM unnest($2::text[], $3::text[]) AS c(class, name)
			WHERE k.source_id = $1 AND k.external_id = c.class`, r.Source.ID, classes, names, r.Stamp)
	case AddSeat:
		b.Queue(`
			INSERT INTO roster_class_members AS m (class_id, user_id, active, updated_at)
			SELECT c.class_id, c.user_id, true, $4 FROM (`+seatRows+`) AS c
			LEFT JOIN members o ON o.organization_id = $5 AND o.user_id = c.user_id
			WHERE $6 OR o.role = 'member' AND o.status = 'active'
			ON CONFLICT (class_id, user_id) DO UPDATE SET active = true, updated_at = $4 WHERE NOT m.active`,
			r.Source.ID, classes, persons, r.Stamp, r.Organization, r.Undoes != 0)
	case RemoveSeat:
		b.Queue(`
			UPDATE roster_class_members m SET active = false, updated_at = $4 FROM (`+seatRows+`) AS c
			WHERE m.class_id = c.class_id AND m.user_id = c.user_id AND m.active`, r.Source.ID, classes, persons, r.Stamp)
	}
}

// clearOld deletes uploads that were given up, and what only whoever looks at a run's
// details needs; details of a run that is no more are found by the highest ids left.
func clearOld(ctx context.Context, q pg.Querier, abandoned, kept time.Time) error {
	_, err := q.Exec(ctx, `
		WITH given_up AS (DELETE FROM roster_runs WHERE state = 'uploading' AND created_at < $1),
		old AS (SELECT coalesce(max(id), 0) AS last FROM roster_runs WHERE created_at < $2),
		a AS (DELETE FROM roster_changes USING old WHERE run_id <= old.last),
		b AS (DELETE FROM roster_class_changes USING old WHERE run_id <= old.last)
		DELETE FROM roster_issues USING old WHERE run_id <= old.last`, abandoned, kept)
	return err
}

func selectHolders(ctx context.Context, q pg.Querier, org id.Organization, externalID string) ([]id.User, error) {
	rows, err := q.Query(ctx, `
		SELECT DISTINCT i.user_id FROM roster_sources s JOIN roster_identities i ON i.source_id = s.id
		WHERE s.organization_id = $1 AND i.external_id = $2 ORDER BY 1`, org, externalID)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[id.User])
}

func selectAliases(ctx context.Context, q pg.Querier, org id.Organization, user id.User) ([]Alias, error) {
	rows, err := q.Query(ctx, `
		SELECT s.name, i.external_id, i.present FROM roster_identities i JOIN roster_sources s ON s.id = i.source_id
		WHERE i.user_id = $2 AND s.organization_id = $1 ORDER BY s.name`, org, user)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Alias])
}

// selectHeld counts the runs of all organizations that wait for a person; a run is touched when
// it is held, and not again before it is decided.
func selectHeld(ctx context.Context, q pg.Querier) (n int, since time.Time, err error) {
	err = q.QueryRow(ctx, `
		SELECT count(*), coalesce(min(updated_at), 'epoch') FROM roster_runs WHERE state = 'held'`).Scan(&n, &since)
	return n, since, err
}
