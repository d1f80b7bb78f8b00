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
	db := pgtest.New(t)
	w, err := plansim.New(t.Context(), db, plansim.Options{Students: 60, Days: 40, Seed: 8})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context(), func(int) {}); err != nil {
		t.Fatal(err)
	}
	if err := w.Rules(t.Context()); err != nil {
		t.Error(err)
	}
	for what, from := range map[string]string{ // else the rules about them would hold of nothing
		"late tests":               `plan_tests WHERE late`,
		"results after a miss":     `plan_history m JOIN plan_history f USING (plan_id) WHERE m.event = 'test_missed' AND f.event = 'test_finished' AND f.id > m.id AND f.detail ->> 'slot' = m.detail ->> 'slot'`,
		"corrections":              `plan_history WHERE event = 'test_remarked'`,
		"mocks in place of checks": `plan_history o JOIN plan_history p USING (plan_id) WHERE o.event = 'test_opened' AND p.event = 'test_planned' AND o.detail ->> 'slot' = p.detail ->> 'slot' AND o.detail ->> 'kind' = 'mock' AND p.detail ->> 'kind' = 'skills_check'`,
		"papers that ran out":      `plan_history WHERE event = 'test_unfilled'`,
		"mails of drills":          `emails WHERE type = 'plan_update'`,
		"plans whose exam is over": `plan_history WHERE event = 'closed' AND detail ->> 'reason' = 'exam_over'`,
	} {
		var n int
		if err := db.QueryRow(t.Context(), `SELECT count(*) FROM `+from).Scan(&n); check.NoError(t, err, "%s", what) {
			check.True(t, what, n > 0, "the simulation has none")
		}
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
