package console

import (
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/student/directory"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// What takes long to count is counted once a minute, and everything else each time.
func TestFiguresOfManyStudentsAreKept(t *testing.T) {
	t.Parallel()
	var f figures
	at := time.Date(2026, 6, 15, 9, 0, 0, 0, time.UTC)
	counted := 0
	get := func(students int, after time.Duration) int {
		t.Helper()
		n, err := f.of(7, at.Add(after), func(time.Time) (directory.Figures, error) {
			counted++
			return directory.Figures{WithAccess: students}, nil
		})
		check.NoError(t, err, "figures")
		return n.WithAccess
	}
	check.Equal(t, "few", get(5, 0), 5, "")
	check.Equal(t, "few, again", get(6, 0), 6, "")
	check.Equal(t, "many", get(20_000, 0), 20_000, "")
	check.Equal(t, "many, within the minute", get(20_001, 59*time.Second), 20_000, "")
	check.Equal(t, "many, a minute later", get(20_002, time.Minute), 20_002, "")
	check.Equal(t, "times it was counted", counted, 4, "")
}
