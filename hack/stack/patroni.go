package stack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	patroniStartsWithin  = 5 * time.Minute
	patroniFollowsWithin = time.Minute // by itself
	patroniCopiesWithin  = 2 * time.Minute
	patroniStopsWithin   = time.Minute // it asks etcd, waits for the primary to let it go, and PostgreSQL writes what it has
)

// PatroniOptions say what to run and where.
type PatroniOptions struct {
	PostgresBin string // the folder of postgres
	Dir         string // data and configuration; the user may enter it
	LogDir      string // exists; "" for Dir
	User        *User  // see ServiceUser
	Nodes       int

	// DiskSize is how large each node's disk is, as mount says it: "400m". It takes root. "": as large as that of Dir.
	DiskSize string

	// Parameters of PostgreSQL, stronger than those that are meant otherwise.
	Parameters map[string]string
}

// Patroni is a PostgreSQL with standbys, of which Patroni makes one the primary when the primary is lost,
// with HAProxy in front as docs/operations.md has it, and an etcd for their agreement. Replication is
// synchronous.
type Patroni struct {
	Etcd, Proxy *Program
	Nodes       []*PatroniNode

	options PatroniOptions
	dir     string
	proxy   int
	etcd    string // its address
}

// PatroniNode is one server.
type PatroniNode struct {
	*Program // Patroni itself

	Name       string
	Port, rest int
	data       string
	disk       string // its mount; "" for none
	endFilling func() error

	// What leads to it and from it: nothing else may, so that they are its network.
	server, health, etcd *Relay
}

// patroniParts finds the programs, or installs them as EnsureServers does.
func patroniParts(ctx context.Context) (patroni, etcd, haproxy string, err error) {
	if err := ensure(ctx, os.Stderr, needPatroni, needPythonEtcd, needEtcd, needHAProxy); err != nil {
		return "", "", "", err
	}
	return needPatroni.find(), needEtcd.find(), needHAProxy.find(), nil
}

// StartPatroni starts all parts and returns once the address leads to a primary that has a standby. What
// was started is in the result also when an error comes with it.
func StartPatroni(ctx context.Context, o PatroniOptions) (*Patroni, error) {
	p := &Patroni{options: o, dir: o.Dir}
	patroni, etcd, haproxy, err := patroniParts(ctx)
	if err != nil {
		return p, err
	}
	ports, err := FreePorts(ctx, 3+2*o.Nodes)
	if err != nil {
		return p, err
	}
	if err := o.User.own(o.Dir); err != nil {
		return p, err
	}
	p.proxy, p.etcd = ports[2], httpURL(ports[0])
	clients, peers := httpURL(ports[0]), httpURL(ports[1])
	p.Etcd = p.program("etcd", etcd, o.User, "--name=default", "--data-dir="+filepath.Join(o.Dir, "etcd"),
		"--listen-client-urls="+clients, "--advertise-client-urls="+clients,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers)
	if err := p.Etcd.Start(); err != nil {
		return p, err
	}
	if err := awaitEtcd(ctx, clients); err != nil {
		return p, err
	}
	for i := range o.Nodes {
		n := &PatroniNode{Name: fmt.Sprintf("pg-%d", i+1), Port: ports[3+2*i], rest: ports[4+2*i]}
		p.Nodes = append(p.Nodes, n)
		if err := n.connect(ctx, ports[0]); err != nil {
			return p, err
		}
		if err := n.mount(ctx, o); err != nil {
			return p, err
		}
		file, err := p.configure(n, o)
		if err != nil {
			return p, err
		}
		n.Program = p.program(n.Name, patroni, o.User, file)
		n.StopWithin = patroniStopsWithin
		if err := n.Start(); err != nil {
			return p, err
		}
	}
	file, err := p.configureProxy()
	if err != nil {
		return p, err
	}
	p.Proxy = p.program("haproxy", haproxy, o.User, "-db", "-f", file)
	if err := p.Proxy.Start(); err != nil {
		return p, err
	}
	return p, p.AwaitStandby(ctx)
}

// awaitEtcd returns once the servers of etcd have agreed on a version: Patroni ends before.
func awaitEtcd(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, patroniStartsWithin)
	defer cancel()
	return retry(ctx, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/version", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		var version struct{ Etcdcluster string }
		if err := json.NewDecoder(res.Body).Decode(&version); err != nil {
			return err
		}
		if !strings.Contains(version.Etcdcluster, ".") {
			return fmt.Errorf("etcd's version is %q", version.Etcdcluster)
		}
		return nil
	})
}

func (p *Patroni) program(name, path string, u *User, args ...string) *Program {
	return NewProgram(Command{Name: name, Path: path, Args: args, Dir: p.dir, User: u, LogFile: filepath.Join(cmp.Or(p.options.LogDir, p.dir), name+".log"),
		Env: append(os.Environ(), "LC_ALL=C.UTF-8", "HOME="+p.dir)})
}

// connect starts the node's network.
func (n *PatroniNode) connect(ctx context.Context, etcd int) (err error) {
	for relay, port := range map[**Relay]int{&n.server: n.Port, &n.health: n.rest, &n.etcd: etcd} {
		if *relay, err = StartRelay(ctx, hostPort(port)); err != nil {
			return err
		}
	}
	return nil
}

// mount gives the node its disk.
func (n *PatroniNode) mount(ctx context.Context, o PatroniOptions) error {
	n.data = filepath.Join(o.Dir, n.Name)
	if o.DiskSize == "" {
		return nil
	}
	disk := filepath.Join(o.Dir, n.Name+"-disk")
	if err := os.MkdirAll(disk, 0o700); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "mount", "-t", "tmpfs", "-o", "size="+o.DiskSize, "registrar-test", disk).CombinedOutput(); err != nil {
		return fmt.Errorf("mount: %w: %s", err, out)
	}
	n.disk, n.data = disk, filepath.Join(disk, "data")
	return o.User.own(disk)
}

// CutNetwork has nothing arrive at the node or come from it until HealNetwork.
func (n *PatroniNode) CutNetwork() {
	for _, r := range []*Relay{n.server, n.health, n.etcd} {
		r.Cut()
	}
}

// HealNetwork ends what CutNetwork began.
func (n *PatroniNode) HealNetwork() {
	for _, r := range []*Relay{n.server, n.health, n.etcd} {
		r.Heal()
	}
}

// HasDisks says whether the nodes have disks of a limited size.
func (p *Patroni) HasDisks() bool { return p.options.DiskSize != "" }

// FillDisk leaves no room on the node's disk until FreeDisk, and has PostgreSQL use up what it reserved for its log: also
// what a restart sets free. It is no faster than the standby gets it: Patroni promotes none that is far behind.
func (n *PatroniNode) FillDisk() error {
	f, err := os.Create(n.filler())
	if err != nil {
		return err
	}
	fill := func() (err error) {
		for block := make([]byte, 1<<20); err == nil; {
			_, err = f.Write(block)
		}
		return err
	}
	if err := fill(); !errors.Is(err, syscall.ENOSPC) {
		return errors.Join(err, f.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	var filling sync.WaitGroup
	filling.Go(func() {
		server := &Postgres{options: PostgresOptions{Port: n.Port}}
		_ = retry(ctx, func(ctx context.Context) (err error) {
			for _ = fill(); err == nil; {
				err = server.do(ctx, "SELECT pg_switch_wal()", "SELECT pg_logical_emit_message(true, 'fill', 'committed when the standby has it')")
			}
			return err
		})
	})
	n.endFilling = sync.OnceValue(func() error {
		cancel()
		filling.Wait()
		return errors.Join(f.Close(), os.Remove(f.Name()))
	})
	return nil
}

// FreeDisk ends what FillDisk began.
func (n *PatroniNode) FreeDisk() error {
	if n.endFilling == nil {
		return nil
	}
	return n.endFilling()
}

func (n *PatroniNode) filler() string { return filepath.Join(n.disk, "filler") }

// configure writes the configuration of a node, in JSON, which is YAML.
func (p *Patroni) configure(n *PatroniNode, o PatroniOptions) (file string, err error) {
	type section map[string]any
	parameters := section{"max_connections": 200, "fsync": "off", "unix_socket_directories": o.Dir, "min_wal_size": "32MB", "max_wal_size": "64MB"}
	for name, value := range o.Parameters {
		parameters[name] = value
	}
	text, err := json.MarshalIndent(section{
		"scope": "registrar", "name": n.Name,
		"restapi": section{"listen": hostPort(n.rest), "connect_address": n.health.Address()},
		"etcd3":   section{"hosts": []string{n.etcd.Address()}, "use_proxies": true}, // asks nobody else
		"bootstrap": section{
			"dcs": section{
				"ttl": 20, "loop_wait": 1, "retry_timeout": 3, "synchronous_mode": true, "primary_start_timeout": 0, "master_start_timeout": 0,
				"maximum_lag_on_failover": 128 << 20, // a file of the log that is switched counts whole
				"postgresql":              section{"use_pg_rewind": true, "use_slots": true, "parameters": parameters},
			},
			"initdb": []any{section{"encoding": "UTF8"}, section{"locale": "C.UTF-8"}, "data-checksums"},
		},
		"postgresql": section{
			"listen": hostPort(n.Port), "connect_address": n.server.Address(), "data_dir": n.data, "bin_dir": o.PostgresBin,
			"pgpass":     filepath.Join(o.Dir, n.Name+".pgpass"),
			"basebackup": []any{section{"checkpoint": "fast"}}, // under load one that takes its time takes minutes
			"authentication": section{
				"superuser":   section{"username": "postgres", "password": "patroni"},
				"replication": section{"username": "replicator", "password": "patroni"},
			},
			"pg_hba": []string{"host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"},
		},
	}, "", "  ")
	if err != nil {
		return "", err
	}
	file = filepath.Join(o.Dir, n.Name+".yml")
	return file, errors.Join(os.WriteFile(file, text, 0o600), o.User.own(file))
}

// configureProxy writes what docs/operations.md asks of HAProxy.
func (p *Patroni) configureProxy() (file string, err error) {
	var text strings.Builder
	fmt.Fprintf(&text, `defaults
    mode tcp
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen primary
    bind %s
    option httpchk OPTIONS /primary
    default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
`, hostPort(p.proxy))
	for _, n := range p.Nodes {
		_, health, _ := strings.Cut(n.health.Address(), ":")
		fmt.Fprintf(&text, "    server %s %s check port %s\n", n.Name, n.server.Address(), health)
	}
	file = filepath.Join(p.dir, "haproxy.cfg")
	return file, os.WriteFile(file, []byte(text.String()), 0o644)
}

// Server is the primary as its clients reach it.
func (p *Patroni) Server() *Postgres {
	return &Postgres{options: PostgresOptions{Port: p.proxy}, Program: p.Proxy}
}

// AwaitStandby returns once there is a primary with a synchronous standby, which Patroni would promote: it
// notes that one after PostgreSQL waits for it.
func (p *Patroni) AwaitStandby(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patroniStartsWithin)
	defer cancel()
	copyAt := time.Now().Add(patroniFollowsWithin)
	err := retry(ctx, func(ctx context.Context) error {
		err := p.Server().check(ctx, `SELECT count(*) > 0 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'`)
		if err == nil {
			_, err = p.which(ctx, "/synchronous")
			return err
		}
		if time.Now().After(copyAt) {
			p.copyStandbys(ctx)
			copyAt = time.Now().Add(patroniCopiesWithin)
		}
		return err
	})
	if err != nil {
		err = errors.Join(err, p.lastWords())
	}
	return err
}

// copyStandbys copies from the primary what does not follow it by itself. One cause is a former primary that
// was the primary for longer than the others know: Patroni looks once whether to rewind it, and where a busy machine had not
// replayed the log beyond the fork by then, it takes the node for one that follows. PostgreSQL then runs and receives nothing,
// or does not even start. Others are a log that the slot no longer keeps, a full disk, and two starts at once, also of a copy.
func (p *Patroni) copyStandbys(ctx context.Context) {
	primary, err := p.Primary(ctx)
	if err != nil {
		return // there is nothing to copy
	}
	for _, n := range p.Nodes {
		if n != primary {
			said := n.lastWords()
			err := n.reinitialize(ctx)
			fmt.Fprintf(os.Stderr, "%s does not follow, and is to be copied anew (error: %v): %s\n", n.Name, err, said)
		}
	}
}

// lastWords are those of all nodes, for an error.
func (p *Patroni) lastWords() error {
	var all []error
	for _, n := range p.Nodes {
		all = append(all, errors.New(n.lastWords()))
	}
	return errors.Join(all...)
}

// lastWords are the end of the node's log, and what is left on its disk where that is of a limited size.
func (n *PatroniNode) lastWords() string {
	var room string
	var fs syscall.Statfs_t
	if n.disk != "" && syscall.Statfs(n.disk, &fs) == nil {
		room = fmt.Sprintf(" (%d of %d MiB free)", fs.Bavail*uint64(fs.Bsize)>>20, fs.Blocks*uint64(fs.Bsize)>>20)
	}
	return n.Name + room + " wrote last:\n" + n.LogTail(30)
}

// reinitialize has Patroni copy the node from the primary, as "patronictl reinit" does, also while it tries to start it.
func (n *PatroniNode) reinitialize(ctx context.Context) error {
	_, err := exchange(ctx, http.DefaultClient, http.MethodPost, "http://"+n.health.Address()+"/reinitialize", "", `{"force": true}`)
	return err
}

// Primary is the node that Patroni calls the primary.
func (p *Patroni) Primary(ctx context.Context) (*PatroniNode, error) { return p.which(ctx, "/primary") }

// which is the first node that says yes to a question of Patroni's API.
func (p *Patroni) which(ctx context.Context, question string) (*PatroniNode, error) {
	for _, n := range p.Nodes {
		asked, cancel := context.WithTimeout(ctx, time.Second)
		_, err := exchange(asked, http.DefaultClient, http.MethodGet, "http://"+n.health.Address()+question, "", nil)
		cancel()
		if err == nil {
			return n, nil
		}
	}
	return nil, errors.New("no node says yes to " + question)
}

// KillPostgres ends the node's PostgreSQL with SIGKILL.
func (n *PatroniNode) KillPostgres() error {
	text, err := os.ReadFile(filepath.Join(n.data, "postmaster.pid"))
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// Stop ends all parts.
func (p *Patroni) Stop() error {
	var errs []error
	if p.Proxy != nil {
		errs = append(errs, p.Proxy.Stop())
	}
	for _, n := range p.Nodes {
		n.HealNetwork()
		if n.Program != nil {
			if err := n.Stop(); err != nil {
				errs = append(errs, err, n.KillPostgres()) // which Patroni leaves running
			}
		}
	}
	if errors.Join(errs...) != nil {
		errs = append(errs, p.lastWords())
	}
	for _, n := range p.Nodes {
		for _, r := range []*Relay{n.server, n.health, n.etcd} {
			errs = append(errs, r.Close())
		}
		errs = append(errs, n.FreeDisk())
		if n.disk != "" {
			errs = append(errs, syscall.Unmount(n.disk, syscall.MNT_DETACH))
		}
	}
	if p.Etcd != nil {
		errs = append(errs, p.Etcd.Stop())
	}
	return errors.Join(errs...)
}
