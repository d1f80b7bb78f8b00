package queue

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// TLS are the files of connections to Redis and to Sentinels, for addresses that begin with rediss.
type TLS struct {
	CAFile   string `env:"REDIS_CA_FILE" help:"PEM file of the authorities that sign certificates of Redis and its Sentinels; without it, the system's"`
	CertFile string `env:"REDIS_CERT_FILE" help:"PEM file of the certificate that is shown to them; with REDIS_KEY_FILE"`
	KeyFile  string `env:"REDIS_KEY_FILE" help:"PEM file of its key"`
}

// Connect makes the process's client of the Redis at redisURL:
//
//	redis://user:password@host:6379/0                         one server, or an address that leads to the primary
//	redis+sentinel://user:password@host:26379,host:26379/0?master=NAME   the primary that these Sentinels name
//	redis+cluster://user:password@host:6379,host:6379         the Cluster that these nodes belong to
//	unix:///path
//
// rediss, rediss+sentinel and rediss+cluster use TLS. The user and the password are Redis's; the
// Sentinels' are the parameters sentinel_username and sentinel_password. tls_server_name is the name
// that certificates have where it is not the host's. Other parameters are go-redis's settings.
//
// Connect waits for no answer: programs also start while Redis is away. Its error never shows the
// password.
func Connect(redisURL string, files TLS) (redis.UniversalClient, error) {
	a, err := parse(redisURL)
	if err != nil {
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	o := a.options
	if o.TLSConfig, err = files.config(o.TLSConfig, a.serverName); err != nil {
		return nil, err
	}
	quietRedis()
	// A frozen Redis must not hold a caller longer than its context says.
	o.ContextTimeoutEnabled = true
	o.DialTimeout = cmp.Or(o.DialTimeout, 2*time.Second)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 3*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 3*time.Second)
	o.DialerRetries = 1
	o.PoolSize = cmp.Or(o.PoolSize, 64) // a hundred handlers finish their tasks over it
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	switch a.kind {
	case cluster:
		c := a.universal().Cluster()
		c.ClusterStateReloadInterval = clusterReload
		return redis.NewClusterClient(c), nil
	case sentinel:
		o.MaxRetries = cmp.Or(o.MaxRetries, 1)
		return redis.NewFailoverClient(a.failover()), nil
	default:
		o.MaxRetries = cmp.Or(o.MaxRetries, 1)
		return redis.NewClient(o), nil
	}
}

// clusterReload is how long a client may not notice that a node is gone whose failure no command met.
const clusterReload = 5 * time.Second

type kind string

const (
	single   kind = ""
	sentinel kind = "sentinel"
	cluster  kind = "cluster"
)

type address struct {
	kind       kind
	hosts      []string // of Sentinels or nodes
	options    *redis.Options
	serverName string // of certificates; "": each host's own

	master, sentinelUser, sentinelPassword string
}

const forms = "use redis://host:6379/0, redis+sentinel://host:26379,host:26379/0?master=NAME, redis+cluster://host:6379,host:6379, " +
	"the same with rediss for TLS, or unix:///path"

// parse reads an address. Its errors show nothing of it: a part of a password that is not encoded
// passes for anything else.
func parse(text string) (*address, error) {
	scheme, rest, found := strings.Cut(text, "://")
	base, suffix, _ := strings.Cut(scheme, "+")
	a := &address{kind: kind(suffix)}
	switch {
	case !found || base != "redis" && base != "rediss" && scheme != "unix":
		return nil, errors.New("it is no address of Redis; " + forms)
	case scheme == "redis" || scheme == "rediss" || scheme == "unix":
		if _, hosts := authority(rest); scheme != "unix" && strings.Contains(hosts, ",") {
			return nil, errors.New("it names several servers; begin it with redis+sentinel:// if they are Sentinels, or with redis+cluster:// if they are nodes of a Cluster")
		}
	case a.kind == sentinel || a.kind == cluster:
		var err error
		if rest, err = a.takeHosts(rest); err != nil {
			return nil, err
		}
	default:
		return nil, errors.New("it is no address of Redis; " + forms)
	}
	u, err := url.Parse(base + "://" + rest)
	if err != nil {
		return nil, errUnread
	}
	if err := a.takeParameters(u); err != nil {
		return nil, err
	}
	if a.options, err = redis.ParseURL(u.String()); err != nil {
		return nil, errUnread
	}
	if a.kind == cluster && a.options.DB != 0 {
		return nil, errors.New("a Redis Cluster has no numbered databases; leave the number out, or write 0")
	}
	return a, nil
}

var errUnread = errors.New("it cannot be read; percent-encode special characters of the user name and password, " +
	"and give go-redis's settings as it names them")

// authority is what comes before the path: user and password with their @, and the hosts.
func authority(rest string) (user, hosts string) {
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	at := strings.LastIndex(rest, "@") + 1
	return rest[:at], rest[at:]
}

// takeHosts reads the list of hosts, and returns the rest of the address with the first alone.
func (a *address) takeHosts(rest string) (string, error) {
	user, hosts := authority(rest)
	port := "6379"
	if a.kind == sentinel {
		port = "26379"
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if !strings.Contains(host, ":") || strings.HasSuffix(host, "]") {
			host += ":" + port
		}
		name, number, err := net.SplitHostPort(host)
		if n, e := strconv.ParseUint(number, 10, 16); err != nil || e != nil || n == 0 || name == "" {
			return "", fmt.Errorf("list the hosts as host:%s,host:%[1]s, and percent-encode special characters of the user name and password", port)
		}
		a.hosts = append(a.hosts, host)
	}
	return user + a.hosts[0] + rest[len(user)+len(hosts):], nil
}

// takeParameters takes our own parameters out of the address.
func (a *address) takeParameters(u *url.URL) error {
	query := u.Query()
	take := func(name string) string {
		value := query.Get(name)
		query.Del(name)
		return value
	}
	of := func(k kind, names ...string) error {
		i := slices.IndexFunc(names, query.Has)
		if a.kind == k || i < 0 {
			return nil
		}
		return fmt.Errorf("%s is a parameter of redis+%s://", names[i], k)
	}
	if err := of(sentinel, "master", "sentinel_username", "sentinel_password"); err != nil {
		return err
	}
	a.master, a.sentinelUser, a.sentinelPassword = take("master"), take("sentinel_username"), take("sentinel_password")
	a.serverName = take("tls_server_name")
	u.RawQuery = query.Encode()
	if a.kind == sentinel && a.master == "" {
		return errors.New("say which primary the Sentinels watch: add ?master=NAME, with the name of their sentinel monitor")
	}
	if a.serverName != "" && u.Scheme != "rediss" {
		return errors.New("tls_server_name needs TLS; begin the address with rediss")
	}
	return nil
}

// universal are the options with all hosts.
func (a *address) universal() *redis.UniversalOptions {
	o := a.options
	return &redis.UniversalOptions{
		Addrs:                   a.hosts,
		ClientName:              o.ClientName,
		DB:                      o.DB,
		Protocol:                o.Protocol,
		Username:                o.Username,
		Password:                o.Password,
		SentinelUsername:        a.sentinelUser,
		SentinelPassword:        a.sentinelPassword,
		MasterName:              a.master,
		MaxRetries:              o.MaxRetries,
		MinRetryBackoff:         o.MinRetryBackoff,
		MaxRetryBackoff:         o.MaxRetryBackoff,
		DialTimeout:             o.DialTimeout,
		DialerRetries:           o.DialerRetries,
		ReadTimeout:             o.ReadTimeout,
		WriteTimeout:            o.WriteTimeout,
		ContextTimeoutEnabled:   o.ContextTimeoutEnabled,
		PipelineReadBufferSize:  o.PipelineReadBufferSize,
		PipelineWriteBufferSize: o.PipelineWriteBufferSize,
		PipelinePoolSize:        o.PipelinePoolSize,
		PoolFIFO:                o.PoolFIFO,
		PoolSize:                o.PoolSize,
		MaxConcurrentDials:      o.MaxConcurrentDials,
		PoolTimeout:             o.PoolTimeout,
		MinIdleConns:            o.MinIdleConns,
		MaxIdleConns:            o.MaxIdleConns,
		MaxActiveConns:          o.MaxActiveConns,
		ConnMaxIdleTime:         o.ConnMaxIdleTime,
		ConnMaxLifetime:         o.ConnMaxLifetime,
		ConnMaxLifetimeJitter:   o.ConnMaxLifetimeJitter,

		TLSConfig:                o.TLSConfig,
		MaintNotificationsConfig: o.MaintNotificationsConfig,
	}
}

// failover are the options by which a Sentinel that answers no more is left for another one. go-redis
// leaves it only after an error of its own that comes before the time for a new connection is over:
// this time therefore has room for a request to that Sentinel on an open connection and, again, on a
// new one. Connections have their own, shorter limit.
func (a *address) failover() *redis.FailoverOptions {
	f := a.universal().Failover()
	f.Dialer = dialer(f.DialTimeout, f.TLSConfig)
	f.DialTimeout = 2 * (f.DialTimeout + f.ReadTimeout)
	return f
}

func dialer(limit time.Duration, secure *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	plain := &net.Dialer{KeepAlive: time.Minute}
	dial := plain.DialContext
	if secure != nil {
		dial = (&tls.Dialer{NetDialer: plain, Config: secure}).DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return dial(ctx, network, addr)
	}
}

// config adds the files to the address's TLS, of which nil is none.
func (f TLS) config(c *tls.Config, serverName string) (*tls.Config, error) {
	if c == nil {
		for name, file := range map[string]string{"REDIS_CA_FILE": f.CAFile, "REDIS_CERT_FILE": f.CertFile, "REDIS_KEY_FILE": f.KeyFile} {
			if file != "" {
				return nil, fmt.Errorf("%s: REDIS_URL uses no TLS; begin it with rediss instead of redis, or leave the file out", name)
			}
		}
		return nil, nil
	}
	c.MinVersion = tls.VersionTLS12
	c.ServerName = serverName // empty: the host that is called
	if f.CAFile != "" {
		text, err := os.ReadFile(f.CAFile)
		if err != nil {
			return nil, fmt.Errorf("REDIS_CA_FILE: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("REDIS_CA_FILE: %s holds no certificate in PEM", f.CAFile)
		}
	}
	if (f.CertFile == "") != (f.KeyFile == "") {
		return nil, errors.New("REDIS_CERT_FILE, REDIS_KEY_FILE: set both, or none")
	}
	if f.CertFile == "" {
		return c, nil
	}
	load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
		return &pair, err
	}
	if _, err := load(nil); err != nil {
		return nil, fmt.Errorf("REDIS_CERT_FILE, REDIS_KEY_FILE: %w", err)
	}
	c.GetClientCertificate = load // a renewed one is used from the next connection on
	return c, nil
}

// Ping asks for each queue, and so each part of a Cluster that one needs.
func Ping(ctx context.Context, rdb redis.UniversalClient) error {
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, q := range all {
			p.LLen(ctx, key(q, "pending"))
		}
		return nil
	})
	return explain(err)
}

// explain says what to change where an address leads to another kind of Redis than it says.
func explain(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	var fix string
	switch {
	case strings.HasPrefix(text, "MOVED "):
		fix = "it leads to a node of a Redis Cluster; begin it with redis+cluster://"
	case strings.Contains(text, "cluster support disabled"):
		fix = "it leads to a Redis that is no Cluster; begin it with redis://"
	case strings.HasPrefix(text, "ERR unknown command"):
		fix = "it leads to a Sentinel; begin it with redis+sentinel:// and add ?master=NAME"
	case errors.Is(err, redis.Nil):
		fix = "the Sentinels watch no primary of this name; correct master"
	default:
		return err
	}
	return fmt.Errorf("REDIS_URL: %s (%w)", fix, err)
}

// Beside opens another client of the same Redis, for those who close theirs. It is closed before rdb.
func Beside(rdb redis.UniversalClient) redis.UniversalClient {
	switch c := rdb.(type) {
	case *redis.ClusterClient:
		o := *c.Options()
		return redis.NewClusterClient(&o)
	case *redis.Client:
		o := *c.Options()
		return redis.NewClient(&o)
	}
	return rdb
}

// quietRedis sends go-redis's own lines, which repeat what its callers log, to debug.
var quietRedis = sync.OnceFunc(func() { redis.SetLogger(redisLog{}) })

type redisLog struct{}

func (redisLog) Printf(ctx context.Context, format string, args ...any) {
	slog.DebugContext(ctx, "redis: "+fmt.Sprintf(format, args...))
}
