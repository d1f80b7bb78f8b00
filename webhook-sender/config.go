package main

import (
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// config is the configuration, read from the environment.
type config struct {
	DatabaseURL string        `env:"DATABASE_URL,required" help:"postgres:// address of the store of record"`
	SandboxURL  string        `env:"SANDBOX_DATABASE_URL" help:"postgres:// address of an empty database of the server that has the sandboxes' databases, for a user who may make databases there; empty: there are no sandboxes"`
	RedisURL    string        `env:"REDIS_URL,required" help:"redis://, redis+sentinel:// or redis+cluster:// address of the run queue"`
	PrivateAddr string        `env:"PRIVATE_ADDR" envDefault:":9090" help:"address for health, readiness and metrics; never public"`
	Profiles    bool          `env:"PPROF" envDefault:"false" help:"serve CPU and memory profiles, /debug/pprof/, on the private port"`
	LogLevel    string        `env:"LOG_LEVEL" envDefault:"info" help:"debug, info, warn or error"`
	Concurrency int           `env:"WEBHOOK_CONCURRENCY" envDefault:"500" help:"tasks in hand at a time; one holds up to 32 attempts"`
	PoolSize    int32         `env:"WEBHOOK_POOL_SIZE" envDefault:"16" help:"connections to PostgreSQL"`
	ProxyURL    string        `env:"WEBHOOK_PROXY_URL,unset" json:"-" help:"HTTP proxy that deliveries leave through; it has to refuse addresses that are not public"`
	SchemaWait  time.Duration `env:"SCHEMA_WAIT" envDefault:"0s" help:"how long to wait at start for PostgreSQL and for its schema to be migrated"`
	Egress      egress.Config
	Secrets     seal.Config
	RedisTLS    queue.TLS
	Clock       clock.Config
}
