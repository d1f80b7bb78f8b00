package alert

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// isHeld is the condition on roster runs r that wait for a decision. Such a row is not updated before somebody decides.
const isHeld = `r.state = 'held' AND ` + roster.IsCurrent

// found is what needs somebody at the moment. A URL is failing since its last failure at the time when this is first
// seen, which is at most a sweep late.
const found = ` found AS (
	SELECT
		organization_id,
		'url_switched_off' AS type,
		id AS subject,
		(extract(epoch FROM switched_off_at) * 1000000)::bigint AS occasion,
		switched_off_at AS since
	FROM webhook_endpoints
	WHERE NOT switched_on AND switched_off_at > @news
	UNION ALL
	SELECT e.organization_id, 'url_failing', e.id, h.runs, h.last_failure_at
	FROM webhook_endpoints e JOIN webhook_health h ON h.endpoint_id = e.id
	WHERE e.switched_on AND h.consecutive_failures > 0 AND h.last_failure_at IS NOT NULL
	UNION ALL
	SELECT
		r.organization_id,
		'roster_held',
		r.source_id,
		(extract(epoch FROM max(r.updated_at)) * 1000000)::bigint,
		max(r.updated_at)
	FROM roster_runs r
	WHERE ` + isHeld + `
	GROUP BY r.organization_id, r.source_id
) `

// note remembers what needs somebody, and forgets what does not any more. Occasions of a subject grow: what is left once a later
// one is mended was mailed in its time.
func note(ctx context.Context, q pg.Querier, now time.Time) error {
	_, err := q.Exec(ctx, `WITH`+found+`
		, seen AS (
			INSERT INTO staff_alerts AS a (organization_id, type, subject, occasion, since)
			SELECT f.organization_id, f.type, f.subject, f.occasion, f.since
			FROM found f JOIN organizations o ON o.id = f.organization_id
			WHERE o.erased_at IS NULL
			ON CONFLICT (organization_id, type, subject) DO UPDATE
			SET occasion = excluded.occasion, since = excluded.since, mailed = false
			WHERE a.occasion < excluded.occasion
		)
		DELETE FROM staff_alerts a
		WHERE (a.mailed_at IS NULL OR a.mailed_at <= @again) AND NOT EXISTS (
			SELECT FROM found f
			WHERE f.organization_id = a.organization_id AND f.type = a.type AND f.subject = a.subject)`,
		pg.Args{"news": now.Add(-news), "again": now.Add(-pause)})
	return err
}

// due is an occasion that somebody is to be mailed about.
type due struct {
	Organization id.Organization
	Type         email.Type
	Subject      int64
	Occasion     int64
	Since        time.Time
}

// selectDue leaves out what was mended since note.
func selectDue(ctx context.Context, q pg.Querier, now time.Time) ([]due, error) {
	return pg.List[due](ctx, q, `WITH`+found+`
		SELECT
			a.organization_id AS organization,
			a.type,
			a.subject,
			a.occasion,
			a.since
		FROM staff_alerts a
		JOIN found f ON f.organization_id = a.organization_id
			AND f.type = a.type
			AND f.subject = a.subject
			AND f.occasion = a.occasion
		WHERE NOT a.mailed AND (a.mailed_at IS NULL OR a.mailed_at <= @again)
			AND (a.type <> 'url_failing' OR f.since >= a.since + make_interval(secs => @failing))
		ORDER BY a.organization_id, a.type, a.subject`,
		pg.Args{"news": now.Add(-news), "again": now.Add(-pause), "failing": failing.Seconds()})
}

// setMailed returns false when another process has mailed it, or there is another occasion by now.
func setMailed(ctx context.Context, tx *pg.Tx, d due, now time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `
		UPDATE staff_alerts SET mailed = true, mailed_at = $5
		WHERE organization_id = $1 AND type = $2 AND subject = $3 AND occasion = $4 AND NOT mailed`,
		d.Organization, d.Type, d.Subject, d.Occasion, now)
	return tag.RowsAffected() == 1, err
}

// selectHeld finds the run of the source that was held last.
func selectHeld(ctx context.Context, q pg.Querier, org id.Organization, source int64) (run id.RosterRun, err error) {
	err = q.QueryRow(ctx, `
		SELECT r.id FROM roster_runs r
		WHERE r.organization_id = $1 AND r.source_id = $2 AND `+isHeld+`
		ORDER BY r.updated_at DESC, r.id DESC LIMIT 1`, org, source).Scan(&run)
	return run, err
}

// url is what a mail says of a webhook URL.
type url struct {
	URL      string
	Reason   string // why it is off
	Failures int    // in a row
	Cause    string // of the last failure
	Waiting  int    // what is pending, and what was skipped as the URL is off
}

// hoursOfRetries bounds the search for deliveries that a URL skipped: their ids are of the moments of their events.
const hoursOfRetries = 24

func selectURL(ctx context.Context, q pg.Querier, org id.Organization, endpoint id.Endpoint, since time.Time) (url, error) {
	return pg.One[url](ctx, q, `
		SELECT
			e.url,
			coalesce(e.switched_off_reason, '') AS reason,
			coalesce(h.consecutive_failures, 0) AS failures,
			coalesce((
				SELECT j.cause FROM webhook_journal j
				WHERE j.organization_id = e.organization_id AND j.endpoint_id = e.id
					AND j.delivery_id >= uuid7_floor(@first) AND j.outcome <> 'delivered'
				ORDER BY j.delivery_id DESC, j.number DESC LIMIT 1), '') AS cause,
			(SELECT count(*) FROM (
				SELECT FROM webhook_queue q
				WHERE q.organization_id = e.organization_id AND q.endpoint_id = e.id
				LIMIT @most) AS w)
			+ (SELECT count(*) FROM (
				SELECT FROM webhook_journal j
				WHERE j.organization_id = e.organization_id
					AND j.endpoint_id = e.id
					AND j.delivery_id >= uuid7_floor(@first)
					AND j.status = 'skipped'
				LIMIT @most) AS s) AS waiting
		FROM webhook_endpoints e LEFT JOIN webhook_health h ON h.endpoint_id = e.id
		WHERE e.organization_id = @org AND e.id = @endpoint`,
		pg.Args{"org": org, "endpoint": endpoint, "first": since.Add(-hoursOfRetries * time.Hour), "most": email.MostWaiting})
}
