package stack

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const clusterStartsWithin = 2 * time.Minute

// ClusterOptions say which Kubernetes to run and where it keeps its data.
type ClusterOptions struct {
	Bin     string // the folder of EnsureKube
	Dir     string // data, keys and kubeconfigs; what an earlier cluster left is removed
	LogDir  string
	APIPort int
	Etcd    [2]int // ports for clients and for peers
	Address string // an IPv4 address of this machine that pods reach the API server at; "": there are no pods
}

// Cluster is the control plane of a Kubernetes on 127.0.0.1, without nodes: etcd, the API server
// and, where Bin has it, the controller manager, which collects what owners leave behind.
type Cluster struct {
	EtcdServer, APIServer, Controllers *Program // Controllers is nil where there is none

	options ClusterOptions
	keys    *authority
	admin   string
}

// StartCluster starts a new, empty cluster and returns once its API server is ready.
func StartCluster(ctx context.Context, o ClusterOptions) (*Cluster, error) {
	if err := os.RemoveAll(o.Dir); err != nil {
		return nil, err
	}
	keys, err := newAuthority(filepath.Join(o.Dir, "pki"), "kubernetes-ca")
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: o, keys: keys}
	server := keys.serverTemplate("apiserver", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "10.96.0.1")
	err = errors.Join(keys.write("ca.crt", keys.pem), keys.issue("apiserver", server), keys.signer("service-accounts"),
		keys.issue("apiserver-kubelet", keys.template("apiserver-kubelet", "system:masters")))
	if err != nil {
		return nil, err
	}
	if c.admin, err = c.User("admin", "system:masters"); err != nil {
		return nil, err
	}
	if err := c.prepare(); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) prepare() error {
	c.EtcdServer = c.program("etcd", c.etcdArguments())
	c.APIServer = c.program("kube-apiserver", c.apiArguments())
	if _, err := os.Stat(filepath.Join(c.options.Bin, "kube-controller-manager")); err != nil {
		return nil //nolint:nilerr // the tests' assets of other surroundings have none
	}
	config, err := c.User("system:kube-controller-manager")
	c.Controllers = c.program("kube-controller-manager", []string{
		"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--service-account-private-key-file=" + c.keys.path("service-accounts.key"), "--root-ca-file=" + c.keys.path("ca.crt"),
		"--use-service-account-credentials", "--leader-elect=false", "--secure-port=0",
	})
	return err
}

func (c *Cluster) program(name string, args []string) *Program {
	return NewProgram(Command{Name: name, Path: filepath.Join(c.options.Bin, name), Args: args, Dir: c.options.Dir,
		LogFile: filepath.Join(c.options.LogDir, name+".log")})
}

func (c *Cluster) etcdArguments() []string {
	clients, peers := httpURL(c.options.Etcd[0]), httpURL(c.options.Etcd[1])
	return []string{
		"--name=default", "--data-dir=" + filepath.Join(c.options.Dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + clients, "--advertise-client-urls=" + clients,
		"--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=default=" + peers,
	}
}

func (c *Cluster) apiArguments() []string {
	reach := []string{"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"}
	if c.options.Address != "" {
		reach = []string{"--bind-address=0.0.0.0", "--advertise-address=" + c.options.Address, "--kubelet-preferred-address-types=InternalIP",
			"--kubelet-client-certificate=" + c.keys.path("apiserver-kubelet.crt"), "--kubelet-client-key=" + c.keys.path("apiserver-kubelet.key")}
	}
	return append(reach,
		"--etcd-servers="+httpURL(c.options.Etcd[0]), "--secure-port="+strconv.Itoa(c.options.APIPort),
		"--tls-cert-file="+c.keys.path("apiserver.crt"), "--tls-private-key-file="+c.keys.path("apiserver.key"),
		"--client-ca-file="+c.keys.path("ca.crt"), "--cert-dir="+c.keys.dir,
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file="+c.keys.path("service-accounts.pub"),
		"--service-account-signing-key-file="+c.keys.path("service-accounts.key"),
		"--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC", "--allow-privileged=true",
		"--shutdown-delay-duration=0s",
	)
}

// start starts the parts one after the other. They may be stopped, killed and started one by one
// later: their ports and keys stay.
func (c *Cluster) start(ctx context.Context) error {
	if err := c.EtcdServer.Start(); err != nil {
		return err
	}
	if err := c.StartAPIServer(ctx); err != nil {
		return err
	}
	if c.Controllers == nil {
		return nil
	}
	return c.Controllers.Start()
}

// StartAPIServer starts a stopped or killed API server again and returns once it is ready.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if err := c.APIServer.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, clusterStartsWithin)
	defer cancel()
	// Who answers is not in question: the port was given to the program just started.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} //nolint:gosec // see above
	return c.APIServer.Await(ctx, func(ctx context.Context) error {
		_, err := exchange(ctx, &http.Client{Transport: transport}, http.MethodGet, c.URL()+"/readyz", "", nil)
		return err
	})
}

// Programs are the processes that run, in the order of their start.
func (c *Cluster) Programs() []*Program {
	return slices.DeleteFunc([]*Program{c.EtcdServer, c.APIServer, c.Controllers}, func(p *Program) bool { return p == nil })
}

// Stop stops all parts in the opposite order of their start.
func (c *Cluster) Stop() error {
	var errs []error
	for _, p := range slices.Backward(c.Programs()) {
		errs = append(errs, p.Stop())
	}
	return errors.Join(errs...)
}

// URL is where the API server listens.
func (c *Cluster) URL() string { return fmt.Sprintf("https://127.0.0.1:%d", c.options.APIPort) }

// EtcdURL is where etcd answers, also in JSON.
func (c *Cluster) EtcdURL() string { return httpURL(c.options.Etcd[0]) }

// Admin is the kubeconfig file of somebody who may do everything.
func (c *Cluster) Admin() string { return c.admin }

// User makes a kubeconfig file of a user, who may do what RBAC lets them, and returns its name.
func (c *Cluster) User(name string, groups ...string) (string, error) {
	return c.keys.kubeconfig(c.URL(), name, groups...)
}

// AwaitDefinitions waits until the API server serves all custom resources that were defined. kubectl wait gives up at once
// while a definition has no conditions yet, so it is run again.
func (c *Cluster) AwaitDefinitions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return c.APIServer.Await(ctx, func(ctx context.Context) error {
		_, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
		return err
	})
}

// Kubectl runs kubectl as the administrator and returns what it prints; an error has it too.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.options.Bin, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.admin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
