package catalog_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/flow/flowtest"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

func asFault(err error, into **fault.Error) bool { return errors.As(err, into) }

var now = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func newOrganization(t *testing.T, db *pg.DB, slug string) (org id.Organization) {
	t.Helper()
	return flowtest.On(t, db).Organization(slug).ID
}

func put(t *testing.T, db *pg.DB, org id.Organization, kind catalog.Kind, code string, p catalog.Patch) (i catalog.Item, created bool, err error) {
	t.Helper()
	err = db.InTx(t.Context(), func(tx *pg.Tx) error {
		i, created, err = catalog.Put(t.Context(), tx, audit.Platform, org, catalog.Key{Kind: kind, Code: code}, p, now)
		return err
	})
	return i, created, err
}

func TestPutFillsInTheScaleAndKeepsWhatIsNotSent(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	i, created, err := put(t, db, 0, catalog.Test, "ielts-1", catalog.Patch{Title: new("  IELTS 1 "), Type: new("ielts"), Difficulty: new(decimal.Whole(6))})
	check.NoError(check.Now(t), err, "%+v %v %v", i, created, err)
	check.True(check.Now(t), "created", created, "%+v %v %v", i, created, err)
	check.Equal(check.Now(t), "i.Title", i.Title, "IELTS 1", "%+v %v %v", i, created, err)
	check.Equal(check.Now(t), "i.MaxScore", i.MaxScore, decimal.Whole(9), "%+v %v %v", i, created, err)
	check.True(check.Now(t), "i.Active", i.Active, "%+v %v %v", i, created, err)
	check.Equal(check.Now(t), "i.Scope", i.Scope, "full", "%+v %v %v", i, created, err)
	again, created, err := put(t, db, 0, catalog.Test, "ielts-1", catalog.Patch{Active: new(false)})
	check.NoError(check.Now(t), err, "%+v %v %v", again, created, err)
	check.False(check.Now(t), "created", created, "%+v %v %v", again, created, err)
	check.Equal(check.Now(t), "again.ID", again.ID, i.ID, "%+v %v %v", again, created, err)
	check.Equal(check.Now(t), "again.Title", again.Title, "IELTS 1", "%+v %v %v", again, created, err)
	check.Equal(check.Now(t), "*again.Difficulty", *again.Difficulty, decimal.Whole(6), "%+v %v %v", again, created, err)
	check.False(check.Now(t), "again.Active", again.Active, "%+v %v %v", again, created, err)
	section, _, err := put(t, db, 0, catalog.Test, "sat-math", catalog.Patch{Title: new("Maths"), Type: new("sat"), Scope: new("math")})
	check.NoError(check.Now(t), err, "%+v %v", section, err)
	check.Equal(check.Now(t), "section.MaxScore", section.MaxScore, decimal.Whole(800), "%+v %v", section, err)
}

func TestPutRefuses(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	org := newOrganization(t, db, "north")
	for name, c := range map[string]struct {
		kind  catalog.Kind
		patch catalog.Patch
		field string
	}{
		"no title":              {catalog.Quiz, catalog.Patch{}, "title"},
		"a test without a type": {catalog.Test, catalog.Patch{Title: new("x")}, "type"},
		"an unknown type":       {catalog.Test, catalog.Patch{Title: new("x"), Type: new("latin")}, "type"},
		"a quiz with a type":    {catalog.Quiz, catalog.Patch{Title: new("x"), Type: new("ielts")}, "type"},
		"an unknown section":    {catalog.Test, catalog.Patch{Title: new("x"), Type: new("sat"), Scope: new("listening")}, "scope"},
		"another maximum":       {catalog.Test, catalog.Patch{Title: new("x"), Type: new("sat"), MaxScore: new(decimal.Whole(100))}, "max_score"},
		"no maximum":            {catalog.Assessment, catalog.Patch{Title: new("x"), MaxScore: new(decimal.Number(0))}, "max_score"},
	} {
		_, _, err := put(t, db, org, c.kind, "code", c.patch)
		var f *fault.Error
		if check.True(t, "the error is a fault", asFault(err, &f), "%s: %v", name, err) {
			check.Equal(t, "f.Field", f.Field, c.field, "%s: %v", name, err)
		}
	}
}

func TestAnOrganizationSeesItsOwnAndEveryonesTests(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	north, south := newOrganization(t, db, "north"), newOrganization(t, db, "south")
	make := func(org id.Organization, kind catalog.Kind, typ *string) id.Item {
		t.Helper()
		i, _, err := put(t, db, org, kind, "same code", catalog.Patch{Title: new("x"), Type: typ, MaxScore: nil})
		if err != nil {
			t.Fatal(err)
		}
		return i.ID
	}
	all := make(0, catalog.Test, new("ielts"))
	mine, theirs := make(north, catalog.Test, new("ielts")), make(south, catalog.Test, new("ielts"))
	assessment, quiz := make(north, catalog.Assessment, nil), make(north, catalog.Quiz, nil)
	list := func(org id.Organization, kinds ...catalog.Kind) (ids []id.Item) {
		t.Helper()
		items, err := catalog.List(t.Context(), db, org, kinds)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range items {
			ids = append(ids, i.ID)
		}
		return ids
	}
	if got := list(north, catalog.Kinds()...); !slices.Equal(got, []id.Item{all, mine, quiz, assessment}) {
		t.Errorf("%v", got)
	}
	if got := list(south, catalog.Test); !slices.Equal(got, []id.Item{all, theirs}) {
		t.Errorf("%v", got)
	}
	if _, err := catalog.Find(t.Context(), db, north, catalog.Test, theirs); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another organization's private test: %v", err)
	}
	if _, err := catalog.Find(t.Context(), db, north, catalog.Quiz, mine); fault.KindOf(err) != fault.NotFound {
		t.Errorf("the id of another kind: %v", err)
	}
	if _, _, err := put(t, db, north, catalog.Test, "same code", catalog.Patch{Active: new(false)}); err != nil {
		t.Fatal(err)
	}
	if got := list(north, catalog.Test); !slices.Equal(got, []id.Item{all}) {
		t.Errorf("an inactive item is listed: %v", got)
	}
	if items, err := catalog.Load(t.Context(), db, north, []id.Item{all, mine, theirs}); check.NoError(t, err, "%v %v", items, err) {
		check.Equal(t, "number of items", len(items), 2, "%v %v", items, err)
	}
}
