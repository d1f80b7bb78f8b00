package console

import (
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/student/directory"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Figures of an organization with more than manyStudents in one of them are kept for figuresKept, as counting them takes
// longer than a page may. Those of the others are counted each time.
const (
	manyStudents = 10_000
	figuresKept  = time.Minute
)

// figures keeps what was counted of large organizations. The zero figures is ready.
type figures struct {
	mu   sync.Mutex
	kept map[id.Organization]keptFigures
}

type keptFigures struct {
	directory.Figures
	until time.Time
}

// of gives the organization's figures, counted by count or kept.
func (f *figures) of(org id.Organization, now time.Time, count func(time.Time) (directory.Figures, error)) (directory.Figures, error) {
	f.mu.Lock()
	k, ok := f.kept[org]
	f.mu.Unlock()
	if ok && now.Before(k.until) {
		return k.Figures, nil
	}
	n, err := count(now)
	if err != nil || max(n.WithAccess, n.Expiring, n.AtRisk, n.Joined) <= manyStudents {
		return n, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for other, k := range f.kept {
		if !now.Before(k.until) {
			delete(f.kept, other)
		}
	}
	if f.kept == nil {
		f.kept = make(map[id.Organization]keptFigures)
	}
	f.kept[org] = keptFigures{n, now.Add(figuresKept)}
	return n, nil
}
