package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/registrar-dev/registrar/hack/internal/chart"
	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/operator/api/v1beta1"
)

var operatorCases = []benchCase{
	{"operator", "10,000 WebhookEndpoints of 1,000 organizations on a real API server: until all are ready, at rest, and after changes in PostgreSQL", onHouse(operating)},
}

const (
	operatorEach   = webhook.MaxEndpoints // resources of a namespace, which has an organization of its own
	operatorResync = 10 * time.Minute     // the operator's own default
	// Visits of all resources are as dear when they come sooner: so they need not be waited for.
	operatorSooner = time.Minute
	operatorMakers = 16 // clients that create resources at the same time
	operatorTurns  = 50 // changes in PostgreSQL
)

// operating has an operator bring up a tenth of the resources and then the rest, lets it rest, and changes what it has to show.
func operating(ctx context.Context, r *run, h *house) error {
	if err := errors.Join(h.api.Stop(), h.worker.Stop(), h.sender.Stop()); err != nil { // it needs PostgreSQL and Redis
		return err
	}
	k, err := newKubernetes(ctx, r, h)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	few, all := max(operatorEach, r.size(1000)/operatorEach*operatorEach), max(operatorEach, r.size(10_000)/operatorEach*operatorEach)
	if err := k.tenants(ctx, all/operatorEach); err != nil {
		return err
	}
	bare, err := k.bare(ctx, few)
	if err != nil {
		return err
	}
	r.printf("  %d without an operator, the same five requests each to the API server: %s", few, round(bare))
	operator, err := k.start(ctx, operatorResync)
	if err != nil {
		return err
	}
	profiled := k.profile(ctx, r, operator, r.lasting(30*time.Second))
	first, err := k.bringUp(ctx, r, operator, 0, few)
	if err != nil {
		return err
	}
	rest, err := k.bringUp(ctx, r, operator, few, all)
	if err != nil {
		return err
	}
	profiled()
	peak := peakRSS(operator.Identity().PID)
	r.peak("operator", peak)
	load := loadAverage()
	r.verdict(fmt.Sprintf("%d resources", few), first <= scaled(r, 15*time.Second), "created and ready within "+scaled(r, 15*time.Second).String(), "%s: %.2f times the requests alone, load average %s",
		round(first), float64(first)/float64(bare), load)
	r.verdict(fmt.Sprintf("%d resources", all), first+rest <= scaled(r, 2*time.Minute), "created and ready within "+scaled(r, 2*time.Minute).String(),
		"%s, load average %s", round(first+rest), load)
	r.verdict("peak memory of the operator", peak < 150<<20, "below 150 MiB", "%d MiB with %d resources", peak>>20, all)

	if err := k.changes(ctx, r); err != nil {
		return err
	}
	if err := k.rest(ctx, r, operator, all); err != nil {
		return err
	}
	return h.printStatements(ctx, r)
}

// scaled is a bound for what grows with the size.
func scaled(r *run, full time.Duration) time.Duration {
	return max(5*time.Second, time.Duration(float64(full)*r.scale))
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}

// kubernetes is an API server with the operator's definitions and rights, and what watches the resources.
type kubernetes struct {
	*house

	cluster *stack.Cluster
	client  client.WithWatch
	pprof   int // the operator's port for profiles
	private int
	running []*stack.Program

	organizations []id.Organization

	mu    sync.Mutex
	ids   map[string]int64   // of URLs, by namespace and name
	ready int                // how many are
	on    map[string]bool    // what SwitchedOn says
	news  chan struct{}      // something has changed
	stop  context.CancelFunc // of the watch
	ended chan error         // why the watch ended
}

func newKubernetes(ctx context.Context, r *run, h *house) (_ *kubernetes, err error) {
	bin, err := stack.EnsureKube(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	ports, err := stack.FreePorts(ctx, 5)
	if err != nil {
		return nil, err
	}
	k := &kubernetes{house: h, private: ports[3], pprof: ports[4], ids: map[string]int64{}, on: map[string]bool{}, news: make(chan struct{}, 1), ended: make(chan error, 1)}
	k.cluster, err = stack.StartCluster(ctx, stack.ClusterOptions{Bin: bin, Dir: filepath.Join(h.Dir, "kube"), LogDir: h.logs(r),
		APIPort: ports[0], Etcd: [2]int{ports[1], ports[2]}})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, k.close())
		}
	}()
	root, err := stack.Root()
	if err != nil {
		return nil, err
	}
	if _, err := k.cluster.Kubectl(ctx, "apply", "-k", filepath.Join(root, "config", "cluster-wide")); err != nil {
		return nil, err
	}
	if err := k.cluster.AwaitDefinitions(ctx); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	var config *rest.Config
	if config, err = clientcmd.BuildConfigFromFlags("", k.cluster.Admin()); err != nil {
		return nil, err
	}
	config.QPS = -1
	log.SetLogger(logr.Discard()) // what goes wrong comes back as an error
	if k.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	return k, k.watch(ctx)
}

func (k *kubernetes) close() error {
	var errs []error
	for _, p := range k.running {
		errs = append(errs, p.Stop())
	}
	if k.stop != nil {
		k.stop()
		<-k.ended //nolint:errcheck // it ends as asked
	}
	return errors.Join(append(errs, k.cluster.Stop())...)
}

// watch notes what the statuses say, as a client of the cluster sees it. The API server ends the watch of a client that is
// behind, and begins each new one with all that there is.
func (k *kubernetes) watch(ctx context.Context) error {
	ctx, k.stop = context.WithCancel(ctx)
	changes, err := k.client.Watch(ctx, &v1beta1.WebhookEndpointList{})
	if err != nil {
		return err
	}
	go func() {
		for err == nil {
			for c := range changes.ResultChan() {
				if e, ok := c.Object.(*v1beta1.WebhookEndpoint); ok {
					k.saw(e)
				}
			}
			changes.Stop()
			changes, err = k.client.Watch(ctx, &v1beta1.WebhookEndpointList{})
		}
		k.ended <- fmt.Errorf("the watch of the resources has ended: %w", err)
	}()
	return nil
}

func (k *kubernetes) saw(e *v1beta1.WebhookEndpoint) {
	k.mu.Lock()
	defer k.mu.Unlock()
	name := e.Namespace + "/" + e.Name
	if _, known := k.ids[name]; !known && meta.IsStatusConditionTrue(e.Status.Conditions, v1beta1.ConditionReady) {
		k.ids[name] = e.Status.EndpointID
		k.ready++
	}
	k.on[name] = meta.IsStatusConditionTrue(e.Status.Conditions, v1beta1.ConditionSwitchedOn)
	select {
	case k.news <- struct{}{}:
	default: // somebody has been told
	}
}

// until waits until it is so.
func (k *kubernetes) until(ctx context.Context, so func() bool) error {
	for {
		k.mu.Lock()
		is := so()
		k.mu.Unlock()
		if is {
			return nil
		}
		select {
		case <-k.news:
		case err := <-k.ended:
			k.ended <- err
			return err
		case <-ctx.Done():
			return fmt.Errorf("%d resources are ready: %w", k.ready, ctx.Err())
		}
	}
}

func operatorTenant(i int) string { return "tenant-" + strconv.Itoa(i) }

// tenants makes organizations, and a namespace for each.
func (k *kubernetes) tenants(ctx context.Context, n int) error {
	k.organizations = make([]id.Organization, n)
	return parallel(ctx, n, func(ctx context.Context, i int) error {
		name := operatorTenant(i)
		o, _, err := org.Put(ctx, k.db, audit.Platform, name, org.Patch{Name: &name}, time.Now())
		if err != nil {
			return err
		}
		k.organizations[i] = o.ID
		return k.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1beta1.LabelOrganization: name}}})
	})
}

func parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(operatorMakers)
	for i := range n {
		all.Go(func() error { return do(ctx, i) })
	}
	return all.Wait()
}

// start starts an operator with the rights of its ServiceAccount.
func (k *kubernetes) start(ctx context.Context, resync time.Duration) (*stack.Program, error) {
	kubeconfig, err := k.cluster.User("system:serviceaccount:registrar-system:registrar-operator", "system:serviceaccounts", "system:authenticated")
	if err != nil {
		return nil, err
	}
	keyset, err := os.ReadFile(k.settings.KeysetFile)
	if err != nil {
		return nil, err
	}
	p := stack.NewProgram(stack.Command{Name: "operator", Path: filepath.Join(k.settings.Bin, "operator"), LogFile: filepath.Join(k.settings.LogDir, "operator.log"),
		Env: append(os.Environ(), "KUBECONFIG="+kubeconfig, "DATABASE_URL="+k.settings.DatabaseURL, "REDIS_URL="+k.settings.RedisURL, "SECRET_KEYSET="+string(keyset),
			"CLUSTER_NAME=bench", "LEASE_NAMESPACE=registrar-system", "LOG_LEVEL=warn", "METRICS_ADDR=0", "RESYNC="+resync.String(),
			fmt.Sprintf("PRIVATE_ADDR=127.0.0.1:%d", k.private), fmt.Sprintf("PPROF_ADDR=127.0.0.1:%d", k.pprof))})
	k.running = append(k.running, p)
	return p, stack.StartReady(ctx, p, k.private)
}

// profile takes CPU profiles of the operator and of the API server, when the run has a folder for them.
func (k *kubernetes) profile(ctx context.Context, r *run, p *stack.Program, during time.Duration) (wait func()) {
	if r.keep == "" {
		return func() {}
	}
	path := fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(1, int(during.Seconds())))
	keep := func(name string, text []byte, err error) {
		if err == nil {
			_ = os.WriteFile(filepath.Join(r.keep, name+profileEnd), text, 0o600) // a profile is a by-product
		}
	}
	var both sync.WaitGroup
	both.Go(func() {
		text, err := private(ctx, k.pprof, path)
		keep(p.Name, text, err)
	})
	both.Go(func() {
		text, err := k.cluster.Kubectl(ctx, "get", "--raw", path)
		keep("kube-apiserver", []byte(text), err)
	})
	return both.Wait
}

// bringUp creates resources and says how long it took until all are ready.
func (k *kubernetes) bringUp(ctx context.Context, r *run, operator *stack.Program, from, to int) (time.Duration, error) {
	began := time.Now()
	parts := map[string]int{"operator": operator.Identity().PID, "kube-apiserver": k.cluster.APIServer.Identity().PID, "etcd": k.cluster.EtcdServer.Identity().PID, "bench": os.Getpid()}
	before := map[string]time.Duration{"postgres": familyTime(k.Postgres.Identity().PID)}
	for name, pid := range parts {
		before[name] = procTime(pid)
	}
	err := parallel(ctx, to-from, func(ctx context.Context, i int) error {
		return k.client.Create(ctx, operatorEndpoint(from+i))
	})
	if err != nil {
		return 0, err
	}
	created := time.Since(began)
	if err := k.until(ctx, func() bool { return k.ready >= to }); err != nil {
		return 0, err
	}
	took := time.Since(began)
	var cpu []string
	for name, was := range before {
		now := familyTime(k.Postgres.Identity().PID)
		if pid, ok := parts[name]; ok {
			now = procTime(pid)
		}
		cpu = append(cpu, fmt.Sprintf("%s %d", name, ((now-was)/time.Duration(to-from)).Microseconds()))
	}
	slices.Sort(cpu)
	r.printf("  %d to %d: created after %s, all ready after %s; CPU of each in µs: %s", from, to, round(created), round(took), strings.Join(cpu, ", "))
	return took, nil
}

// bare is how long the API server takes for what it is asked for resources until they are ready, when nobody does more than ask:
// the resource, its finalizer, its Secret, its status and the Event of it. The resources are deleted again.
func (k *kubernetes) bare(ctx context.Context, n int) (time.Duration, error) {
	began := time.Now()
	err := parallel(ctx, n, func(ctx context.Context, i int) error {
		e := operatorEndpoint(i)
		if err := k.client.Create(ctx, e); err != nil {
			return err
		}
		before := e.DeepCopy()
		e.Finalizers = []string{v1beta1.EndpointFinalizer}
		if err := k.client.Patch(ctx, e, client.MergeFrom(before)); err != nil {
			return err
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name + "-signing-secret",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(e, v1beta1.GroupVersion.WithKind("WebhookEndpoint"))}},
			Data: map[string][]byte{v1beta1.DefaultSecretKey: []byte(webhook.NewSecret())}}
		if err := k.client.Create(ctx, secret); err != nil {
			return err
		}
		before = e.DeepCopy()
		meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Bare", Message: "Nobody has registered the URL."})
		meta.SetStatusCondition(&e.Status.Conditions, metav1.Condition{Type: v1beta1.ConditionSwitchedOn, Status: metav1.ConditionFalse, Reason: "Bare"})
		if err := k.client.Status().Patch(ctx, e, client.MergeFrom(before)); err != nil {
			return err
		}
		return k.client.Create(ctx, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name + ".bare"},
			EventTime: metav1.NowMicro(), ReportingController: "bench", ReportingInstance: "bench", Action: "Bare", Reason: "Bare", Type: corev1.EventTypeNormal,
			Regarding: corev1.ObjectReference{APIVersion: v1beta1.GroupVersion.String(), Kind: "WebhookEndpoint", Namespace: e.Namespace, Name: e.Name, UID: e.UID}})
	})
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	return took, parallel(ctx, n, func(ctx context.Context, i int) error {
		e := operatorEndpoint(i)
		if err := k.client.Patch(ctx, e, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			return err
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name + "-signing-secret"}}
		return errors.Join(k.client.Delete(ctx, e), client.IgnoreNotFound(k.client.Delete(ctx, secret)))
	})
}

// operatorEndpoint is one of the resources.
func operatorEndpoint(i int) *v1beta1.WebhookEndpoint {
	tenant, n := operatorTenant(i/operatorEach), strconv.Itoa(i%operatorEach)
	return &v1beta1.WebhookEndpoint{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "url-" + n},
		Spec: v1beta1.WebhookEndpointSpec{Organization: tenant, URL: "https://hooks.example.com/" + tenant + "/" + n}}
}

// changes switches URLs off, as the sender does after failures, and waits until their statuses say so.
func (k *kubernetes) changes(ctx context.Context, r *run) error {
	all, err := repeat(max(5, r.size(operatorTurns)), func(i int) (time.Duration, error) {
		tenant := i % len(k.organizations)
		name := operatorTenant(tenant) + "/url-" + strconv.Itoa(i/len(k.organizations)%operatorEach)
		k.mu.Lock()
		endpoint := k.ids[name]
		k.mu.Unlock()
		began := time.Now()
		if _, err := k.webhooks.SwitchOff(ctx, audit.Platform, k.organizations[tenant], id.Endpoint(endpoint), "Switched off by the benchmark.", began); err != nil {
			return 0, err
		}
		err := k.until(ctx, func() bool { return !k.on[name] })
		return time.Since(began), err
	})
	if err != nil {
		return err
	}
	r.step("from a change in PostgreSQL to the status", all, 0)
	r.verdict("a change in PostgreSQL", all.Last() <= 2*time.Second, "in the status within 2 s, every one", "the longest of %d: %s; load average %s", len(all), round(all.Last()), loadAverage())
	return nil
}

// rest measures what an operator costs that has nothing to do: what it costs between its visits, and what the visits cost to
// all resources that come each RESYNC.
func (k *kubernetes) rest(ctx context.Context, r *run, operator *stack.Program, all int) error {
	if err := k.idle(ctx, operator); err != nil {
		return err
	}
	quiet, err := k.used(ctx, operator, r.lasting(time.Minute))
	if err != nil {
		return err
	}
	if err := operator.Stop(); err != nil {
		return err
	}
	eager, err := k.start(ctx, operatorSooner)
	if err != nil {
		return err
	}
	// The first looks at all of them after its start; then they are spread over a fifth more than the time.
	if err := k.idle(ctx, eager); err != nil {
		return err
	}
	profiled := k.profile(ctx, r, eager, operatorSooner)
	busy, err := k.used(ctx, eager, 2*operatorSooner)
	if err != nil {
		return err
	}
	profiled()
	r.peak("operator", peakRSS(eager.Identity().PID))
	// In 2 minutes of the eager one each resource is visited as often as in 20 of one with the default.
	share := quiet + max(0, busy-quiet)*float64(operatorSooner)/float64(operatorResync)
	r.draw(chart.Rows{Title: fmt.Sprintf("CPU of an operator at rest, with %d resources", all), Unit: "% of a core", Rows: []chart.Row{
		bar("between visits", 100*quiet, 0, chart.Grey), bar("RESYNC=10m", 100*share, 2, chart.Blue), bar("RESYNC=1m", 100*busy, 0, chart.Blue)}})
	r.verdict("CPU of an operator at rest", share <= .02, "at most 2 % of a core", "%.2f %%: %.2f %% between visits, %.2f %% with RESYNC=1m; load average %s", 100*share, 100*quiet, 100*busy, loadAverage())
	return nil
}

// idle waits until the program has used less than a tenth of a core for two seconds.
func (k *kubernetes) idle(ctx context.Context, p *stack.Program) error {
	for last := time.Duration(-1); ; {
		now := procTime(p.Identity().PID)
		if last >= 0 && now-last < 200*time.Millisecond {
			return nil
		}
		last = now
		if err := sleep(ctx, 2*time.Second); err != nil {
			return err
		}
	}
}

// used is the share of a core that a program uses.
func (k *kubernetes) used(ctx context.Context, p *stack.Program, during time.Duration) (float64, error) {
	before := procTime(p.Identity().PID)
	if err := sleep(ctx, during); err != nil {
		return 0, err
	}
	return float64(procTime(p.Identity().PID)-before) / float64(during), nil
}
