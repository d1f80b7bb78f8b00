package e2e

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/queue"
)

var redisCalls = flag.Int("redis-calls", 150, "calls that are acknowledged before a fault of Redis, and after")

func redisSet(t *testing.T) stack.RedisSet {
	t.Helper()
	tools, err := stack.EnsureServers(t.Context(), os.Stderr)
	must(t, err)
	return stack.RedisSet{Server: tools.RedisServer, Dir: t.TempDir()}
}

// limited are the programs' environment in which rate limits are counted and refuse nothing.
var limited = []string{"RATE_LIMIT_PER_SECOND=100000", "RATE_LIMIT_BURST=100000"}

// The primary is killed under load. The API answers everything, and what was promised arrives, once.
// Afterwards all goes on, and a program also starts, while one of three Sentinels answers and the two
// others hang.
func TestSentinelsFailOver(t *testing.T) {
	t.Parallel()
	set, err := stack.StartRedisSentinels(t.Context(), redisSet(t))
	t.Cleanup(func() { _ = set.Stop() })
	must(t, err)
	h := newHouseOn(t, pgtest.URL(t), append(set.Environment(), limited...)...)
	h.secrets = append(h.secrets, set.Passwords()...)
	load := h.startRedisLoad()

	must(t, set.Servers[0].Kill())
	took := until(t, "the replica is the primary", func() bool {
		primary, err := set.Primary(t.Context())
		return err == nil && primary == set.Servers[1]
	})
	t.Logf("the replica was the primary %v after the kill", took)
	load.await(*redisCalls)
	h.endRedisLoad(load)

	for _, sentinel := range set.Sentinels[:2] {
		must(t, sentinel.Signal(syscall.SIGSTOP))
		t.Cleanup(func() { _ = sentinel.Signal(syscall.SIGCONT) })
	}
	must(t, set.Servers[1].Disconnect(t.Context()))
	must(t, h.sender.Stop())
	h.start(h.sender, h.settings.Ports.SenderPrivate)
	h.provision("last@north-institute.org", http.StatusCreated)
	h.awaitEvents("last@north-institute.org", 2*(1+len(healthy)))
	h.awaitMail("last@north-institute.org", 1)
}

// The slot of the webhooks' queue is moved to another node under load, and this node is killed.
func TestAClusterLosesANode(t *testing.T) {
	t.Parallel()
	cluster, err := stack.StartRedisCluster(t.Context(), redisSet(t))
	t.Cleanup(func() { _ = cluster.Stop() })
	must(t, err)
	h := newHouseOn(t, pgtest.URL(t), append(cluster.Environment(), limited...)...)
	h.secrets = append(h.secrets, cluster.Passwords()...)
	load := h.startRedisLoad()

	slot, err := cluster.Slot(t.Context(), "{"+string(queue.Webhook)+"}")
	must(t, err)
	from, err := cluster.Owner(t.Context(), slot, 0)
	must(t, err)
	to := (from + 1) % 3
	must(t, cluster.MoveSlot(t.Context(), slot, from, to))
	load.await(*redisCalls)
	must(t, cluster.Nodes[to].Kill())
	took := until(t, "a replica serves the slot", func() bool { return cluster.AwaitNewOwner(t.Context(), slot, to) == nil })
	t.Logf("a replica served the slot %v after the kill", took)
	load.await(*redisCalls)
	h.endRedisLoad(load)

	page := fmt.Sprintf("http://127.0.0.1:%d/asynq/api/", h.settings.Ports.WorkerPrivate)
	for path, want := range map[string]string{"redis_info": `"cluster":true`, "queues": `"queue":"webhook"`} {
		status, body := h.call(http.MethodGet, page+path, "Accept", "application/json", "")
		check.Equal(t, "the status", status, http.StatusOK, "%s", path)
		check.Contains(t, "the queues' page", string(body), want, "%s", path)
	}
	checkNodeAlone(t, cluster.Nodes[from], cluster.TLS.Files)
}

// checkNodeAlone holds that an address which leads to a node, as to a single server, is told from one.
func checkNodeAlone(t *testing.T, node *stack.Redis, files queue.TLS) {
	t.Helper()
	rdb, err := queue.Connect(node.URL(), files)
	must(t, err)
	defer func() { _ = rdb.Close() }()
	err = queue.Ping(t.Context(), rdb)
	if check.True(t, "there is an error", err != nil, "an address of one node") {
		check.Contains(t, "the error", err.Error(), "redis+cluster://", "")
	}
}

// startRedisLoad provisions students, whose events go to all healthy URLs, too.
func (h *house) startRedisLoad() *load {
	h.t.Helper()
	for _, path := range healthy {
		h.addURL(path)
	}
	load := h.startLoad(100 * time.Millisecond)
	load.await(*redisCalls)
	return load
}

// endRedisLoad ends the load. It holds that the API answered every call as if nothing had happened,
// that every event has arrived, at most one in 200 twice, and that all that uses Redis does so again.
func (h *house) endRedisLoad(l *load) {
	t := h.t
	t.Helper()
	l.over.Store(true)
	l.callers.Wait()
	for status, n := range l.answers {
		check.OneOf(t, "an answer's status", status, []int{http.StatusOK, http.StatusCreated}, "%d times", n)
	}
	t.Logf("answers: %v; %v at most without one", l.answers, l.gap)
	l.checkReceipts()
	for _, private := range []int{h.settings.Ports.APIPrivate, h.settings.Ports.WorkerPrivate, h.settings.Ports.SenderPrivate} {
		until(t, "it is ready", func() bool {
			status, body := h.call(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", private), "Accept", "application/json", "")
			return status == http.StatusOK && !strings.Contains(string(body), "degraded")
		})
	}
	for _, private := range []int{h.settings.Ports.APIPrivate, h.settings.Ports.WorkerPrivate} {
		until(t, "wake-ups arrive", func() bool {
			text := h.metrics(private)
			return strings.Contains(text, "\nregistrar_wakeup_subscriptions ") && !strings.Contains(text, "\nregistrar_wakeup_subscriptions 0\n")
		})
	}
	until(t, "calls are counted", func() bool {
		res, err := h.partner.PingWithResponse(t.Context())
		must(t, err)
		return res.HTTPResponse.Header.Get("RateLimit") != ""
	})
}
