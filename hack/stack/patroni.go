package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const patroniStartsWithin = 2 * time.Minute

// PatroniOptions say what to run and where.
type PatroniOptions struct {
	PostgresBin string // the folder of postgres
	Dir         string // data, configuration and logs; the user may enter it
	User        *User  // see ServiceUser
	Nodes       int
}

// Patroni is a PostgreSQL with standbys, of which Patroni makes one the primary when the primary is lost,
// with HAProxy in front as docs/operations.md has it, and an etcd for their agreement. Replication is
// synchronous.
type Patroni struct {
	Etcd, Proxy *Program
	Nodes       []*PatroniNode

	dir   string
	proxy int
}

// PatroniNode is one server.
type PatroniNode struct {
	*Program // Patroni itself

	Name       string
	Port, rest int
	data       string
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
	p := &Patroni{dir: o.Dir}
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
	p.proxy = ports[2]
	clients, peers := httpURL(ports[0]), httpURL(ports[1])
	p.Etcd = p.program("etcd", etcd, o.User, "--name=default", "--data-dir="+filepath.Join(o.Dir, "etcd"),
		"--listen-client-urls="+clients, "--advertise-client-urls="+clients,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers)
	if err := p.Etcd.Start(); err != nil {
		return p, err
	}
	for i := range o.Nodes {
		n := &PatroniNode{Name: fmt.Sprintf("pg-%d", i+1), Port: ports[3+2*i], rest: ports[4+2*i]}
		n.data = filepath.Join(o.Dir, n.Name)
		file, err := p.configure(n, o, ports[0])
		if err != nil {
			return p, err
		}
		n.Program = p.program(n.Name, patroni, o.User, file)
		p.Nodes = append(p.Nodes, n)
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

func (p *Patroni) program(name, path string, u *User, args ...string) *Program {
	return NewProgram(Command{Name: name, Path: path, Args: args, Dir: p.dir, User: u, LogFile: filepath.Join(p.dir, name+".log"),
		Env: append(os.Environ(), "LC_ALL=C.UTF-8", "HOME="+p.dir)})
}

// configure writes the configuration of a node, in JSON, which is YAML.
func (p *Patroni) configure(n *PatroniNode, o PatroniOptions, etcd int) (file string, err error) {
	type section map[string]any
	parameters := section{"max_connections": 200, "fsync": "off", "unix_socket_directories": o.Dir}
	text, err := json.MarshalIndent(section{
		"scope": "registrar", "name": n.Name,
		"restapi": section{"listen": hostPort(n.rest), "connect_address": hostPort(n.rest)},
		"etcd3":   section{"host": hostPort(etcd)},
		"bootstrap": section{
			"dcs": section{
				"ttl": 20, "loop_wait": 1, "retry_timeout": 3, "synchronous_mode": true, "primary_start_timeout": 0, "master_start_timeout": 0,
				"postgresql": section{"use_pg_rewind": true, "use_slots": true, "parameters": parameters},
			},
			"initdb": []any{section{"encoding": "UTF8"}, section{"locale": "C.UTF-8"}, "data-checksums"},
		},
		"postgresql": section{
			"listen": hostPort(n.Port), "connect_address": hostPort(n.Port), "data_dir": n.data, "bin_dir": o.PostgresBin,
			"pgpass": filepath.Join(o.Dir, n.Name+".pgpass"),
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
		fmt.Fprintf(&text, "    server %s %s check port %d\n", n.Name, hostPort(n.Port), n.rest)
	}
	file = filepath.Join(p.dir, "haproxy.cfg")
	return file, os.WriteFile(file, []byte(text.String()), 0o644)
}

// Server is the primary as its clients reach it.
func (p *Patroni) Server() *Postgres {
	return &Postgres{options: PostgresOptions{Port: p.proxy}, Program: p.Proxy}
}

// AwaitStandby returns once there is a primary with a synchronous standby.
func (p *Patroni) AwaitStandby(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patroniStartsWithin)
	defer cancel()
	err := retry(ctx, func(ctx context.Context) error {
		return p.Server().check(ctx, `SELECT count(*) > 0 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'`)
	})
	if err != nil {
		for _, n := range p.Nodes {
			err = errors.Join(err, errors.New(n.Name+" wrote last:\n"+n.LogTail(10)))
		}
	}
	return err
}

// Primary is the node that Patroni calls the primary.
func (p *Patroni) Primary(ctx context.Context) (*PatroniNode, error) {
	for _, n := range p.Nodes {
		if _, err := exchange(ctx, http.DefaultClient, http.MethodGet, httpURL(n.rest)+"/primary", "", nil); err == nil {
			return n, nil
		}
	}
	return nil, errors.New("no node is the primary")
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
		if n.Program != nil {
			errs = append(errs, n.Stop())
		}
	}
	if p.Etcd != nil {
		errs = append(errs, p.Etcd.Stop())
	}
	return errors.Join(errs...)
}
