package reconcile

import (
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// A copy from before the last write says nothing of what the status is.
func TestACopyThatIsBehind(t *testing.T) {
	t.Parallel()
	var f refreshes
	now := time.Now()
	check.False(t, "nothing was written", f.behind("a", "7"), "")
	check.False(t, "a first look is no write", f.due("a", now, time.Minute) || f.behind("a", "7"), "")
	f.wrote("a", now, "10")
	check.True(t, "an older copy", f.behind("a", "9"), "")
	check.False(t, "that of the write", f.behind("a", "10"), "")
	check.False(t, "a newer one", f.behind("a", "11"), "")
	check.False(t, "another resource", f.behind("b", "1"), "")
	f.forget("a")
	check.False(t, "forgotten", f.behind("a", "9"), "")
}
