package plansim_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/hack/internal/plansim"
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
	if err := w.Table(t.Context(), &table); err != nil || !strings.Contains(table.String(), "IELTS  all") {
		t.Errorf("%v\n%s", err, &table)
	}
	if picture, err := w.Picture(t.Context()); err != nil || strings.Count(picture, "<g ") != 3 {
		t.Error(err, picture)
	}
}
