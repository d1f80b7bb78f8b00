package stack

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/registrar-dev/registrar/internal/kit/queue"
)

const redisStartsWithin = 20 * time.Second

// RedisOptions say which server to run.
type RedisOptions struct {
	Server   string // redis-server or valkey-server
	Port     int
	LogFile  string
	Dir      string    // what the server itself writes; "": the system's for temporary files
	Password string    // "": none
	TLS      *RedisTLS // nil: none
	Settings []string  // more of it, such as "replicaof 127.0.0.1 7000"
}

// Redis is a Redis server on 127.0.0.1 that keeps nothing on disk: whatever ends it also empties it.
type Redis struct {
	*Program

	options RedisOptions
}

// StartRedis starts the server and returns once it answers.
func StartRedis(ctx context.Context, o RedisOptions) (*Redis, error) {
	o.Settings = append([]string{
		"save ", "appendonly no",
		"maxmemory-policy noeviction", // Asynq's rule: a queue may refuse, never forget
	}, o.Settings...)
	return startRedis(ctx, o, redisArguments)
}

// startRedis starts a server or a Sentinel, whose settings become arguments.
func startRedis(ctx context.Context, o RedisOptions, arguments func(RedisOptions) ([]string, error)) (*Redis, error) {
	if o.Dir == "" {
		o.Dir = os.TempDir()
	}
	args, err := arguments(o)
	if err != nil {
		return nil, err
	}
	r := &Redis{options: o}
	r.Program = NewProgram(Command{Name: filepath.Base(o.Server), Path: o.Server, Dir: o.Dir, LogFile: o.LogFile, Args: args})
	return r, r.Start(ctx)
}

// settings are all of them, a line each.
func (o RedisOptions) settings() []string {
	lines := []string{"bind 127.0.0.1", "daemonize no"}
	if o.TLS == nil {
		lines = append(lines, "port "+strconv.Itoa(o.Port))
	} else {
		lines = append(append(lines, "port 0", "tls-port "+strconv.Itoa(o.Port)), o.TLS.settings...)
	}
	if o.Password != "" {
		lines = append(lines, "requirepass "+o.Password)
	}
	return append(lines, o.Settings...)
}

func redisArguments(o RedisOptions) ([]string, error) {
	var args []string
	for _, line := range o.settings() {
		name, value, _ := strings.Cut(line, " ")
		args = append(args, "--"+name)
		if value == "" {
			args = append(args, "")
		}
		args = append(args, strings.Fields(value)...)
	}
	return args, nil
}

// Start starts a stopped or killed server again, empty, on the same port.
func (r *Redis) Start(ctx context.Context) error {
	return r.startUntil(ctx, redisStartsWithin, r.ping)
}

// ping says PING in Redis' inline form: a client library would log every refused connection.
func (r *Redis) ping(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", r.Address())
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if r.options.TLS != nil {
		conn = tls.Client(conn, r.options.TLS.client)
	}
	text, want := "PING\r\n", []string{"+PONG\r\n"}
	if r.options.Password != "" {
		text, want = "AUTH "+r.options.Password+"\r\n"+text, []string{"+OK\r\n", "+PONG\r\n"}
	}
	if _, err := io.WriteString(conn, text); err != nil {
		return err
	}
	answers := bufio.NewReader(conn)
	for _, w := range want {
		answer, err := answers.ReadString('\n')
		if err != nil {
			return err
		}
		if answer != w {
			return fmt.Errorf("PING was answered %q", answer)
		}
	}
	return nil
}

// Address is where the server listens.
func (r *Redis) Address() string { return hostPort(r.options.Port) }

// URL is what REDIS_URL wants.
func (r *Redis) URL() string { return redisURL(r.options, "", r.Address()) + "/0" }

// redisURL is an address of servers that have the options' password and TLS.
func redisURL(o RedisOptions, kind string, hosts ...string) string {
	scheme, user := "redis", ""
	if o.TLS != nil {
		scheme = "rediss"
	}
	if o.Password != "" {
		user = ":" + o.Password + "@"
	}
	return scheme + kind + "://" + user + strings.Join(hosts, ",")
}

// clientOptions are for a client of this server alone.
func (r *Redis) clientOptions() *redis.Options {
	o := &redis.Options{Addr: r.Address(), Password: r.options.Password, ContextTimeoutEnabled: true, Protocol: 2,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}}
	if r.options.TLS != nil {
		o.TLSConfig = r.options.TLS.client
	}
	return o
}

// do runs a command on this server.
func (r *Redis) do(ctx context.Context, command string, more ...any) (any, error) {
	client := redis.NewClient(r.clientOptions())
	defer func() { _ = client.Close() }()
	var args []any
	for _, word := range strings.Fields(command) {
		args = append(args, word)
	}
	answer, err := client.Do(ctx, append(args, more...)...).Result()
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", command, r.Address(), err)
	}
	return answer, nil
}

// Empty forgets all that the server has.
func (r *Redis) Empty(ctx context.Context) error {
	_, err := r.do(ctx, "FLUSHALL")
	return err
}

// Disconnect ends the connections of all clients.
func (r *Redis) Disconnect(ctx context.Context) error {
	for _, kind := range []string{"normal", "pubsub"} {
		if _, err := r.do(ctx, "CLIENT KILL TYPE "+kind); err != nil {
			return err
		}
	}
	return nil
}

// says fails unless the text that a command answers has all the parts.
func (r *Redis) says(ctx context.Context, command string, parts ...string) error {
	answer, err := r.do(ctx, command)
	if err != nil {
		return err
	}
	text := fmt.Sprint(answer)
	if i := slices.IndexFunc(parts, func(part string) bool { return !strings.Contains(text, part) }); i >= 0 {
		return fmt.Errorf("%s at %s does not say %s: %s", command, r.Address(), parts[i], text)
	}
	return nil
}

// RedisTLS is a private authority with certificates of servers and of their clients.
type RedisTLS struct {
	Files queue.TLS // the programs'

	settings []string
	client   *tls.Config
}

// newRedisTLS makes one in dir. Servers that use it take no connections without TLS, and none
// without a client certificate.
func newRedisTLS(dir string) (*RedisTLS, error) {
	a, err := newAuthority(dir, "Registrar Redis authority")
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		a.write("ca.crt", a.pem),
		a.issue("server", a.serverTemplate("redis", "127.0.0.1")),
		a.issue("client", a.template("registrar")))
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(a.path("client.crt"), a.path("client.key"))
	if err != nil {
		return nil, err
	}
	return &RedisTLS{
		Files: queue.TLS{CAFile: a.path("ca.crt"), CertFile: a.path("client.crt"), KeyFile: a.path("client.key")},
		settings: []string{
			"tls-ca-cert-file " + a.path("ca.crt"), "tls-cert-file " + a.path("server.crt"), "tls-key-file " + a.path("server.key"),
			"tls-client-cert-file " + a.path("client.crt"), "tls-client-key-file " + a.path("client.key"),
			"tls-auth-clients yes", "tls-replication yes",
		},
		client: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: a.pool(), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12},
	}, nil
}

// environment is the programs', with the address and the files.
func (t *RedisTLS) environment(redisURL string) []string {
	return []string{"REDIS_URL=" + redisURL, "REDIS_CA_FILE=" + t.Files.CAFile, "REDIS_CERT_FILE=" + t.Files.CertFile, "REDIS_KEY_FILE=" + t.Files.KeyFile}
}

// replicates says that the server follows its primary.
func (r *Redis) replicates(ctx context.Context) error {
	return r.says(ctx, "INFO replication", "role:slave", "master_link_status:up")
}
