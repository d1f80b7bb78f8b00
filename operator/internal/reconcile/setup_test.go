package reconcile

import (
	"context"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Who changes something while the operator looks at everything, as it does when it starts, does not wait for all of that.
func TestALookAtEverythingComesLast(t *testing.T) {
	t.Parallel()
	request := func(name string) ctrl.Request { return ctrl.Request{NamespacedName: types.NamespacedName{Name: name}} }
	all := []ctrl.Request{request("a"), request("b"), request("c")}
	var l listener
	s := l.source(func(_ context.Context, c change) []ctrl.Request {
		if c.everything {
			return all
		}
		return []ctrl.Request{request(c.endpoint)}
	})
	q := priorityqueue.New[ctrl.Request]("test")
	defer q.ShutDown()
	check.NoError(check.Now(t), s.Start(t.Context(), q), "")
	l.send(t.Context(), change{everything: true})
	l.send(t.Context(), change{endpoint: "c"})
	l.send(t.Context(), change{endpoint: "new"})
	for end := time.Now().Add(time.Minute); q.Len() < 4; { // they are put there one after the other
		check.True(check.Now(t), "all are in the queue", time.Now().Before(end), "%d of 4", q.Len())
		runtime.Gosched()
	}
	for _, want := range []string{"c", "new", "a", "b"} {
		got, _ := q.Get()
		q.Done(got)
		check.Equal(t, "the next", got.Name, want, "")
	}
}
