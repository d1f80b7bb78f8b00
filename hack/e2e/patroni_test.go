package e2e

import (
	"flag"
	"net/http"
	"os"
	"testing"

	"github.com/registrar-dev/registrar/hack/stack"
)

var failovers = flag.Int("failovers", 1, "how often Patroni's primary is killed")

// Patroni finds that the primary was killed and promotes the synchronous standby, to which HAProxy then
// leads: nothing that was acknowledged is lost.
func TestPatroniFailsOver(t *testing.T) {
	t.Parallel()
	tools, err := stack.EnsureServers(t.Context(), os.Stderr)
	must(t, err)
	user, err := stack.ServiceUser()
	must(t, err)
	dir, err := stack.TempDir(t.Context(), user)
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cluster, err := stack.StartPatroni(t.Context(), stack.PatroniOptions{PostgresBin: tools.PostgresBin, Dir: dir, User: user, Nodes: 2})
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	must(t, err)
	databaseURL, err := cluster.Server().EnsureDatabase(t.Context(), "registrar", "patroni")
	must(t, err)
	migrate(t, dir, databaseURL)
	h := newHouseOn(t, databaseURL)
	h.provision("before@north-institute.org", http.StatusCreated)
	load := h.startLoad()
	load.await(*failoverCalls)
	for range *failovers {
		before, err := cluster.Primary(t.Context())
		must(t, err)
		must(t, before.KillPostgres())
		until(t, "there is a new primary", func() bool {
			now, err := cluster.Primary(t.Context())
			return err == nil && now != before
		})
		load.promoted()
		load.await(*failoverCalls)
		must(t, cluster.AwaitStandby(t.Context()))
	}
	load.end(databaseURL)
}
