package pg_test

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

func TestColumnsAreListed(t *testing.T) {
	t.Parallel()
	c := pg.Columns{{"a", "text"}, {"b", "bigint"}}
	check.Equal(t, "names", c.Names(), "a, b", "%v", c)
	check.Equal(t, "columns of t", c.Of("t"), "t.a, t.b", "%v", c)
	check.Equal(t, "arguments", c.Params(), "@a, @b", "%v", c)
	check.Equal(t, "arrays", c.Arrays(), "@a::text[], @b::bigint[]", "%v", c)
}
