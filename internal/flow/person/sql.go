package person

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// section is a part of an export. Its query gives a row for each object, about the person $1.
type section struct{ object, query string }

// address is that of the person $1.
const address = `(SELECT email FROM accounts WHERE id = $1)`

// ofRuns are the roster runs whose source knows the person $1, with the person's external id there. Details are
// kept for a time only, so there are few.
const ofRuns = `
	FROM roster_identities i
	JOIN roster_sources s ON s.id = i.source_id
	JOIN organizations o ON o.id = s.organization_id
	JOIN roster_runs r ON r.organization_id = s.organization_id AND r.source_id = s.id`

// score writes a column of ten-thousandths as the score that it is.
func score(column string) string { return `trim_scale(` + column + `::numeric / 10000)` }

// sections are in the order of an export. Scores are as they are shown; secrets, their hashes and numbers that
// only order lists are left out.
var sections = []section{
	{"account", `
		SELECT
			a.id AS user_id,
			a.email,
			a.username,
			a.first_name,
			a.last_name,
			a.password_hash IS NOT NULL AS has_password,
			a.own_password AS chose_password,
			a.must_change_password,
			a.language,
			a.last_login,
			o.slug AS created_by,
			a.created_via,
			a.created_at,
			a.updated_at
		FROM accounts a LEFT JOIN organizations o ON o.id = a.created_by_organization
		WHERE a.id = $1`},
	{"name", `
		SELECT
			o.slug AS organization,
			coalesce(d.first_name, a.first_name) AS first_name,
			coalesce(d.last_name, a.last_name) AS last_name
		FROM directory d
		JOIN accounts a ON a.id = d.user_id
		JOIN organizations o ON o.id = d.organization_id
		WHERE d.user_id = $1 ORDER BY o.id`},
	{"membership", `
		SELECT
			o.slug AS organization,
			m.role,
			m.status,
			m.created_via,
			m.joined_at,
			m.updated_at
		FROM members m JOIN organizations o ON o.id = m.organization_id
		WHERE m.user_id = $1 ORDER BY o.id`},
	{"session", `
		SELECT
			s.data -> 'values' ->> 'agent' AS browser,
			s.data -> 'values' ->> 'from' AS address,
			s.data -> 'values' ->> 'began' AS began_at,
			s.data -> 'values' ->> 'used' AS used_at,
			s.data -> 'values' ->> 'used_from' AS used_address,
			s.data -> 'values' ->> 'proof' AS proof,
			s.expires_at
		FROM sessions s WHERE s.user_id = $1 ORDER BY s.expires_at, s.hash`},
	{"second_factor", `
		SELECT
			f.kind,
			f.name,
			f.created_at,
			f.last_used_at
		FROM factors f WHERE f.user_id = $1 ORDER BY f.id`},
	{"unwanted_mail", `
		SELECT
			o.slug AS organization,
			m.type,
			m.created_at
		FROM mail_optouts m JOIN organizations o ON o.id = m.organization_id
		WHERE m.user_id = $1 ORDER BY m.organization_id, m.type`},
	{"set_password_link", `
		SELECT
			o.slug AS organization,
			l.mailed,
			l.created_at,
			l.expires_at
		FROM set_password_tokens l LEFT JOIN organizations o ON o.id = l.organization_id
		WHERE l.user_id = $1 ORDER BY l.created_at, l.hash`},
	{"password_reset", `SELECT r.created_at FROM password_resets r WHERE r.email = ` + address + ` ORDER BY r.id`},
	{"enrollment", `
		SELECT
			o.slug AS organization,
			e.id AS enrollment_id,
			c.id AS course_id,
			c.name AS course_name,
			c.course_type,
			e.state,
			e.start_date,
			e.end_date,
			e.grace_period_end,
			e.source,
			e.notified_status,
			e.notified_end_dates,
			ARRAY(SELECT r.ref FROM enrollment_refs r WHERE r.enrollment_id = e.id
				ORDER BY r.created_at, r.ref) AS external_refs,
			` + score("g.target_score_e4") + ` AS target_score,
			g.exam_date,
			e.created_at,
			e.updated_at
		FROM enrollments e
		JOIN organizations o ON o.id = e.organization_id
		JOIN courses c ON c.id = e.course_id
		LEFT JOIN plan_goals g ON g.enrollment_id = e.id
		WHERE e.user_id = $1 ORDER BY e.id`},
	{"starter_test", `
		SELECT
			o.slug AS organization,
			t.course_id,
			c.code,
			c.title,
			t.placed_at
		FROM organizations o
		JOIN starter_tests t ON t.organization_id = o.id AND t.user_id = $1
		JOIN catalog_items c ON c.id = t.item_id
		ORDER BY o.id, t.item_id`},
	{"secure_browser", `
		SELECT o.slug AS organization, b.since
		FROM organizations o JOIN plan_browsers b ON b.organization_id = o.id AND b.user_id = $1 ORDER BY o.id`},
	{"assignment", `
		SELECT
			o.slug AS organization,
			a.id AS assignment_id,
			a.kind,
			c.code,
			c.title,
			a.status,
			a.source,
			a.assigned_at,
			a.due_at,
			a.completed_at,
			a.overdue_at,
			a.result_ref AS result_id,
			a.updated_at
		FROM organizations o
		JOIN assignments a ON a.organization_id = o.id AND a.user_id = $1
		JOIN catalog_items c ON c.id = a.item_id
		ORDER BY o.id, a.position`},
	{"result", `
		SELECT
			o.slug AS organization,
			r.ref AS result_id,
			r.kind,
			r.type,
			c.code,
			c.title,
			r.assignment_id,
			r.attempt,
			r.section,
			r.state,
			r.started_at,
			r.completed_at,
			r.released_at,
			` + score("r.score_e4") + ` AS score,
			` + score("r.max_score_e4") + ` AS max_score,
			r.sections,
			r.final_at,
			EXISTS (SELECT FROM plan_browser_sessions b
				WHERE b.organization_id = o.id AND b.ref = r.ref) AS secure_browser,
			r.updated_at
		FROM organizations o
		CROSS JOIN LATERAL (
			SELECT * FROM results WHERE organization_id = o.id AND user_id = $1 AND position IS NOT NULL
			UNION ALL
			SELECT * FROM results WHERE organization_id = o.id AND user_id = $1 AND position IS NULL) AS r
		JOIN catalog_items c ON c.id = r.item_id
		ORDER BY o.id, r.ref`},
	{"plan", `
		SELECT
			o.slug AS organization,
			p.id AS plan_id,
			p.enrollment_id,
			p.exam,
			p.status,
			` + score("p.target_score_e4") + ` AS target_score,
			p.exam_date,
			p.time_zone,
			p.pace,
			p.custom_interval_days,
			p.section_minimums,
			p.practice_drills,
			p.extra_recipients,
			p.level,
			p.at_risk,
			` + score("p.official_score_e4") + ` AS official_score,
			p.official_sections,
			p.official_on,
			p.news,
			p.started_at,
			p.closed_at,
			p.updated_at
		FROM organizations o JOIN plans p ON p.organization_id = o.id AND p.user_id = $1 ORDER BY p.id`},
	{"plan_test", `
		SELECT
			t.plan_id,
			t.slot,
			t.kind,
			t.section,
			t.state,
			t.opens_on,
			t.due_on,
			t.decided_on,
			t.fixed,
			t.late,
			t.item_id,
			t.assignment_id,
			t.finished_on,
			` + score("t.score_e4") + ` AS score,
			t.sections
		FROM plan_tests t JOIN plans p ON p.id = t.plan_id WHERE p.user_id = $1 ORDER BY t.plan_id, t.slot`},
	{"plan_drill", `
		SELECT
			d.plan_id,
			d.slot,
			d.section,
			d.item_id,
			d.assignment_id,
			d.due_on
		FROM plan_drills d JOIN plans p ON p.id = d.plan_id WHERE p.user_id = $1 ORDER BY d.plan_id, d.slot, d.section`},
	{"plan_history", `
		SELECT
			h.plan_id,
			h.at,
			h.actor,
			h.event,
			h.detail
		FROM plan_history h JOIN plans p ON p.id = h.plan_id WHERE p.user_id = $1 ORDER BY h.plan_id, h.id`},
	// A mail about the person to somebody else keeps its receiver to itself, and a mail to the person about
	// somebody else its text.
	{"email", `
		SELECT
			o.slug AS organization,
			m.type,
			CASE WHEN m.recipient = ` + address + ` THEN m.recipient END AS recipient,
			CASE WHEN m.user_id = $1 THEN m.params END AS content,
			m.status,
			m.detail,
			m.attempts,
			m.created_at,
			m.updated_at
		FROM emails m LEFT JOIN organizations o ON o.id = m.organization_id
		WHERE m.user_id = $1 OR m.recipient = ` + address + ` ORDER BY m.id`},
	{"activity_day", `
		SELECT
			o.slug AS organization,
			d.date,
			d.first_seen_at,
			d.last_seen_at,
			d.visits,
			d.active_minutes,
			d.page_views,
			d.tests_started,
			d.tests_completed
		FROM activity_days d JOIN organizations o ON o.id = d.organization_id
		WHERE d.user_id = $1 ORDER BY d.organization_id, d.date`},
	{"external_id", `
		SELECT
			o.slug AS organization,
			s.name AS source,
			i.external_id,
			i.present,
			i.left_at
		FROM roster_identities i
		JOIN roster_sources s ON s.id = i.source_id
		JOIN organizations o ON o.id = s.organization_id
		WHERE i.user_id = $1 ORDER BY s.id`},
	{"lms_subject", `
		SELECT
			o.slug AS organization,
			r.name AS lms,
			r.issuer,
			p.subject,
			p.created_at
		FROM lms_people p
		JOIN lms_registrations r ON r.organization_id = p.organization_id AND r.id = p.registration_id
		JOIN organizations o ON o.id = p.organization_id
		WHERE p.user_id = $1 ORDER BY o.id, r.id`},
	{"lms_mark", `
		SELECT
			o.slug AS organization,
			r.name AS lms,
			m.item_id,
			` + score("m.score_e4") + ` AS score,
			m.scored_at,
			m.sent_at,
			m.attempts
		FROM lms_marks m
		JOIN lms_registrations r ON r.organization_id = m.organization_id AND r.id = m.registration_id
		JOIN organizations o ON o.id = m.organization_id
		WHERE m.user_id = $1 AND m.version > 0 ORDER BY o.id, r.id, m.item_id`},
	{"class_place", `
		SELECT
			o.slug AS organization,
			s.name AS source,
			c.external_id AS class_external_id,
			c.name AS class_name,
			c.start_date AS class_start_date,
			c.end_date AS class_end_date,
			m.active,
			m.updated_at
		FROM roster_identities i
		JOIN roster_sources s ON s.id = i.source_id
		JOIN organizations o ON o.id = s.organization_id
		JOIN roster_classes c ON c.source_id = s.id
		JOIN roster_class_members m ON m.class_id = c.id AND m.user_id = $1
		WHERE i.user_id = $1 ORDER BY c.id`},
	{"roster_change", `
		SELECT
			o.slug AS organization,
			c.run_id,
			c.line,
			c.action,
			c.external_id,
			c.email,
			c.first_name,
			c.last_name,
			c.before_external_id,
			c.before_email,
			c.before_first_name,
			c.before_last_name
		FROM roster_changes c
		JOIN roster_runs r ON r.id = c.run_id
		JOIN organizations o ON o.id = r.organization_id
		WHERE c.user_id = $1
		UNION ALL
		SELECT
			o.slug,
			c.run_id,
			c.line,
			c.action,
			c.external_id,
			c.email,
			c.first_name,
			c.last_name,
			NULL,
			NULL,
			NULL,
			NULL` + ofRuns + `
		JOIN roster_changes c ON c.run_id = r.id AND c.user_id IS NULL
			AND (c.external_id = i.external_id OR c.email = ` + address + `)
		WHERE i.user_id = $1
		ORDER BY 2, 3`},
	{"class_change", `
		SELECT
			o.slug AS organization,
			c.run_id,
			c.action,
			c.class_external_id,
			c.person_external_id` + ofRuns + `
		JOIN roster_class_changes c ON c.run_id = r.id AND c.person_external_id = i.external_id
		WHERE i.user_id = $1 ORDER BY c.run_id, c.n`},
	{"roster_issue", `
		SELECT
			o.slug AS organization,
			t.run_id,
			t.file,
			t.line,
			t.person_external_id,
			t.code,
			t.severity,
			t.message` + ofRuns + `
		JOIN roster_issues t ON t.run_id = r.id AND t.person_external_id = i.external_id AND t.person_external_id <> ''
		WHERE i.user_id = $1 ORDER BY t.run_id, t.n`},
	{"event", `
		SELECT
			e.id AS event_id,
			o.slug AS organization,
			e.type,
			e.data,
			e.created_at
		FROM webhook_events e JOIN organizations o ON o.id = e.organization_id
		WHERE e.user_id = $1 ORDER BY e.id`},
	{"audit_entry", `
		SELECT
			l.id,
			o.slug AS organization,
			l.actor_kind,
			CASE WHEN l.actor_id = $1 AND l.actor_kind IN ('staff', 'student') THEN l.actor_name END AS actor,
			l.action,
			l.target,
			l.address,
			l.times,
			l.created_at
		FROM audit_log l LEFT JOIN organizations o ON o.id = l.organization_id
		WHERE l.actor_id = $1 AND l.actor_kind IN ('staff', 'student')
			OR l.target = 'user ' || $1::bigint OR strpos(l.target, ` + address + `) > 0
		ORDER BY l.id`},
	// Last, as they have no index: each day is read whole.
	{"activity_event", `
		SELECT
			o.slug AS organization,
			e.at,
			e.kind
		FROM activity_events e JOIN organizations o ON o.id = e.organization_id
		WHERE e.user_id = $1 ORDER BY e.at, e.kind`},
}

// eachLine calls each with what the query gives, a JSON object a row, which begins with the name of its kind.
func eachLine(ctx context.Context, q pg.Querier, s section, user id.User, each func(json.RawMessage) error) error {
	rows, err := q.Query(ctx, `
		SELECT to_json(exported) FROM (SELECT '`+s.object+`' AS object, found.* FROM (`+s.query+`) AS found) AS exported`, user)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var line json.RawMessage
		if err := rows.Scan(&line); err != nil {
			return err
		}
		var one bytes.Buffer // stored JSON may have line breaks
		if err := json.Compact(&one, line); err != nil {
			return err
		}
		if err := each(one.Bytes()); err != nil {
			return err
		}
	}
	return rows.Err()
}

// inSnapshot runs fn in a transaction that sees the database as of one moment, with times in UTC.
func inSnapshot(ctx context.Context, db *pg.DB, fn func(q pg.Querier) error) error {
	tx, err := db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer func() {
		// When the caller has gone, the connection still has to go back without a transaction.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = tx.Rollback(ctx)
	}()
	if _, err := tx.Exec(ctx, `SET LOCAL TIME ZONE 'UTC'`); err != nil {
		return err
	}
	return fn(tx)
}

func selectErasure(ctx context.Context, q pg.Querier, user id.User) (e Erasure, known bool, err error) {
	e.User = user
	var finished *time.Time
	err = q.QueryRow(ctx, `SELECT erased_at, finished_at FROM erasures WHERE user_id = $1`, user).Scan(&e.At, &finished)
	if pg.None(err) {
		return e, false, nil
	}
	if finished != nil {
		e.Finished = *finished
	}
	return e, err == nil, err
}

func insertErasure(ctx context.Context, q pg.Querier, e Erasure, sealed []byte) error {
	_, err := q.Exec(ctx, `INSERT INTO erasures (user_id, erased_at, sealed) VALUES ($1, $2, $3)`, e.User, e.At, sealed)
	return err
}

func erasePerson(ctx context.Context, q pg.Querier, user id.User) error {
	_, err := q.Exec(ctx, `SELECT erase_person($1)`, user)
	return err
}

// selectCallings leaves out addresses of before that are somebody else's by now.
func selectCallings(ctx context.Context, q pg.Querier, user id.User) (c callings, err error) {
	err = q.QueryRow(ctx, `SELECT ARRAY[email], username FROM accounts WHERE id = $1`, user).Scan(&c.Addresses, &c.Username)
	if err != nil {
		return c, err
	}
	before, err := pg.Column[string](ctx, q, `
		SELECT DISTINCT c.before_email FROM roster_changes c
		WHERE c.user_id = $1 AND c.before_email <> '' AND NOT EXISTS (SELECT FROM accounts a WHERE a.email = c.before_email)`, user)
	if err != nil {
		return c, err
	}
	c.Addresses = append(c.Addresses, before...)
	c.ExternalIDs, err = pg.List[externalID](ctx, q, `
		SELECT source_id AS source, external_id AS id FROM roster_identities WHERE user_id = $1`, user)
	return c, err
}

// selectRemarked finds the ids by which sources call somebody whom their imports left alone.
func selectRemarked(ctx context.Context, q pg.Querier, user id.User) ([]externalID, error) {
	return pg.List[externalID](ctx, q, `
		SELECT DISTINCT r.source_id AS source, c.person_external_id AS id
		FROM roster_issues c JOIN roster_runs r ON r.id = c.run_id
		WHERE c.user_id = $1 AND c.person_external_id <> '' AND r.source_id IS NOT NULL`, user)
}

// dueErasure is one that the worker goes on with.
type dueErasure struct {
	User     id.User
	At       time.Time
	Sealed   []byte
	Searched bool // once
}

// selectDue finds erasures that nobody has searched for yet, and those from before that wait for no roster run.
func selectDue(ctx context.Context, q pg.Querier, before time.Time) ([]dueErasure, error) {
	return pg.List[dueErasure](ctx, q, `
		SELECT
			e.user_id AS "user",
			e.erased_at AS at,
			e.sealed,
			e.searched_at IS NOT NULL AS searched
		FROM erasures e
		WHERE e.sealed IS NOT NULL AND (e.searched_at IS NULL
			OR e.erased_at <= $1 AND NOT EXISTS (SELECT FROM roster_runs r
				WHERE r.state IN ('uploading', 'queued', 'applying') AND r.created_at <= e.erased_at))
		ORDER BY e.erased_at, e.user_id LIMIT 100`, before)
}

func setSearched(ctx context.Context, q pg.Querier, user id.User, now time.Time) error {
	_, err := q.Exec(ctx, `UPDATE erasures SET searched_at = $2 WHERE user_id = $1`, user, now)
	return err
}

func setFinished(ctx context.Context, q pg.Querier, user id.User, now time.Time) error {
	_, err := q.Exec(ctx, `UPDATE erasures SET sealed = NULL, finished_at = $2 WHERE user_id = $1`, user, now)
	return err
}

// selectNobodys leaves out addresses that have an account.
func selectNobodys(ctx context.Context, q pg.Querier, addresses []string) ([]string, error) {
	nobodys, err := pg.Column[string](ctx, q, `
		SELECT x.address FROM unnest($1::text[]) AS x(address) WHERE NOT EXISTS (SELECT FROM accounts a WHERE a.email = x.address)`, addresses)
	return append([]string{}, nobodys...), err
}

func deleteResets(ctx context.Context, q pg.Querier, addresses []string) error {
	_, err := q.Exec(ctx, `DELETE FROM password_resets WHERE email = ANY ($1)`, addresses)
	return err
}

// endOfRange finds the last of up to most ids of the table behind one.
func endOfRange(ctx context.Context, q pg.Querier, table string, behind, most int64) (last int64, found bool, err error) {
	var end *int64
	err = q.QueryRow(ctx, `
		SELECT max(id) FROM (SELECT id FROM `+table+` WHERE id > $1 ORDER BY id LIMIT $2) AS ids`, behind, most).Scan(&end)
	if err != nil || end == nil {
		return 0, false, err
	}
	return *end, true, nil
}

// arrays are the external ids as arrays of sources and ids.
func (c callings) arrays() (sources []int64, ids []string) {
	sources, ids = []int64{}, []string{}
	for _, e := range c.ExternalIDs {
		sources, ids = append(sources, int64(e.Source)), append(ids, e.ID)
	}
	return sources, ids
}

// ofPerson is the condition on c (roster_changes) of r (roster_runs) for changes of the person.
const ofPerson = `(c.user_id = @user OR c.email = ANY (@addresses) OR c.before_email = ANY (@addresses)
	OR EXISTS (SELECT FROM unnest(@sources::bigint[], @ids::text[]) AS x(source, id)
		WHERE x.source = r.source_id AND (x.id = c.external_id OR x.id = c.before_external_id)))`

// namesPerson is the condition on c (roster_class_changes or roster_issues) of r for rows of the person.
const namesPerson = `EXISTS (SELECT FROM unnest(@sources::bigint[], @ids::text[]) AS x(source, id)
	WHERE x.source = r.source_id AND x.id = c.person_external_id)`

// speaksOf is the condition on c (roster_issues) for texts with one of the person's addresses.
const speaksOf = `EXISTS (SELECT FROM unnest(@addresses::text[]) AS a(address) WHERE strpos(lower(c.message), a.address) > 0)`

// args are those arguments of a statement about the person that it names, and more.
func (c callings) args(user id.User, sql string, more pg.Args) pg.Args {
	sources, ids := c.arrays()
	args := pg.Args{"user": user, "addresses": c.Addresses, "sources": sources, "ids": ids, "number": target(user)}
	maps.Copy(args, more)
	maps.DeleteFunc(args, func(name string, _ any) bool { return !strings.Contains(sql, "@"+name) })
	return args
}

// heldRun is one that waits for a decision.
type heldRun struct {
	Organization id.Organization
	ID           id.RosterRun
}

// selectHeld finds held runs of the sources that know the person, and those that have something planned or remarked
// about the person.
func selectHeld(ctx context.Context, q pg.Querier, user id.User, c callings, erased time.Time) ([]heldRun, error) {
	const query = `
		SELECT r.organization_id AS organization, r.id FROM roster_runs r
		WHERE r.state = 'held' AND r.created_at <= @erased AND (r.source_id = ANY (@sources::bigint[])
			OR EXISTS (SELECT FROM roster_changes c WHERE c.run_id = r.id AND ` + ofPerson + `)
			OR EXISTS (SELECT FROM roster_issues c WHERE c.run_id = r.id AND (` + namesPerson + ` OR ` + speaksOf + `)))`
	return pg.List[heldRun](ctx, q, query, c.args(user, query, pg.Args{"erased": erased}))
}

// eraseFromRuns deletes the person from the details of runs that were begun before, which keep their counts.
func eraseFromRuns(ctx context.Context, tx *pg.Tx, user id.User, c callings, erased time.Time, behind, last int64) error {
	const runs = ` USING roster_runs r WHERE r.id > @behind AND r.id <= @last AND r.created_at <= @erased AND c.run_id = r.id AND `
	var b pg.Batch
	for _, query := range []string{
		`DELETE FROM roster_changes c` + runs + ofPerson,
		`DELETE FROM roster_class_changes c` + runs + namesPerson,
		`DELETE FROM roster_issues c` + runs + `(` + namesPerson + ` OR ` + speaksOf + `)`,
		`UPDATE roster_runs SET
			requested_by = CASE WHEN requested_by = ANY (@addresses) THEN @number ELSE requested_by END,
			decided_by = CASE WHEN decided_by = ANY (@addresses) THEN @number ELSE decided_by END
		WHERE id > @behind AND id <= @last AND (requested_by = ANY (@addresses) OR decided_by = ANY (@addresses))`,
	} {
		b.Queue(query, c.args(user, query, pg.Args{"behind": behind, "last": last, "erased": erased}))
	}
	return b.Send(ctx, tx)
}

// eraseMails leaves of mails about the person, and to the person, that they were sent. What waits is not sent any
// more.
func eraseMails(ctx context.Context, q pg.Querier, user id.User, addresses []string, erased time.Time, behind, last int64) error {
	_, err := q.Exec(ctx, `
		UPDATE emails SET
			recipient = '',
			params = '{}',
			sealed = NULL,
			status = CASE WHEN status = 'queued' THEN 'suppressed' ELSE status END,
			detail = ''
		WHERE id > $3 AND id <= $4 AND recipient <> ''
			AND (user_id = $1 OR recipient = ANY ($2) AND created_at <= $5)`, user, addresses, behind, last, erased)
	return err
}

func eraseRecipients(ctx context.Context, q pg.Querier, addresses []string, behind, last int64) error {
	_, err := q.Exec(ctx, `
		UPDATE plans SET
			staff_recipients = ARRAY(SELECT r FROM unnest(staff_recipients) WITH ORDINALITY AS x(r, n)
				WHERE r <> ALL ($1) ORDER BY n),
			extra_recipients = ARRAY(SELECT r FROM unnest(extra_recipients) WITH ORDINALITY AS x(r, n)
				WHERE r <> ALL ($1) ORDER BY n)
		WHERE id > $2 AND id <= $3 AND (staff_recipients && $1::text[] OR extra_recipients && $1::text[])`, addresses, behind, last)
	return err
}

// eraseFromHistory writes the person's number where plans' history has an address as the actor, or as a whole text of
// a detail.
func eraseFromHistory(ctx context.Context, tx *pg.Tx, user id.User, addresses []string, behind, last int64) error {
	var b pg.Batch
	for _, a := range addresses {
		b.Queue(`
			UPDATE plan_history SET
				actor = CASE WHEN actor = @address THEN @number ELSE actor END,
				detail = replace(replace(detail::text, @quoted, @by), to_json(@address::text)::text, @by)::json
			WHERE id > @behind AND id <= @last
				AND (actor = @address OR strpos(detail::text, @quoted) > 0 OR strpos(detail::text, to_json(@address::text)::text) > 0)`,
			pg.Args{
				"address": a,
				"quoted":  `"` + inJSON(a) + `"`,
				"number":  target(user),
				"by":      `"` + target(user) + `"`,
				"behind":  behind,
				"last":    last,
			})
	}
	return b.Send(ctx, tx)
}

// answerKey names a stored answer.
type answerKey struct {
	Organization id.Organization
	Key          string
}

// answer is a stored one.
type answer struct {
	answerKey
	Sealed []byte
}

// selectAnswers reads answers of all organizations behind one, by their keys.
func selectAnswers(ctx context.Context, q pg.Querier, after answerKey, limit int) (some []answer, err error) {
	rows, err := q.Query(ctx, `
		SELECT organization_id, key, sealed FROM idempotency_keys
		WHERE status IS NOT NULL AND (organization_id, key) > ($1, $2) ORDER BY organization_id, key LIMIT $3`, after.Organization, after.Key, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a answer, err error) {
		return a, row.Scan(&a.Organization, &a.Key, &a.Sealed)
	})
}

// eraseAnswers also gives those another key whose own key has an address in it.
func eraseAnswers(ctx context.Context, q pg.Querier, keys []answerKey, addresses []string) error {
	if len(keys) == 0 {
		return nil
	}
	orgs, texts := make([]int64, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		orgs[i], texts[i] = int64(k.Organization), k.Key
	}
	_, err := q.Exec(ctx, `
		UPDATE idempotency_keys k SET
			request = '',
			sealed = NULL,
			key = CASE WHEN EXISTS (SELECT FROM unnest($3::text[]) AS a(address)
					WHERE strpos(lower(k.key), a.address) > 0)
				THEN 'erased-' || gen_random_uuid() ELSE k.key END
		FROM unnest($1::bigint[], $2::text[]) AS x(org, key)
		WHERE k.organization_id = x.org AND k.key = x.key`, orgs, texts, addresses)
	return err
}

func eraseFromAudit(ctx context.Context, q pg.Querier, user id.User, addresses []string, behind, most int64) (last int64, found bool, err error) {
	var end *int64
	err = q.QueryRow(ctx, `SELECT erase_from_audit($1, $2, $3, $4::integer)`, user, addresses, behind, most).Scan(&end)
	if err != nil || end == nil {
		return 0, false, err
	}
	return *end, true, nil
}
