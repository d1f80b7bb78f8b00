package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// A site is a checkout and what runs in it: a Registrar, or beside it a Kubernetes. The two are
// started and stopped apart.
type site struct {
	root string
	part string // registrarPart or kubePart: how the names of its own files begin
}

const (
	registrarPart = ""
	kubePart      = "kube-"
)

func (s site) path(elem ...string) string {
	return filepath.Join(append([]string{s.root, ".registrar"}, elem...)...)
}

// own names a file that is of this part alone.
func (s site) own(name string) string { return s.path(s.part + name) }

// A state is what a second `make up` has to find again. It holds secrets, so only its owner reads it.
type state struct {
	Ports map[string]int `json:"ports"`

	PostgresPassword string `json:"postgres_password"`
	DatabasePassword string `json:"database_password"`
	PlatformKey      string `json:"platform_key"`
	ConsolePassword  string `json:"console_password"`

	APIKey         string   `json:"api_key"`
	APIKeyReadOnly string   `json:"api_key_read_only"`
	Endpoint       endpoint `json:"endpoint"`
}

// endpoint is the demo receiver as it is registered with the demo organization.
type endpoint struct {
	ID     string `json:"id"`
	URL    string `json:"url"`
	Secret string `json:"secret"`
}

// loadState reads the state, or begins a new one.
func (s site) loadState() (*state, error) {
	st := &state{
		PostgresPassword: seal.Token(),
		DatabasePassword: seal.Token(),
		PlatformKey:      seal.Token(),
		ConsolePassword:  seal.Token()[:20],
	}
	if err := readJSON(s.own("state.json"), st); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return st, nil
}

func (s site) saveState(st *state) error { return writeJSON(s.own("state.json"), st) }

// The ports, by the name that an environment variable REGISTRAR_PORT_<NAME> sets them with.
const (
	portAPI           = "API"
	portPlatform      = "PLATFORM"
	portPostgres      = "POSTGRES"
	portRedis         = "REDIS"
	portSMTP          = "SMTP"
	portReceiver      = "RECEIVER"
	portAPIPrivate    = "API_PRIVATE"
	portWorkerPrivate = "WORKER_PRIVATE"
	portSenderPrivate = "SENDER_PRIVATE"
)

var portNames = []string{
	portAPI, portPlatform, portPostgres, portRedis, portSMTP, portReceiver,
	portAPIPrivate, portWorkerPrivate, portSenderPrivate,
}

// The ports of the local Kubernetes and its operator.
const (
	portKubeAPI         = "KUBE_API"
	portEtcd            = "ETCD"
	portEtcdPeers       = "ETCD_PEERS"
	portOperatorPrivate = "OPERATOR_PRIVATE"
	portOperatorMetrics = "OPERATOR_METRICS"
)

var kubePortNames = []string{portKubeAPI, portEtcd, portEtcdPeers, portOperatorPrivate, portOperatorMetrics}

// preferred are taken where they are free: config/samples names the receiver's.
var preferred = map[string]int{portReceiver: 28443}

// choosePorts takes the ports that are set, else those of the last time if they are still free,
// else free ones.
func (st *state) choosePorts(ctx context.Context, names []string) error {
	chosen := make(map[string]int, len(names))
	taken := make(map[int]string, len(names))
	for _, name := range names {
		port, err := st.choosePort(ctx, name, taken)
		if err != nil {
			return err
		}
		chosen[name], taken[port] = port, name
	}
	st.Ports = chosen
	return nil
}

func (st *state) choosePort(ctx context.Context, name string, taken map[int]string) (int, error) {
	variable := "REGISTRAR_PORT_" + name
	if text := os.Getenv(variable); text != "" {
		port, err := strconv.Atoi(text)
		if err != nil || port < 1 || port > 65535 {
			return 0, fmt.Errorf("%s=%s is no port", variable, text)
		}
		if taken[port] != "" || !stack.PortFree(port) {
			return 0, fmt.Errorf("%s: port %d is in use", variable, port)
		}
		return port, nil
	}
	for _, port := range []int{st.Ports[name], preferred[name]} {
		if port != 0 && taken[port] == "" && stack.ReservePort(ctx, port) {
			return port, nil
		}
	}
	for {
		port, err := stack.FreePort(ctx)
		if err != nil || taken[port] == "" {
			return port, err
		}
	}
}

// keyset returns the file with the key that secrets in the database are encrypted with.
func (s site) keyset() (string, error) {
	file := s.path("keyset.json")
	_, err := stack.Keyset(file)
	return file, err
}

// running is what is written down about a stack that runs, for `make down`.
type running struct {
	Supervisor stack.Identity   `json:"supervisor"`
	Parts      []stack.Identity `json:"parts"`
}

func (s site) saveRunning(r running) error { return writeJSON(s.own("running.json"), r) }

func (s site) loadRunning() (running, error) {
	var r running
	err := readJSON(s.own("running.json"), &r)
	if errors.Is(err, os.ErrNotExist) {
		return running{}, nil
	}
	return r, err
}

// lock makes this process the only one that runs the site, until it ends. With wait it waits for
// whoever has the lock; without, busy says that somebody has.
func (s site) lock(wait bool) (busy bool, err error) {
	// Not an *os.File: that would be closed, and the lock lost, once nothing refers to it.
	fd, err := unix.Open(s.own("lock"), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return false, err
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		err = unix.Flock(fd, how)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, unix.Close(fd)
	}
	return false, err
}

func readJSON(name string, into any) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func writeJSON(name string, from any) error {
	text, err := json.MarshalIndent(from, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(name, append(text, '\n'))
}

// writeFile replaces a file as a whole; only its owner may read it.
func writeFile(name string, text []byte) error {
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// quote writes a value so that a shell reads it back as it is.
func quote(value string) string {
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
