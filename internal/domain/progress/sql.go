package progress

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// inSnapshot runs fn in a transaction that only reads, and sees one moment throughout.
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
	return fn(tx)
}

// eachResult calls do with each final result that was completed in [from, to), in the order of completion.
func eachResult(ctx context.Context, q pg.Querier, org id.Organization, f Filter, from, to time.Time,
	do func(context.Context, time.Time, Result) error) error {
	query, args := resultsQuery(org, f, from, to)
	if _, err := q.Exec(ctx, `DECLARE final_results NO SCROLL CURSOR FOR `+query, args...); err != nil {
		return err
	}
	for {
		some, err := fetchResults(ctx, q)
		if err != nil || len(some) == 0 {
			return err
		}
		for _, r := range some {
			if err := do(ctx, r.completed, r.Result); err != nil {
				return err
			}
		}
	}
}

type finalResult struct {
	completed time.Time
	Result
}

func fetchResults(ctx context.Context, q pg.Querier) ([]finalResult, error) {
	rows, err := q.Query(ctx, `FETCH 2000 FROM final_results`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r finalResult, err error) {
		err = row.Scan(&r.completed, &r.User, &r.Kind, &r.Type, &r.Score, &r.MaxScore)
		return r, err
	})
}

// resultsQuery depends on which filters are set, so that each combination has its own plan. For a large
// course it returns everybody's results, and selectStudents leaves the others out.
func resultsQuery(org id.Organization, f Filter, from, to time.Time) (query string, args []any) {
	args = []any{org, from, to}
	with := func(condition string, value any) {
		args = append(args, value)
		query += " AND " + strings.Replace(condition, "?", "$"+strconv.Itoa(len(args)), 1)
	}
	if f.User != 0 {
		with(`r.user_id = ?`, f.User)
	}
	if len(f.Kinds) > 0 {
		with(`r.kind = ANY (?)`, f.Kinds)
	}
	if f.Type != "" {
		with(`r.kind = 'test' AND r.type = ?`, f.Type)
	}
	query = `
		SELECT r.completed_at, r.user_id, r.kind, r.type, r.score_e4, r.max_score_e4 FROM results r
		WHERE r.organization_id = $1 AND r.position IS NOT NULL AND r.completed_at >= $2 AND r.completed_at < $3` + query
	if f.Few != nil && f.User == 0 {
		args = append(args, f.Few)
		query = `SELECT r.* FROM unnest($` + strconv.Itoa(len(args)) + `::bigint[]) AS u(id)
			CROSS JOIN LATERAL (` + query + ` AND r.user_id = u.id OFFSET 0) AS r`
	}
	return query + ` ORDER BY r.completed_at`, args
}

// selectStudents returns those of the users who are students today and in the filter's course.
func selectStudents(ctx context.Context, q pg.Querier, org id.Organization, users []id.User, f Filter) ([]Student, error) {
	rows, err := q.Query(ctx, `
		SELECT u.id, a.email, a.first_name, a.last_name
		FROM unnest($2::bigint[]) AS u(id)
		CROSS JOIN LATERAL `+scope.Person("$1", "u.id")+` AS a
		WHERE `+scope.Listed("$1", "u.id", "$3")+`
			AND ($4::bigint = 0 OR (
				SELECT true FROM enrollments e
				WHERE e.organization_id = $1 AND e.user_id = u.id AND e.course_id = $4
				LIMIT 1))`,
		org, users, f.Today, f.Course)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Student, err error) {
		err = row.Scan(&s.User, &s.Email, &s.FirstName, &s.LastName)
		return s, err
	})
}
