// Package operator_test runs the operator between a real Kubernetes API server and a real PostgreSQL.
package operator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/wake"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

// limit is how long anything that is waited for may take. It is no measure of speed.
const limit = 2 * time.Minute

// world is a real Kubernetes API server, a real PostgreSQL, and an operator between them
// that may do what config/rbac lets it and nothing else.
type world struct {
	dir      string
	bin      string // the folder of the built programs
	postgres *stack.Postgres
	redis    *stack.Redis
	rdb      redis.UniversalClient // the tests'
	url      string                // of the database
	twins    string                // the one of the sandboxes
	keyset   string
	cluster  *stack.Cluster
	operator *process
	client   client.WithWatch // may do everything
	webhooks webhook.Service
}

// process is an operator that runs as a process of its own.
type process struct {
	*stack.Program

	private, metrics int // ports
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := endWorld(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var worldOnce = sync.OnceValues(newWorld)

var started *world

// theWorld is shared by all tests here: each uses namespaces and organizations of its own.
func theWorld(t *testing.T) *world {
	t.Helper()
	w, err := worldOnce()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the operator's last lines:\n" + w.operator.LogTail(60))
		}
	})
	return w
}

func newWorld() (*world, error) {
	ctx := context.Background()
	started = &world{}
	for _, step := range []func(context.Context) error{started.startServers, started.startCluster, started.install, started.startOperator} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return started, nil
}

func endWorld() error {
	w := started
	if w == nil {
		return nil
	}
	var errs []error
	if w.operator != nil {
		errs = append(errs, w.operator.Stop())
	}
	if w.cluster != nil {
		errs = append(errs, w.cluster.Stop())
	}
	if w.webhooks.DB != nil {
		w.webhooks.DB.Wakes.Close()
		w.webhooks.DB.Close()
	}
	if w.redis != nil {
		errs = append(errs, w.rdb.Close(), w.redis.Stop())
	}
	if w.postgres != nil {
		errs = append(errs, w.postgres.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir))...)
}

func (w *world) startServers(ctx context.Context) error {
	tools, err := stack.EnsureServers(ctx, os.Stderr)
	if err != nil {
		return err
	}
	user, err := stack.ServiceUser()
	if err != nil {
		return err
	}
	if w.dir, err = stack.TempDir(ctx, user); err != nil {
		return err
	}
	ports, err := stack.FreePorts(ctx, 2)
	if err != nil {
		return err
	}
	w.redis, err = stack.StartRedis(ctx, stack.RedisOptions{Server: tools.RedisServer, Port: ports[1], LogFile: filepath.Join(w.dir, "redis.log")})
	if err != nil {
		return err
	}
	if w.rdb, err = queue.Connect(w.redis.URL(), queue.TLS{}); err != nil {
		return err
	}
	w.postgres, err = stack.StartPostgres(ctx, stack.PostgresOptions{Bin: tools.PostgresBin, User: user, Port: ports[0],
		Dir: filepath.Join(w.dir, "postgres"), LogFile: filepath.Join(w.dir, "postgres.log")})
	if err != nil {
		return err
	}
	if w.url, err = w.postgres.EnsureDatabase(ctx, "registrar", "registrar"); err != nil {
		return err
	}
	if w.twins, err = w.postgres.EnsureSandboxes(ctx, "sandboxes", "sandboxes"); err != nil {
		return err
	}
	quiet := slog.New(slog.DiscardHandler)
	if err := errors.Join(pg.Migrate(ctx, w.url, quiet), pg.Secure(ctx, w.url, stack.RolePrefix, quiet)); err != nil {
		return err
	}
	db, err := pg.Open(ctx, w.url)
	if err != nil {
		return err
	}
	db.Wakes = wake.Start(w.rdb, wake.Installation)
	keyset, err := seal.NewKeyset()
	if err != nil {
		return err
	}
	box, err := seal.New(keyset)
	w.keyset, w.webhooks = string(keyset), webhook.Service{DB: db, Box: box, Policy: egress.New(egress.Config{})}
	return err
}

func (w *world) startCluster(ctx context.Context) error {
	bin, err := stack.EnsureKube(ctx, os.Stderr)
	if err != nil {
		return err
	}
	ports, err := stack.FreePorts(ctx, 3)
	if err != nil {
		return err
	}
	w.cluster, err = stack.StartCluster(ctx, stack.ClusterOptions{Bin: bin, Dir: filepath.Join(w.dir, "kube"), LogDir: w.dir,
		APIPort: ports[0], Etcd: [2]int{ports[1], ports[2]}})
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", w.cluster.Admin())
	if err != nil {
		return err
	}
	config.QPS = -1
	w.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	return err
}

// install applies config/cluster-wide as an administrator would.
func (w *world) install(ctx context.Context) error {
	if _, err := w.cluster.Kubectl(ctx, "apply", "-k", "../../config/cluster-wide"); err != nil {
		return err
	}
	return w.cluster.AwaitDefinitions(ctx)
}

func (w *world) startOperator(ctx context.Context) (err error) {
	root, err := stack.Root()
	if err != nil {
		return err
	}
	if w.bin, err = stack.Build(ctx, root); err != nil {
		return err
	}
	w.operator, err = w.newOperator(ctx, "operator")
	if err != nil {
		return err
	}
	return stack.StartReady(ctx, w.operator.Program, w.operator.private)
}

// begin starts another operator, which ends with the test.
func (w *world) begin(t *testing.T, name string, extra ...string) *process {
	t.Helper()
	p, err := w.newOperator(t.Context(), name, extra...)
	check.NoError(check.Now(t), err, "")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the last lines of the operator " + name + ":\n" + p.LogTail(60))
		}
		check.NoError(t, p.Stop(), "")
	})
	check.NoError(check.Now(t), stack.StartReady(t.Context(), p.Program, p.private), "")
	return p
}

// instead starts another operator in the place of the one that the tests share, until the test ends.
func (w *world) instead(t *testing.T, name string, extra ...string) *process {
	t.Helper()
	check.NoError(check.Now(t), w.operator.Stop(), "")
	t.Cleanup(func() {
		check.NoError(t, stack.StartReady(context.WithoutCancel(t.Context()), w.operator.Program, w.operator.private), "")
	})
	return w.begin(t, name, extra...)
}

// operatorAccount is the ServiceAccount in config/rbac, as a user.
const operatorAccount = "system:serviceaccount:registrar-system:registrar-operator"

// newOperator prepares an operator with the rights of its ServiceAccount.
func (w *world) newOperator(ctx context.Context, name string, extra ...string) (*process, error) {
	kubeconfig, err := w.cluster.User(operatorAccount, "system:serviceaccounts", "system:authenticated")
	if err != nil {
		return nil, err
	}
	ports, err := stack.FreePorts(ctx, 2)
	if err != nil {
		return nil, err
	}
	environment := append(os.Environ(), "KUBECONFIG="+kubeconfig, "DATABASE_URL="+stack.RoleURL(w.url, "operator"), "REDIS_URL="+w.redis.URL(), "SECRET_KEYSET="+w.keyset,
		"CLUSTER_NAME=test", "LEASE_NAMESPACE=registrar-system", "ORGANIZATIONS=true", "PUBLIC_URL=https://registrar.test", "SANDBOX_DATABASE_URL="+w.twins,
		"WEBHOOK_ALLOW_NETWORKS=", "WEBHOOK_ALLOW_HTTP=",
		fmt.Sprintf("PRIVATE_ADDR=127.0.0.1:%d", ports[0]), fmt.Sprintf("METRICS_ADDR=127.0.0.1:%d", ports[1]))
	return &process{private: ports[0], metrics: ports[1], Program: stack.NewProgram(stack.Command{
		Name: name, Path: filepath.Join(w.bin, "operator"), Env: append(environment, extra...), LogFile: filepath.Join(w.dir, name+".log"),
	})}, nil
}
