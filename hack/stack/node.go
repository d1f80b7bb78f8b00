package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// NodeAddress is the node's own, in the network that SettleIn makes.
	NodeAddress = "10.77.0.1"
	// NodeResolver is the cluster's DNS.
	NodeResolver = "10.96.0.10"
	// PodNetwork and ServiceNetwork are where pods and Services have their addresses.
	PodNetwork, ServiceNetwork = "10.244.0.0/16", "10.96.0.0/16"

	pauseImage = "registrar.local/pause:1"
)

var (
	needContainerd = need{"containerd", "containerd", onPath("containerd")}
	needRunc       = need{"runc", "runc", onPath("runc")}
	needNFTables   = need{"nftables", "nftables", onPath("nft")}
	needIP         = need{"ip (iproute2)", "iproute2", onPath("ip")}
	needCNI        = need{"CNI plug-ins", "containernetworking-plugins", cniPlugins}
)

func cniPlugins() string {
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin"} {
		if _, err := os.Stat(filepath.Join(dir, "bridge")); err == nil {
			return dir
		}
	}
	return ""
}

// EnsureNode finds, or installs, what a node is made of besides Kubernetes. The error says what is
// missing, or why this machine cannot be a node.
func EnsureNode(ctx context.Context, out io.Writer) (Tools, error) {
	if err := CanIsolate(ctx); err != nil {
		return Tools{}, err
	}
	if err := ensure(ctx, out, needContainerd, needRunc, needNFTables, needIP, needCNI); err != nil {
		return Tools{}, err
	}
	return EnsureServers(ctx, out)
}

// NodeOptions say which Kubernetes to run and where it keeps its data.
type NodeOptions struct {
	Bin    string   // the folder of EnsureKube
	Dir    string   // an absolute path; not on overlayfs
	Cgroup string   // as MakeCgroup has made it
	Names  []string // of the nodes
}

// Node is a Kubernetes whose nodes are this process's surroundings: a containerd and a kubelet for
// each, a bridge for its pods, and one kube-proxy and DNS for all. It works in an isolated process
// that has settled in (Command.Isolated), whose end is its end.
type Node struct {
	*Cluster

	options NodeOptions
}

// StartNode starts it and returns once the nodes are ready.
func StartNode(ctx context.Context, o NodeOptions) (*Node, error) {
	cluster, err := StartCluster(ctx, ClusterOptions{Bin: o.Bin, Dir: filepath.Join(o.Dir, "cluster"), LogDir: filepath.Join(o.Dir, "log"),
		APIPort: 6443, Etcd: [2]int{2379, 2380}, Address: NodeAddress})
	if err != nil {
		return nil, err
	}
	n := &Node{cluster, o}
	if err := n.serveNetwork(ctx); err != nil {
		return nil, err
	}
	for i, name := range o.Names {
		m := machine{Node: n, name: name, number: i}
		if err := m.start(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return n, retry(ctx, func(ctx context.Context) error {
		_, err := n.Kubectl(ctx, append([]string{"wait", "--for=condition=Ready", "--timeout=20s", "node"}, o.Names...)...)
		return err
	})
}

func (n *Node) path(name string) string { return filepath.Join(n.options.Dir, name) }

type object = map[string]any

// writeJSON writes a file of configuration; JSON is YAML.
func writeJSON(file string, content any) error {
	text, err := json.MarshalIndent(content, "", "  ")
	return errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, text, 0o600))
}

// serveNetwork starts what all nodes share: the scheduler, the way to Services, and their names.
func (n *Node) serveNetwork(ctx context.Context) error {
	scheduler, err := n.User("system:kube-scheduler")
	if err != nil {
		return err
	}
	proxy, err := n.User("system:kube-proxy")
	if err != nil {
		return err
	}
	err = errors.Join(
		writeJSON(n.path("proxy.yaml"), object{"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "nftables",
			"clientConnection": object{"kubeconfig": proxy}, "clusterCIDR": PodNetwork, "hostnameOverride": n.options.Names[0], "conntrack": object{"maxPerCore": 0}}),
		os.WriteFile(n.path("Corefile"), []byte(fmt.Sprintf(corefile, n.Admin())), 0o600))
	if err != nil {
		return err
	}
	for _, p := range []*Program{
		n.program("kube-scheduler", []string{"--kubeconfig=" + scheduler, "--authentication-kubeconfig=" + scheduler, "--authorization-kubeconfig=" + scheduler,
			"--leader-elect=false", "--secure-port=0"}),
		n.program("kube-proxy", []string{"--config=" + n.path("proxy.yaml")}),
		n.program("coredns", []string{"-conf", n.path("Corefile")}),
	} {
		if err := p.Start(); err != nil {
			return err
		}
	}
	pause := Image{Ref: pauseImage, Entrypoint: []string{"/pause"}, User: "65535:65535", Files: map[string]string{"/pause": filepath.Join(n.options.Bin, "pause")}}
	return errors.Join(n.Apply(ctx, dnsService), pause.Pack(ctx, n.path("pause.tar")))
}

// machine is one of the nodes.
type machine struct {
	*Node

	name   string
	number int
}

func (m machine) path(name string) string { return filepath.Join(m.options.Dir, m.name, name) }
func (m machine) socket() string          { return m.path("containerd.sock") }

func (m machine) start(ctx context.Context) error {
	address := NodeAddress
	if m.number > 0 {
		address = fmt.Sprintf("10.77.0.%d", 1+m.number)
		if out, err := exec.CommandContext(ctx, "ip", "address", "add", address+"/24", "dev", "node0").CombinedOutput(); err != nil {
			return fmt.Errorf("ip address add: %w %s", err, out)
		}
	}
	cgroup := filepath.Join(m.options.Cgroup, m.name)
	if err := makeCgroup(cgroup); err != nil {
		return err
	}
	if err := errors.Join(m.writeKubelet("/"+cgroup), m.writeRuntime()); err != nil {
		return err
	}
	if err := m.startRuntime(ctx); err != nil {
		return err
	}
	user, err := m.User("system:node:"+m.name, "system:masters")
	if err != nil {
		return err
	}
	kubelet := m.program("kubelet", []string{"--config=" + m.path("kubelet.yaml"), "--kubeconfig=" + user, "--hostname-override=" + m.name, "--node-ip=" + address,
		"--root-dir=" + m.path("kubelet"), "--cert-dir=" + m.path("kubelet-keys")})
	kubelet.LogFile = filepath.Join(m.options.Dir, "log", m.name+"-kubelet.log")
	return kubelet.Start()
}

func (m machine) writeKubelet(cgroup string) error {
	return writeJSON(m.path("kubelet.yaml"), object{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"port": 10250 + 100*m.number, "healthzPort": 10248 + 100*m.number, "podLogsDir": m.path("pod-logs"),
		"authentication": object{"anonymous": object{"enabled": false}, "webhook": object{"enabled": false}, "x509": object{"clientCAFile": m.keys.path("ca.crt")}},
		"authorization":  object{"mode": "AlwaysAllow"},
		"cgroupDriver":   "cgroupfs", "cgroupRoot": cgroup, "failCgroupV1": false, "failSwapOn": false,
		"containerRuntimeEndpoint": "unix://" + m.socket(), "resolvConf": "", "clusterDNS": []string{NodeResolver}, "clusterDomain": "cluster.local",
		"evictionHard":                object{"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%", "nodefs.inodesFree": "1%"},
		"imageGCHighThresholdPercent": 100, "enforceNodeAllocatable": []string{"pods"}, "syncFrequency": "5s"})
}

func (m machine) writeRuntime() error {
	network := object{"type": "bridge", "bridge": fmt.Sprintf("pods%d", m.number), "isGateway": true, "hairpinMode": true,
		"ipam": object{"type": "host-local", "dataDir": m.path("addresses"), "routes": []object{{"dst": "0.0.0.0/0"}},
			"ranges": [][]object{{{"subnet": fmt.Sprintf("10.244.%d.0/24", m.number)}}}}}
	return errors.Join(
		writeJSON(m.path("cni/10-bridge.conflist"), object{"cniVersion": "0.4.0", "name": "registrar", "plugins": []object{network}}),
		os.WriteFile(m.path("containerd.toml"), []byte(fmt.Sprintf(containerdToml, m.path("containerd"), m.path("containerd-state"), m.socket(),
			pauseImage, cniPlugins(), m.path("cni"))), 0o600))
}

const containerdToml = `version = 2
root = %q
state = %q
[grpc]
  address = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
`

const corefile = `.:53 {
  errors
  kubernetes cluster.local in-addr.arpa {
    kubeconfig %s
  }
  cache 5
}
`

func (m machine) startRuntime(ctx context.Context) error {
	p := NewProgram(Command{Name: "containerd", Path: needContainerd.find(), Args: []string{"-c", m.path("containerd.toml")},
		LogFile: filepath.Join(m.options.Dir, "log", m.name+"-containerd.log")})
	if err := p.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := p.Await(ctx, func(ctx context.Context) error { return m.ctr(ctx, "version") }); err != nil {
		return err
	}
	return m.ctr(ctx, "images", "import", m.Node.path("pause.tar"))
}

func (m machine) ctr(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "ctr", append([]string{"--address", m.socket(), "--namespace", "k8s.io"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// Import makes the images of archives known to all nodes.
func (n *Node) Import(ctx context.Context, archives ...string) error {
	for _, archive := range archives {
		if err := n.everywhere(ctx, "images", "import", archive); err != nil {
			return err
		}
	}
	return nil
}

// Tag gives an image a second name.
func (n *Node) Tag(ctx context.Context, ref, other string) error {
	return n.everywhere(ctx, "images", "tag", "--force", ref, other)
}

func (n *Node) everywhere(ctx context.Context, args ...string) error {
	var errs []error
	for i, name := range n.options.Names {
		errs = append(errs, machine{n, name, i}.ctr(ctx, args...))
	}
	return errors.Join(errs...)
}

const dnsService = `
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec: {clusterIP: ` + NodeResolver + `, ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns-host, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
endpoints: [{addresses: [` + NodeAddress + `], conditions: {ready: true}}]
ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
`

// Apply applies manifests.
func (n *Node) Apply(ctx context.Context, manifests string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(n.options.Bin, "kubectl"), "apply", "--server-side", "-f", "-")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+n.Admin())
	cmd.Stdin = strings.NewReader(manifests)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w\n%s", err, out)
	}
	return nil
}
