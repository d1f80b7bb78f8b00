package roster

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

const sourceColumns = `s.id, s.name, s.authoritative_enabled, s.approval, s.guard_percent, s.had_enrollments,
	coalesce(s.managed_by, '') AS managed_by`

func oneSource(rows pgx.Rows, err error) (Source, error) {
	if err != nil {
		return Source{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Source])
}

func wakeSource(tx *pg.Tx, source id.RosterSource) {
	tx.Wake(SourceChannel, strconv.FormatInt(int64(source), 10))
}

// lockSource makes a source unless there is one of the name, and locks it.
func lockSource(
	ctx context.Context, tx *pg.Tx, org id.Organization, name string, now time.Time,
) (Source, error) {
	return oneSource(tx.Query(ctx, `
		INSERT INTO roster_sources AS s (organization_id, name, created_at, updated_at)
		VALUES ($1, $2, $3, $3)
		ON CONFLICT (organization_id, name) DO UPDATE SET name = s.name
		RETURNING `+sourceColumns, org, name, now))
}

func updateSource(ctx context.Context, tx *pg.Tx, org id.Organization, s Source, now time.Time) error {
	_, err := tx.Exec(ctx, `
		UPDATE roster_sources SET
			authoritative_enabled = @authoritative_enabled,
			approval = @approval,
			guard_percent = @guard_percent,
			managed_by = nullif(@managed_by, ''),
			updated_at = @now
		WHERE organization_id = @organization AND id = @source`, pg.Args{
		"organization":          org,
		"source":                s.ID,
		"authoritative_enabled": s.AuthoritativeEnabled,
		"approval":              s.Approval,
		"guard_percent":         s.GuardPercent,
		"managed_by":            s.ManagedBy,
		"now":                   now,
	})
	return err
}

// lockManagedSource locks the source that the resource keeps.
func lockManagedSource(ctx context.Context, tx *pg.Tx, managedBy string) (org id.Organization, s Source, err error) {
	rows, err := tx.Query(ctx, `
		SELECT s.organization_id, `+sourceColumns+` FROM roster_sources s WHERE s.managed_by = $1 FOR UPDATE`, managedBy)
	if err != nil {
		return 0, s, err
	}
	type owned struct {
		OrganizationID id.Organization
		Source
	}
	found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[owned])
	return found.OrganizationID, found.Source, err
}

// SourceManagers lists the resources whose names begin with the prefix and that keep sources.
func SourceManagers(ctx context.Context, q pg.Querier, prefix string) ([]string, error) {
	return pg.Column[string](ctx, q, `
		SELECT managed_by FROM roster_sources WHERE starts_with(managed_by, $1) ORDER BY 1`, prefix)
}

// LastRun reads the newest run of a source that is no preview. NotFound when there is none.
func LastRun(ctx context.Context, q pg.Querier, org id.Organization, source id.RosterSource) (Run, error) {
	r, err := oneRun(q.Query(ctx, selectRun+`
		AND r.source_id = $2 AND r.state <> 'uploading' AND NOT r.dry_run
		ORDER BY r.id DESC LIMIT 1`, org, source))
	return r, missing(err, 0)
}

// HeldRun reads the newest run of a source that waits for a decision. NotFound when there is none.
func HeldRun(ctx context.Context, q pg.Querier, org id.Organization, source id.RosterSource) (Run, error) {
	r, err := oneRun(q.Query(ctx, selectRun+`
		AND r.source_id = $2 AND r.state = 'held' AND `+IsCurrent+`
		ORDER BY r.id DESC LIMIT 1`, org, source))
	return r, missing(err, 0)
}

// FindSource reads a source by its name. While nothing has come from it, that is a source
// without an id, which may not send snapshots.
func FindSource(ctx context.Context, q pg.Querier, org id.Organization, name string) (Source, error) {
	s, err := oneSource(q.Query(ctx, `
		SELECT `+sourceColumns+` FROM roster_sources s WHERE s.organization_id = $1 AND s.name = $2`, org, name))
	if pg.None(err) {
		return Source{Name: name, Settings: standard}, nil
	}
	return s, err
}

// Sources lists up to limit names of the organization's sources.
func Sources(ctx context.Context, q pg.Querier, org id.Organization, limit int) ([]string, error) {
	return pg.Column[string](ctx, q, `
		SELECT name FROM roster_sources WHERE organization_id = $1 ORDER BY name LIMIT $2`, org, limit)
}

const selectRun = `
	SELECT
		r.id,
		r.organization_id AS organization,
		s.id AS source_id,
		s.name AS source_name,
		s.authoritative_enabled,
		s.approval,
		s.guard_percent,
		s.had_enrollments,
		coalesce(r.undoes, 0) AS undoes,
		r.mode,
		r.dry_run,
		CASE WHEN r.zip_only THEN 'zip' ELSE '' END AS form,
		r.state,
		r.requested_by,
		r.size,
		r.created AS "create",
		r.updated AS "update",
		r.skipped AS skip,
		r.deactivated AS deactivate,
		r.classes_created,
		r.classes_renamed,
		r.classes_rescheduled,
		r.seats_added,
		r.seats_removed,
		r.issues,
		r.has_enrollments,
		r.people_file,
		r.reasons,
		r.fault_code,
		r.fault,
		r.stamp,
		r.people_done,
		r.classes_done,
		r.decided_by,
		r.approved_leavers,
		r.created_at,
		r.finished_at
	FROM roster_runs r
	JOIN roster_sources s ON s.id = r.source_id
	WHERE r.organization_id = $1 `

// runRow is a run as selectRun reads it.
type runRow struct {
	Run
	Settings
	SourceID        id.RosterSource
	SourceName      string
	HadEnrollments  bool
	ApprovedLeavers *int
	Stamp           *time.Time
	FinishedAt      *time.Time
}

func scanRun(row pgx.CollectableRow) (Run, error) {
	r, err := pgx.RowToStructByName[runRow](row)
	r.Source = Source{ID: r.SourceID, Name: r.SourceName, Settings: r.Settings, HadEnrollments: r.HadEnrollments}
	if r.ApprovedLeavers != nil { // until the run is planned again, its counts are those that were shown
		r.Approved = &Approved{*r.ApprovedLeavers, r.SeatsRemoved}
	}
	if r.Stamp != nil {
		r.Run.Stamp = *r.Stamp
	}
	if r.FinishedAt != nil {
		r.Run.FinishedAt = *r.FinishedAt
	}
	return r.Run, err
}

func oneRun(rows pgx.Rows, err error) (Run, error) {
	if err != nil {
		return Run{}, err
	}
	return pgx.CollectExactlyOneRow(rows, scanRun)
}

func allRuns(rows pgx.Rows, err error) ([]Run, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanRun)
}

// Begin makes a run that waits for its upload. Submit says what it is to do.
func Begin(
	ctx context.Context, q pg.Querier, org id.Organization, by string, now time.Time,
) (id.RosterRun, error) {
	return insertRun(ctx, q, org, 0, by, now)
}

func insertRun(
	ctx context.Context, q pg.Querier, org id.Organization, undoes id.RosterRun, by string, now time.Time,
) (run id.RosterRun, err error) {
	err = q.QueryRow(ctx, `
		INSERT INTO roster_runs (
			organization_id,
			undoes,
			state,
			requested_by,
			created_at,
			updated_at
		)
		VALUES ($1, nullif($2::bigint, 0), 'uploading', $3, $4, $4)
		RETURNING id`, org, undoes, by, now).Scan(&run)
	return run, err
}

func countUnfinished(ctx context.Context, q pg.Querier, org id.Organization) (n int, err error) {
	err = q.QueryRow(ctx, `
		SELECT count(*) FROM roster_runs WHERE organization_id = $1 AND state IN ('queued', 'applying')`, org).Scan(&n)
	return n, err
}

func setQueued(ctx context.Context, q pg.Querier, org id.Organization, run id.RosterRun, d Draft, now time.Time) error {
	_, err := q.Exec(ctx, `
		UPDATE roster_runs SET
			state = 'queued',
			source_id = @source,
			mode = @mode,
			dry_run = @dry_run,
			zip_only = @zip_only,
			size = @size,
			updated_at = @now
		WHERE organization_id = @organization AND id = @run`, pg.Args{
		"organization": org,
		"run":          run,
		"source":       d.Source.ID,
		"mode":         d.Mode,
		"dry_run":      d.DryRun,
		"zip_only":     d.Form == ZipForm,
		"size":         d.Size,
		"now":          now,
	})
	return err
}

// Abandon removes a run whose upload failed.
func Abandon(ctx context.Context, q pg.Querier, org id.Organization, run id.RosterRun) error {
	_, err := q.Exec(ctx, `
		DELETE FROM roster_runs WHERE organization_id = $1 AND id = $2 AND state = 'uploading'`, org, run)
	return err
}

// Find reads a run. NotFound when the organization does not have it.
func Find(ctx context.Context, q pg.Querier, org id.Organization, run id.RosterRun) (Run, error) {
	r, err := oneRun(q.Query(ctx, selectRun+`AND r.id = $2`, org, run))
	return r, missing(err, run)
}

// Lock reads a run for the worker that carries it out, and keeps other workers from it until
// the transaction ends. NotFound when the organization does not have it.
func Lock(ctx context.Context, tx *pg.Tx, org id.Organization, run id.RosterRun) (Run, error) {
	r, err := oneRun(tx.Query(ctx, selectRun+`AND r.id = $2 FOR NO KEY UPDATE OF r`, org, run))
	return r, missing(err, run)
}

// List reads runs, the newest first: those below the given one, or from the newest on for 0.
func List(ctx context.Context, q pg.Querier, org id.Organization, below id.RosterRun, limit int) ([]Run, error) {
	return allRuns(q.Query(ctx, selectRun+`
		AND r.state <> 'uploading' AND ($2 = 0 OR r.id < $2)
		ORDER BY r.id DESC LIMIT $3`, org, below, limit))
}

// HeldRuns reads the runs that wait for a decision, the newest first. A run that is out of date (Newer)
// waits for nobody.
func HeldRuns(ctx context.Context, q pg.Querier, org id.Organization, limit int) ([]Run, error) {
	return allRuns(q.Query(ctx, selectRun+`
		AND r.state = 'held' AND `+IsCurrent+`
		ORDER BY r.id DESC LIMIT $2`, org, limit))
}

// IsCurrent is the condition on a held run r that it waits for a decision: no run of its source was applied after it, or will
// be.
const IsCurrent = `NOT EXISTS (SELECT FROM roster_runs n WHERE ` + isNewer + `)`

// Measure counts the held runs of all organizations that wait for a decision. A run's row is updated
// when it is held, and not again before somebody decides about it.
func Measure(ctx context.Context, q pg.Querier, now time.Time) (Lag, error) {
	var n int
	var since time.Time
	err := q.QueryRow(ctx, `
		SELECT count(*), coalesce(min(updated_at), 'epoch') FROM roster_runs r
		WHERE state = 'held' AND `+IsCurrent).Scan(&n, &since)
	if err != nil || n == 0 {
		return Lag{}, err
	}
	return Lag{n, max(0, now.Sub(since))}, nil
}

func selectNext(ctx context.Context, q pg.Querier, org id.Organization) (run id.RosterRun, err error) {
	err = q.QueryRow(ctx, `
		SELECT id FROM roster_runs
		WHERE organization_id = $1 AND state IN ('queued', 'applying')
		ORDER BY id LIMIT 1`, org).Scan(&run)
	return run, err
}

// selectStale finds a held run that is to end by itself.
func selectStale(ctx context.Context, q pg.Querier, waited time.Time) (org id.Organization, run id.RosterRun, err error) {
	err = q.QueryRow(ctx, `
		SELECT r.organization_id, r.id FROM roster_runs r JOIN roster_sources s ON s.id = r.source_id
		WHERE r.state = 'held' AND (r.updated_at < $1
		   OR EXISTS (SELECT FROM roster_runs n WHERE `+isNewer+` AND n.state IN ('applied', 'undone')))
		ORDER BY r.organization_id, r.id LIMIT 1`, waited).Scan(&org, &run)
	return org, run, err
}

// isNewer is the condition on n for the runs of r's source that were applied after r, or will be.
const isNewer = `n.organization_id = r.organization_id AND n.source_id = r.source_id AND n.id > r.id AND NOT n.dry_run
	AND n.state IN ('queued', 'applying', 'applied', 'undone')`

// Newer finds the last run that makes r out of date: a later one of the same source that was
// applied or will be; 0 when there is none.
func Newer(ctx context.Context, q pg.Querier, r Run) (newer id.RosterRun, err error) {
	err = q.QueryRow(ctx, `
		SELECT coalesce(max(n.id), 0) FROM roster_runs r JOIN roster_runs n ON `+isNewer+`
		WHERE r.organization_id = $1 AND r.id = $2`, r.Organization, r.ID).Scan(&newer)
	return newer, err
}

// NewerChange finds the last run after which r cannot be taken back: a later one of the same source
// that has changed something or may still do so; 0 when there is none. A run that has carried out a
// change says how far it has come.
func NewerChange(ctx context.Context, q pg.Querier, r Run) (newer id.RosterRun, err error) {
	err = q.QueryRow(ctx, `
		SELECT coalesce(max(id), 0) FROM roster_runs
		WHERE organization_id = $1 AND source_id = $2 AND id > $3 AND NOT dry_run
		  AND (state IN ('queued', 'applying') OR people_done > 0 OR classes_done > 0)`,
		r.Organization, r.Source.ID, r.ID).Scan(&newer)
	return newer, err
}

// SavePlan stores the outcome of a run's planning. The run's changes are stored before it
// (package diff).
func SavePlan(ctx context.Context, tx *pg.Tx, r Run, now time.Time) error {
	_, err := tx.Exec(ctx, `
		UPDATE roster_runs SET
			state = @state,
			created = @created,
			updated = @updated,
			skipped = @skipped,
			deactivated = @deactivated,
			classes_created = @classes_created,
			classes_renamed = @classes_renamed,
			classes_rescheduled = @classes_rescheduled,
			seats_added = @seats_added,
			seats_removed = @seats_removed,
			issues = @issues,
			has_enrollments = @has_enrollments,
			people_file = @people_file,
			reasons = coalesce(@reasons::jsonb, '[]'),
			fault_code = @fault_code,
			fault = @fault,
			stamp = @stamp,
			people_done = 0,
			classes_done = 0,
			updated_at = @now
		WHERE organization_id = @organization AND id = @run`, pg.Args{
		"organization":        r.Organization,
		"run":                 r.ID,
		"state":               r.State,
		"created":             r.Create,
		"updated":             r.Update,
		"skipped":             r.Skip,
		"deactivated":         r.Deactivate,
		"classes_created":     r.ClassesCreated,
		"classes_renamed":     r.ClassesRenamed,
		"classes_rescheduled": r.ClassesRescheduled,
		"seats_added":         r.SeatsAdded,
		"seats_removed":       r.SeatsRemoved,
		"issues":              r.Issues,
		"has_enrollments":     r.HasEnrollments,
		"people_file":         r.PeopleFile,
		"reasons":             r.Reasons,
		"fault_code":          r.FaultCode,
		"fault":               r.Fault,
		"stamp":               r.Stamp,
		"now":                 now,
	})
	return err
}

// SaveProgress stores how far the changes of a run are carried out.
func SaveProgress(ctx context.Context, q pg.Querier, r Run) error {
	_, err := q.Exec(ctx, `
		UPDATE roster_runs SET people_done = $3, classes_done = $4 WHERE organization_id = $1 AND id = $2`,
		r.Organization, r.ID, r.PeopleDone, r.ClassesDone)
	return err
}

func setFinished(ctx context.Context, q pg.Querier, r Run, now time.Time) error {
	_, err := q.Exec(ctx, `
		WITH done AS (
			UPDATE roster_runs SET
				state = @state,
				fault_code = @fault_code,
				fault = @fault,
				updated_at = @now,
				finished_at = @now
			WHERE organization_id = @organization AND id = @run
			RETURNING source_id, state, has_enrollments
		)
		UPDATE roster_sources s SET had_enrollments = true
		FROM done
		WHERE s.id = done.source_id AND done.state = 'applied' AND done.has_enrollments AND NOT s.had_enrollments`,
		pg.Args{
			"organization": r.Organization,
			"run":          r.ID,
			"state":        r.State,
			"fault_code":   r.FaultCode,
			"fault":        r.Fault,
			"now":          now,
		})
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

// MarkUndone marks the run that the undoing run r has taken back.
func MarkUndone(ctx context.Context, tx *pg.Tx, r Run, now time.Time) error {
	_, err := tx.Exec(ctx, `
		UPDATE roster_runs SET state = 'undone', decided_by = $3, updated_at = $4
		WHERE organization_id = $1 AND id = $2`, r.Organization, r.Undoes, r.RequestedBy, now)
	return err
}

// Clear removes uploads that were begun before abandoned and never completed, and the details
// of runs that are older than kept; the runs themselves stay. Details whose run is gone are
// below the highest of those runs too.
func Clear(ctx context.Context, q pg.Querier, abandoned, kept time.Time) error {
	if _, err := pg.Drop(ctx, q, "roster_runs", `state = 'uploading' AND created_at < $1`, abandoned); err != nil {
		return err
	}
	var last int64
	err := q.QueryRow(ctx, `SELECT coalesce(max(id), 0) FROM roster_runs WHERE created_at < $1`, kept).Scan(&last)
	if err != nil {
		return err
	}
	for _, table := range []string{"roster_changes", "roster_class_changes", "roster_issues"} {
		if _, err := pg.Drop(ctx, q, table, `run_id <= $1`, last); err != nil {
			return err
		}
	}
	return nil
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

// The statements below find each row of a batch by its key. Where the planner knows the source, it
// may go through all that the source has instead, for each row: it expects next to nothing of a
// source that is new since the last ANALYZE. OFFSET 0 and LIMIT 1 keep it from that.

func queueDropIdentities(b *pg.Batch, r Run, all []Identity) {
	if len(all) == 0 {
		return
	}
	ids, _, users, _ := identityArrays(all)
	b.Queue(`
		DELETE FROM roster_identities i
		USING (
			SELECT $1::bigint AS source_id, u.*
			FROM unnest($2::text[], $3::bigint[]) AS u(external_id, user_id)
			OFFSET 0
		) AS c
		WHERE i.source_id = c.source_id AND i.external_id = c.external_id AND i.user_id = c.user_id`,
		r.Source.ID, ids, users)
}

func queueReplaceIdentities(b *pg.Batch, r Run, all []Identity) {
	if len(all) == 0 {
		return
	}
	ids, before, users, _ := identityArrays(all)
	b.Queue(`
		UPDATE roster_identities i SET external_id = c.external_id, present = true, left_at = NULL
		FROM (
			SELECT $1::bigint AS source_id, u.*
			FROM unnest($2::text[], $3::text[], $4::bigint[]) AS u(external_id, before, user_id)
			OFFSET 0
		) AS c
		WHERE i.source_id = c.source_id AND i.external_id = c.before AND i.user_id = c.user_id
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

func queueMarkIdentities(b *pg.Batch, r Run, all []Identity, present bool) {
	if len(all) == 0 {
		return
	}
	ids, _, users, ended := identityArrays(all)
	b.Queue(`
		UPDATE roster_identities i SET present = $5, left_at = CASE WHEN c.ended THEN $6::timestamptz END
		FROM (
			SELECT $1::bigint AS source_id, u.*
			FROM unnest($2::text[], $3::bigint[], $4::boolean[]) AS u(external_id, user_id, ended)
			OFFSET 0
		) AS c
		WHERE i.source_id = c.source_id AND i.external_id = c.external_id AND i.user_id = c.user_id`,
		r.Source.ID, ids, users, ended, present, r.Stamp)
}

func identityArrays(all []Identity) (ids, before []string, users []int64, ended []bool) {
	for _, i := range all {
		ids = append(ids, i.ExternalID)
		before = append(before, i.BeforeID)
		users = append(users, int64(i.User))
		ended = append(ended, i.Ended)
	}
	return ids, before, users, ended
}

// CopyIdentities stores the external ids of people whom this transaction made.
func CopyIdentities(ctx context.Context, tx *pg.Tx, r Run, all []Identity) error {
	if len(all) == 0 {
		return nil
	}
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"roster_identities"},
		[]string{"source_id", "organization_id", "external_id", "user_id", "present"},
		pgx.CopyFromSlice(len(all), func(i int) ([]any, error) {
			return []any{int64(r.Source.ID), int64(r.Organization), all[i].ExternalID, int64(all[i].User), true}, nil
		}))
	return err
}

// Ending is a membership that an import ended, with the updated_at that it set.
type Ending struct {
	User id.User
	At   time.Time
}

// Endings reads when imports last ended the memberships of the users.
func Endings(ctx context.Context, q pg.Querier, org id.Organization, users []id.User) ([]Ending, error) {
	if len(users) == 0 {
		return nil, nil
	}
	rows, err := q.Query(ctx, `
		SELECT user_id, max(left_at) FROM roster_identities
		WHERE organization_id = $1 AND user_id = ANY ($2) AND left_at IS NOT NULL
		GROUP BY user_id`, org, users)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Ending])
}

// FindByExternalID reads whom the organization's sources mean by an external id. Several
// sources may mean several people.
func FindByExternalID(ctx context.Context, q pg.Querier, org id.Organization, externalID string) ([]id.User, error) {
	rows, err := q.Query(ctx, `
		SELECT DISTINCT i.user_id FROM roster_sources s
		JOIN roster_identities i ON i.source_id = s.id
		WHERE s.organization_id = $1 AND i.external_id = $2
		ORDER BY 1`, org, externalID)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[id.User])
}

// Alias is the external id by which a source knows a person.
type Alias struct {
	Source     string // its name
	ExternalID string
	Present    bool // in the source, as of its last import
}

// Aliases reads the external ids by which the organization's sources know the person.
func Aliases(ctx context.Context, q pg.Querier, org id.Organization, user id.User) ([]Alias, error) {
	rows, err := q.Query(ctx, `
		SELECT s.name, i.external_id, i.present FROM roster_identities i
		JOIN roster_sources s ON s.id = i.source_id
		WHERE i.user_id = $2 AND s.organization_id = $1
		ORDER BY s.name`, org, user)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Alias])
}

// Touches lists up to limit of what runs of the organization did about a person until that time, the last one
// first. Previews are not among them, nor is the run that made the person's account.
func Touches(ctx context.Context, q pg.Querier, org id.Organization, user id.User, until time.Time, limit int) ([]Touch, error) {
	return pg.List[Touch](ctx, q, `
		SELECT
			r.id AS run,
			s.name AS source,
			coalesce(r.undoes, 0) AS undoes,
			r.state,
			r.requested_by,
			r.decided_by,
			r.reasons,
			coalesce(r.stamp, r.created_at) AS at,
			c.line,
			c.effects,
			c.external_id,
			coalesce(c.before_external_id, '') AS before_id,
			c.email,
			coalesce(c.before_email, '') AS before_email
		FROM roster_changes c
		JOIN roster_runs r ON r.id = c.run_id
		JOIN roster_sources s ON s.id = r.source_id
		WHERE c.user_id = $2 AND r.organization_id = $1 AND NOT r.dry_run AND coalesce(r.stamp, r.created_at) <= $3
		ORDER BY coalesce(r.stamp, r.created_at) DESC, r.id DESC, c.n DESC LIMIT $4`, org, user, until, limit)
}

// remarkedRuns is how many of a source's latest runs Remarks looks at.
const remarkedRuns = 500

// Remarks lists up to limit issues that runs of the organization found with a person's rows until that time, the
// last one first.
func Remarks(ctx context.Context, q pg.Querier, org id.Organization, user id.User, until time.Time, limit int) ([]Remark, error) {
	return pg.List[Remark](ctx, q, `
		SELECT
			r.id AS run,
			s.name AS source,
			r.at,
			t.file,
			t.line,
			t.person_external_id,
			t.code,
			t.severity,
			t.message
		FROM roster_identities i
		JOIN roster_sources s ON s.id = i.source_id
		CROSS JOIN LATERAL (
			SELECT id, coalesce(stamp, created_at) AS at FROM roster_runs
			WHERE organization_id = $1 AND source_id = s.id AND NOT dry_run
			ORDER BY id DESC LIMIT $5
		) AS r
		CROSS JOIN LATERAL (
			SELECT * FROM roster_issues
			WHERE run_id = r.id AND person_external_id = i.external_id AND person_external_id <> ''
			ORDER BY n LIMIT $4
		) AS t
		WHERE i.user_id = $2 AND s.organization_id = $1 AND r.at <= $3
		ORDER BY r.at DESC, r.id DESC, t.n DESC LIMIT $4`, org, user, until, limit, remarkedRuns)
}

// seatRows are the ids of the class and the person of each change.
const seatRows = `
	SELECT k.id AS class_id, i.user_id
	FROM unnest($2::text[], $3::text[]) AS c(class, person)
	CROSS JOIN LATERAL (
		SELECT id FROM roster_classes WHERE source_id = $1 AND external_id = c.class LIMIT 1) AS k
	CROSS JOIN LATERAL (
		SELECT user_id FROM roster_identities WHERE source_id = $1 AND external_id = c.person LIMIT 1) AS i`

func queueClassChanges(b *pg.Batch, r Run, action ClassAction, changes []ClassChange) {
	if len(changes) == 0 {
		return
	}
	var classes, names, persons []string
	var starts, ends []clock.Date
	for _, c := range changes {
		classes = append(classes, c.Class)
		names = append(names, c.Name)
		persons = append(persons, c.Person)
		starts, ends = append(starts, c.StartDate), append(ends, c.EndDate)
	}
	switch action {
	case CreateClass:
		b.Queue(`
			INSERT INTO roster_classes (organization_id, source_id, external_id, name, start_date, end_date, updated_at)
			SELECT $4, $1, c.class, c.name, c.starts, c.ends, $5
			FROM unnest($2::text[], $3::text[], $6::date[], $7::date[]) AS c(class, name, starts, ends)
			ON CONFLICT DO NOTHING`, r.Source.ID, classes, names, r.Organization, r.Stamp, starts, ends)
	case RenameClass:
		b.Queue(`
			UPDATE roster_classes k SET name = c.name, updated_at = $4
			FROM unnest($2::text[], $3::text[]) AS c(class, name)
			WHERE k.source_id = $1 AND k.external_id = c.class`, r.Source.ID, classes, names, r.Stamp)
	case RescheduleClass:
		b.Queue(`
			UPDATE roster_classes k SET start_date = c.starts, end_date = c.ends, updated_at = $4
			FROM unnest($2::text[], $3::date[], $5::date[]) AS c(class, starts, ends)
			WHERE k.source_id = $1 AND k.external_id = c.class`, r.Source.ID, classes, starts, r.Stamp, ends)
	case AddSeat:
		queueAddSeats(b, r, classes, persons)
	case RemoveSeat:
		b.Queue(`
			UPDATE roster_class_members m SET active = false, updated_at = $4
			FROM (`+seatRows+`) AS c
			WHERE m.class_id = c.class_id AND m.user_id = c.user_id AND m.active`, r.Source.ID, classes, persons, r.Stamp)
	}
}

// queueAddSeats seats active students alone, but for a run that takes another one back.
func queueAddSeats(b *pg.Batch, r Run, classes, persons []string) {
	b.Queue(`
		INSERT INTO roster_class_members AS m (class_id, user_id, active, updated_at)
		SELECT c.class_id, c.user_id, true, $4
		FROM (`+seatRows+`) AS c
		LEFT JOIN LATERAL (
			SELECT role, status FROM members WHERE organization_id = $5 AND user_id = c.user_id LIMIT 1
		) AS o ON true
		WHERE $6 OR o.role = 'member' AND o.status = 'active'
		ON CONFLICT (class_id, user_id) DO UPDATE SET active = true, updated_at = $4 WHERE NOT m.active`,
		r.Source.ID, classes, persons, r.Stamp, r.Organization, r.Undoes != 0)
}
