package plansim_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/internal/plansim"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

func TestPlansKeepTheirRules(t *testing.T) {
	t.Parallel()
	w, err := plansim.New(t.Context(), pgtest.New(t), plansim.Options{Students: 60, Days: 40, Seed: 8})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context(), func(int) {}); err != nil {
		t.Fatal(err)
	}
	if err := w.Rules(t.Context()); err != nil {
		t.Error(err)
	}
	var table bytes.Buffer
	if err := w.Table(t.Context(), &table); check.NoError(t, err, "%v\n%s", err, &table) {
		check.Contains(t, "the table", table.String(), "IELTS  all", "%v\n%s", err, &table)
	}
	picture, err := w.Picture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "charts with an axis", strings.Count(picture, `<g transform="rotate(90)">`), 3, "%s", picture)
	for _, text := range []string{"Tests a day, of 60 students", "IELTS: the latest full score, less the target", "Active plans, and those of them at risk"} {
		check.True(t, text, strings.Contains(picture, text), "%s", picture)
	}

}
