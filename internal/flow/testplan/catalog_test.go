package testplan_test

import (
	"fmt"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/catalog"
	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/lang"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// A course prepares for an exam of its type's name and range, and each section has its word in every language.
func TestEveryScaleHasItsCourseTypeAndItsWords(t *testing.T) {
	t.Parallel()
	types, err := course.Types(t.Context(), pgtest.New(t))
	check.NoError(check.Now(t), err, "")
	check.Equal(t, "number of course types", len(types), len(catalog.TestTypes()), "")
	for _, typ := range types {
		s, ok := catalog.ScaleOf(typ.Name)
		if !ok {
			t.Errorf("the course type %s has no scale", typ.Name)
			continue
		}
		check.Equal(t, "the name", typ.DisplayName, s.Label, "%s", typ.Name)
		check.Equal(t, "the lowest score", fmt.Sprint(typ.TargetScoreMin), s.Overall.Min.String(), "%s", typ.Name)
		check.Equal(t, "the highest score", fmt.Sprint(typ.TargetScoreMax), s.Overall.Max.String(), "%s", typ.Name)
		for _, section := range s.Sections {
			check.True(t, "there is a word for "+section.Name, lang.Has("word."+section.Name), "%s", typ.Name)
		}
	}
}
