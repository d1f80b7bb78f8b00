package pg_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

func TestArgsTakeTheirPlacesByName(t *testing.T) {
	t.Parallel()
	const sql = `SELECT @b, '@none', @a, @b -- @none`
	for n := range 3 { // the first reads the text, the others do not
		text, args, err := pg.Args{"a": n, "b": "x"}.RewriteQuery(t.Context(), nil, sql, nil)
		check.NoError(check.Now(t), err, "call %d", n)
		check.Equal(t, "the statement", text, `SELECT $1, '@none', $2, $1 -- @none`, "call %d", n)
		check.Equal(t, "its arguments", fmt.Sprint(args...), fmt.Sprint("x", n), "call %d", n)
	}
}

func TestArgsThatDoNotFitAreNamed(t *testing.T) {
	t.Parallel()
	const sql = `SELECT @first, @second`
	refused := func(when string) {
		for _, c := range []struct {
			args pg.Args
			want string
		}{
			{pg.Args{"first": 1}, "second"},
			{pg.Args{"first": 1, "second": 2, "third": 3}, "third"},
			{pg.Args{"first": 1, "third": 3}, "second"},
		} {
			_, _, err := c.args.RewriteQuery(t.Context(), nil, sql, nil)
			check.True(t, "the name is in the error", err != nil && strings.Contains(err.Error(), c.want), "%v, %s: %v", c.args, when, err)
		}
	}
	refused("before the statement is known")
	_, _, err := pg.Args{"first": 1, "second": 2}.RewriteQuery(t.Context(), nil, sql, nil)
	check.NoError(t, err, "all names")
	refused("once the statement is known")
}
