package catalog_test

import (
	"math/rand/v2"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

// What is drawn is on the scale of any item, and the same seed draws the same.
func TestDrawnMarksAreOnTheirScales(t *testing.T) {
	t.Parallel()
	items := []catalog.Item{
		{Kind: catalog.Quiz, Type: catalog.TypeQuiz, Scope: catalog.ScopeFull, MaxScore: decimal.Whole(20)},
		{Kind: catalog.Assessment, Type: catalog.TypeAssessment, Scope: catalog.ScopeFull, MaxScore: decimal.Whole(20)},
		{Kind: catalog.Test, Type: "ielts", Scope: "writing", MaxScore: decimal.Whole(9)},
	}
	for _, name := range catalog.TestTypes() {
		items = append(items, catalog.Item{Kind: catalog.Test, Type: name, Scope: catalog.ScopeFull, MaxScore: decimal.Whole(100)})
	}
	for _, item := range items {
		one, other := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(1, 2))
		var least, most decimal.Number
		for n := range 200 {
			scored, err := item.Check("", item.Draw(one))
			check.NoError(t, err, "%s %s", item.Type, item.Scope)
			again, err := item.Check("", item.Draw(other))
			check.NoError(t, err, "%s %s", item.Type, item.Scope)
			check.Equal(t, "the score", again.Score, scored.Score, "of %s, drawn with the same seed", item.Type)
			if n == 0 {
				least, most = scored.Score, scored.Score
			}
			least, most = min(least, scored.Score), max(most, scored.Score)
		}
		check.True(t, "scores differ", least < most, "of %s: all are %v", item.Type, least)
	}
}
