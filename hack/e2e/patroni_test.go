package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

var failovers = flag.Int("failovers", 3, "how often Patroni's primary is lost: killed, cut off, with a full disk, and so on")

// Patroni finds that the primary was killed, is cut off from the network or has no room on its disk, and promotes the
// synchronous standby, to which HAProxy then leads: nothing that was acknowledged is lost, no call is answered with
// 500, and a reader of a list misses nobody.
func TestPatroniFailsOver(t *testing.T) {
	t.Parallel()
	tools, err := stack.EnsureServers(t.Context(), os.Stderr)
	must(t, err)
	user, err := stack.ServiceUser()
	must(t, err)
	dir, err := stack.TempDir(t.Context(), user)
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	o := stack.PatroniOptions{PostgresBin: tools.PostgresBin, Dir: dir, User: user, Nodes: 2}
	faults := []string{"killed", "cut off"}
	if stack.CanIsolate(t.Context()) == nil { // so it may mount, too
		o.DiskSize, faults = fmt.Sprintf("%dm", 400+50**failovers), append(faults, "without room")
	}
	cluster, err := stack.StartPatroni(t.Context(), o)
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	must(t, err)
	t.Cleanup(func() {
		for _, n := range cluster.Nodes {
			if t.Failed() {
				t.Logf("%s wrote last:\n%s", n.Name, n.LogTail(300))
			}
		}
	})
	owner, err := cluster.Server().EnsureDatabase(t.Context(), "registrar", "patroni")
	must(t, err)
	migrate(t, dir, owner)
	h := newHouseOn(t, owner)
	h.provision("before@north-institute.org", http.StatusCreated)
	load := h.startLoad(0)
	load.await(*failoverCalls)
	read := h.walkBy(500, "/api/v1/students/", "")
	seen := read.rows
	for round := range *failovers {
		fault := faults[round%len(faults)]
		var before *stack.PatroniNode
		until(t, "there is a primary", func() bool { // which its Patroni, on a busy machine, may say too late
			before, err = cluster.Primary(t.Context())
			return err == nil
		})
		began := time.Now()
		switch fault {
		case "killed":
			must(t, before.KillPostgres())
		case "cut off":
			before.CutNetwork()
		case "without room":
			must(t, before.FillDisk())
		}
		until(t, "there is a new primary", func() bool {
			now, err := cluster.Primary(t.Context())
			return err == nil && now != before
		})
		load.promoted()
		promoted := time.Since(began)
		load.await(*failoverCalls)
		t.Logf("%s: a new primary after %v; writes again %v later", fault, promoted, load.wrote())
		switch fault {
		case "cut off":
			before.HealNetwork()
		case "without room":
			must(t, before.FreeDisk())
		}
		must(t, cluster.AwaitStandby(t.Context()))
		read = h.walkBy(500, "/api/v1/students/", read.cursor)
		seen = append(seen, read.rows...)
	}
	load.end(owner)
	seen = append(seen, h.walkBy(500, "/api/v1/students/", read.cursor).rows...)
	for _, email := range load.acknowledged {
		check.True(t, "the reader has everybody", slices.Contains(seen, email), "%s is not among %d", email, len(seen))
	}
}

// migrate makes the schema.
func migrate(t *testing.T, dir, owner string) {
	t.Helper()
	settings := stack.Settings{Bin: os.Getenv("REGISTRAR_BIN"), LogDir: dir, DatabaseURL: owner, Ports: stack.Ports{API: port(t), Platform: port(t), APIPrivate: port(t)}}
	must(t, stack.Run(t.Context(), settings.Migrate()))
}
