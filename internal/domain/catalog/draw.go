package catalog

import (
	"math/rand/v2"

	"github.com/registrar-dev/registrar/internal/kit/decimal"
)

// Draw draws a mark on the item's scale, each score of it as likely as any other.
func (i Item) Draw(from *rand.Rand) Mark {
	scale, _ := ScaleOf(i.Type)
	switch {
	case i.Kind == Quiz:
		return Mark{Score: fine(decimal.Whole(100)).draw(from)}
	case i.Kind == Assessment || i.Type == TypeCustom:
		return Mark{Score: fine(i.MaxScore).draw(from)}
	case i.Scope != ScopeFull:
		section, _ := scale.section(i.Scope)
		return Mark{Score: section.draw(from)}
	}
	m := Mark{Sections: map[string]decimal.Number{}}
	for _, s := range scale.Sections {
		m.Sections[s.Name] = *s.draw(from)
	}
	return m
}

func (r Range) draw(from *rand.Rand) *decimal.Number {
	steps := int64((r.Max - r.Min) / r.Step)
	return new(r.Min + r.Step*decimal.Number(from.Int64N(steps+1)))
}
