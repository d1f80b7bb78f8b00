package page_test

import (
	"encoding/base64"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/page"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/seal/sealtest"
)

func newCursors(t *testing.T) (*page.Cursors, *pg.DB, *seal.Box) {
	t.Helper()
	db, box := pgtest.New(t), sealtest.New(t)
	return page.New(db, box), db, box
}

func TestACursorIsReadByEveryProcess(t *testing.T) {
	t.Parallel()
	c, db, box := newCursors(t)
	others := []*page.Cursors{c, page.New(db, box), page.New(db, box)}
	rapid.Check(t, func(rt *rapid.T) {
		l := page.List{Organization: id.Organization(rapid.Int64Min(1).Draw(rt, "org")), Name: rapid.SampledFrom([]string{"results", "students"}).Draw(rt, "list"),
			Filters: rapid.SliceOf(rapid.String()).Draw(rt, "filters")}
		p := page.Position(rapid.SliceOfN(rapid.Int64(), 1, 3).Draw(rt, "position"))
		text, err := c.Encode(t.Context(), l, p)
		if err != nil {
			rt.Fatal(err)
		}
		slices.Reverse(l.Filters) // their order does not matter
		for _, other := range others {
			if got, err := other.Decode(t.Context(), l, text); check.NoError(check.Now(rt), err, "%v reads as %v: %v", p, got, err) {
				check.Slices(check.Now(rt), "the position", got, p, "%v reads as %v: %v", p, got, err)
			}
		}
	})
	if p, err := c.Decode(t.Context(), page.List{Name: "x"}, ""); check.NoError(t, err, "no cursor: %v, %v", p, err) {
		check.Equal(t, "position", p.At(0), 0, "no cursor: %v, %v", p, err)
	}
}

// Reference: conventions#cursors.
func TestACursorWorksForNothingElse(t *testing.T) {
	t.Parallel()
	c, _, _ := newCursors(t)
	mine := page.List{Organization: 7, Name: "results", Filters: []string{"kind=test"}}
	text, err := c.Encode(t.Context(), mine, page.Position{300})
	if err != nil {
		t.Fatal(err)
	}
	foreign, _, _ := newCursors(t) // another installation
	refuse := func(c *page.Cursors, l page.List, text string) {
		t.Helper()
		if p, err := c.Decode(t.Context(), l, text); check.True(t, "the fault is invalid_cursor", fault.Has(err, "invalid_cursor"), "%q of %v gave %v, %v", text, l, p, err) {
			check.Equal(t, "kind of the fault", fault.KindOf(err), fault.Invalid, "%q of %v gave %v, %v", text, l, p, err)
		}
	}
	refuse(foreign, mine, text)
	refuse(c, page.List{Organization: 8, Name: "results", Filters: mine.Filters}, text)
	refuse(c, page.List{Organization: 7, Name: "students", Filters: mine.Filters}, text)
	refuse(c, page.List{Organization: 7, Name: "results"}, text)
	refuse(c, page.List{Organization: 7, Name: "results", Filters: []string{"kind=test", "user_id=3"}}, text)
	for _, bad := range []string{"x", "0", "%%%", text + "A", text[1:], text[:len(text)-1], text + "=", string(make([]byte, 2000))} {
		refuse(c, mine, bad)
	}
	raw, _ := base64.RawURLEncoding.DecodeString(text)
	for i := range raw {
		changed := slices.Clone(raw)
		changed[i] ^= 1
		refuse(c, mine, base64.RawURLEncoding.EncodeToString(changed))
	}
}

func TestAnotherKeysetDoesNotOpenTheKey(t *testing.T) {
	t.Parallel()
	c, db, _ := newCursors(t)
	if _, err := c.Encode(t.Context(), page.List{}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := page.New(db, sealtest.New(t)).Encode(t.Context(), page.List{}, nil); check.True(t, "there is an error", err != nil, "%v", err) {
		check.Equal(t, "kind of the fault", fault.KindOf(err), fault.Internal, "%v", err)
	}
}
