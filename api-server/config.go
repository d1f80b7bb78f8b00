package main

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// config is everything that the environment decides.
type config struct {
	DatabaseURL     string        `env:"DATABASE_URL,required" help:"postgres:// address of the store of record"`
	DatabaseReadURL string        `env:"DATABASE_READ_URL" help:"postgres:// address of standbys; lists, look-ups and reports are read there while one has all that the primary has"`
	SandboxURL      string        `env:"SANDBOX_DATABASE_URL" help:"postgres:// address of an empty database of the server that has the sandboxes' databases, for a user who may make databases there; empty: there are no sandboxes"`
	RedisURL        string        `env:"REDIS_URL,required" help:"redis://, redis+sentinel:// or redis+cluster:// address of the run queue; the APIs work while it is away"`
	HTTPAddr        string        `env:"HTTP_ADDR" envDefault:":8080" help:"address of the partner API"`
	PlatformAddr    string        `env:"PLATFORM_ADDR" envDefault:":8081" help:"address of the platform API; never public"`
	PrivateAddr     string        `env:"PRIVATE_ADDR" envDefault:":9090" help:"address for health, readiness and metrics; never public"`
	Profiles        bool          `env:"PPROF" envDefault:"false" help:"serve CPU and memory profiles, /debug/pprof/, on the private port"`
	PlatformKey     string        `env:"PLATFORM_KEY,required" help:"the key of the platform API, 16 characters at least"`
	PreviousKey     string        `env:"PLATFORM_KEY_PREVIOUS" help:"a second key that the platform API accepts while keys are exchanged"`
	PublicURL       string        `env:"PUBLIC_URL,required" help:"base of every link that leaves in an answer, such as https://registrar.example"`
	PlatformZone    string        `env:"PLATFORM_TIME_ZONE" envDefault:"UTC" help:"IANA zone that decides which day it is"`
	LogLevel        string        `env:"LOG_LEVEL" envDefault:"info" help:"debug, info, warn or error"`
	MaxInFlight     int           `env:"MAX_IN_FLIGHT" envDefault:"256" help:"requests at once of each of partner API, pages, console and platform API; more are answered 503"`
	MaxConnections  int           `env:"MAX_CONNECTIONS" envDefault:"4096" help:"connections at once to each port, of which one client address gets an eighth"`
	RatePerSecond   int           `env:"RATE_LIMIT_PER_SECOND" envDefault:"50" help:"requests a second of one API key, on the average; 0 for no limit"`
	RateBurst       int           `env:"RATE_LIMIT_BURST" envDefault:"200" help:"requests at once of one API key"`
	SafeExamBrowser bool          `env:"SAFE_EXAM_BROWSER_AVAILABLE" envDefault:"false" help:"whether tests may require the secure exam browser"`
	Suppressed      []string      `env:"SUPPRESSED_DOMAINS" help:"mail domains, separated by commas, that are never mailed, beside the reserved ones such as example.com"`
	SchemaWait      time.Duration `env:"SCHEMA_WAIT" envDefault:"0s" help:"how long to wait at start for PostgreSQL and for its schema to be migrated"`
	TrustedProxies  []string      `env:"TRUSTED_PROXIES" help:"networks of own proxies, such as 10.0.0.0/8, whose X-Forwarded-For is believed"`
	EgressAddresses []string      `env:"EGRESS_ADDRESSES" help:"addresses and networks, separated by commas, that deliveries come from; shown to whoever adds a webhook URL"`
	Secrets         seal.Config
	RedisTLS        queue.TLS
	Egress          egress.Config
	Clock           clock.Config

	zone    *time.Location
	proxies limit.Proxies
}

// Validate implements env.Validator.
func (c *config) Validate() error {
	var errs []error
	if len(c.PlatformKey) < 16 {
		errs = append(errs, errors.New("PLATFORM_KEY: use 16 characters at least"))
	}
	if c.PreviousKey != "" && len(c.PreviousKey) < 16 {
		errs = append(errs, errors.New("PLATFORM_KEY_PREVIOUS: use 16 characters at least, or none"))
	}
	if c.MaxInFlight < 1 {
		errs = append(errs, errors.New("MAX_IN_FLIGHT: use 1 at least"))
	}
	if c.MaxConnections < 8 {
		errs = append(errs, errors.New("MAX_CONNECTIONS: use 8 at least"))
	}
	if c.RatePerSecond < 0 || c.RatePerSecond > 0 && c.RateBurst < 1 {
		errs = append(errs, errors.New("RATE_LIMIT_PER_SECOND, RATE_LIMIT_BURST: use 1 at least, or 0 a second for no limit"))
	}
	if u, err := url.Parse(c.PublicURL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		errs = append(errs, fmt.Errorf("PUBLIC_URL: %q is no http or https address", c.PublicURL))
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	for _, text := range c.TrustedProxies {
		network, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			errs = append(errs, fmt.Errorf("TRUSTED_PROXIES: %q is no network, such as 10.0.0.0/8", text))
		}
		c.proxies = append(c.proxies, network)
	}
	published, err := egress.Published(c.EgressAddresses)
	if err != nil {
		errs = append(errs, fmt.Errorf("EGRESS_ADDRESSES: %w", err))
	}
	c.EgressAddresses = published
	zone, err := clock.Zone("PLATFORM_TIME_ZONE", c.PlatformZone)
	c.zone = zone
	return errors.Join(append(errs, err)...)
}

// migrateConfig is what a migration needs of it.
type migrateConfig struct {
	DatabaseURL string `env:"DATABASE_URL,required" help:"postgres:// address of the store of record, for the schema's owner"`
	RolePrefix  string `env:"DATABASE_ROLES" help:"what the names of the programs' database roles begin with, such as registrar; empty: there are none"`
	LogLevel    string `env:"LOG_LEVEL" envDefault:"info" help:"debug, info, warn or error"`
}
