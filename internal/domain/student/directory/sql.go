package directory

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/internal/domain/scope"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// columns are an index's column and what is found by the one before.
var columns = [manners]string{byName: "name", bySurname: "surname", byEmail: "email"}

// begins is the condition that the column begins with the text $2. Nothing sorts behind the
// last character of Unicode, which is what makes it a stretch of the index.
func begins(column string) string {
	return `d.` + column + ` >= directory_key($2) AND d.` + column + ` < directory_key($2) || chr(1114111)`
}

const personColumns = `
	a.id,
	a.email,
	coalesce(d.first_name, a.first_name),
	coalesce(d.last_name, a.last_name),
	coalesce(m.status, '')`

// students joins d (directory) to the accounts of those who are or were students.
var students = `JOIN accounts a ON a.id = d.user_id
	LEFT JOIN members m ON m.organization_id = d.organization_id AND m.user_id = d.user_id
	WHERE d.organization_id = $1 AND ` + scope.IsStudent("m.role", "$1", "d.user_id")

// selectSome leaves out whom an earlier manner finds.
func selectSome(ctx context.Context, q pg.Querier, org id.Organization, by manner, text string, after id.User, limit int) ([]Person, error) {
	column := columns[by]
	var where strings.Builder
	for _, earlier := range columns[:by] {
		where.WriteString(` AND NOT (` + begins(earlier) + `)`)
	}
	if after != 0 {
		// Should the person be gone by now, the list begins again.
		where.WriteString(` AND (d.` + column + `, d.user_id) > (coalesce(
			(SELECT l.` + column + ` FROM directory l WHERE l.organization_id = $1 AND l.user_id = $3), ''), $3)`)
	} else {
		where.WriteString(` AND $3 = 0`) // every parameter has to be in the statement
	}
	return collect(q.Query(ctx, `
		SELECT `+personColumns+` FROM directory d `+students+` AND `+begins(column)+where.String()+`
		ORDER BY d.`+column+`, d.user_id LIMIT $4`, org, text, after, limit))
}

func selectUsers(ctx context.Context, q pg.Querier, org id.Organization, users []id.User) ([]Person, error) {
	return collect(q.Query(ctx, `
		SELECT `+personColumns+`
		FROM directory d `+students+` AND d.user_id = ANY ($2)
		ORDER BY d.user_id`, org, users))
}

func collect(rows pgx.Rows, err error) ([]Person, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Person])
}
