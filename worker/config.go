package main

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/flow/retention"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/mail"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// config is the configuration, read from the environment.
type config struct {
	DatabaseURL       string        `env:"DATABASE_URL,required" help:"postgres:// address of the store of record"`
	SandboxURL        string        `env:"SANDBOX_DATABASE_URL" help:"postgres:// address of an empty database of the server that has the sandboxes' databases, for a user who may make databases there; empty: there are no sandboxes"`
	RedisURL          string        `env:"REDIS_URL,required" help:"redis://, redis+sentinel:// or redis+cluster:// address of the run queue"`
	PrivateAddr       string        `env:"PRIVATE_ADDR" envDefault:":9090" help:"address for health, readiness, metrics and the queues' page (/asynq); never public"`
	Profiles          bool          `env:"PPROF" envDefault:"false" help:"serve CPU and memory profiles, /debug/pprof/, on the private port"`
	LogLevel          string        `env:"LOG_LEVEL" envDefault:"info" help:"debug, info, warn or error"`
	TimeZone          string        `env:"PLATFORM_TIME_ZONE" envDefault:"UTC" help:"IANA zone that decides which day it is, also in mails"`
	WebhookRetention  int           `env:"WEBHOOK_RETENTION_DAYS" envDefault:"30" help:"days for which deliveries and their attempts are kept; what has not ended stays"`
	MailRetention     int           `env:"MAIL_RETENTION_DAYS" envDefault:"365" help:"days for which it is kept what was mailed to whom; 0: for ever"`
	PlanRetention     int           `env:"PLAN_RETENTION_DAYS" envDefault:"730" help:"days for which the history of a closed test plan is kept; 0: for ever"`
	RosterRetention   int           `env:"ROSTER_RETENTION_DAYS" envDefault:"730" help:"days for which it is kept that a roster was imported, with its counts; 0: for ever"`
	AuditRetention    int           `env:"AUDIT_RETENTION_DAYS" envDefault:"1095" help:"days for which the audit log is kept, 366 at least; 0: for ever"`
	SMTPURL           string        `env:"SMTP_URL,required" help:"mail server: smtp://user:password@host:port, ?tls=none, starttls or implicit; or smtps://"`
	MailFrom          string        `env:"MAIL_FROM,required" help:"sender of all mails; the organization's name stands in front of the address"`
	PublicURL         string        `env:"PUBLIC_URL,required" help:"base of every link that leaves in a mail, such as https://registrar.example"`
	Suppressed        []string      `env:"SUPPRESSED_DOMAINS" help:"mail domains, separated by commas, that are never mailed, beside the reserved ones such as example.com"`
	PlanConcurrency   int           `env:"PLAN_CONCURRENCY" envDefault:"4" help:"test plans that are decided at a time after a change"`
	EmailConcurrency  int           `env:"EMAIL_CONCURRENCY" envDefault:"16" help:"mails in hand at a time"`
	RosterConcurrency int           `env:"ROSTER_CONCURRENCY" envDefault:"2" help:"large roster imports that work at a time, in turns with others in hand; each is of another organization"`
	OutboxLease       time.Duration `env:"OUTBOX_LEASE" envDefault:"20s" help:"how long pending work may wait on the run queue before it is put there again"`
	SchemaWait        time.Duration `env:"SCHEMA_WAIT" envDefault:"0s" help:"how long to wait at start for PostgreSQL and for its schema to be migrated"`
	AsynqPassword     string        `env:"ASYNQ_PASSWORD,unset" json:"-" help:"password of the queues' page for the user registrar; without one the page asks for none"`
	Secrets           seal.Config
	RedisTLS          queue.TLS
	Clock             clock.Config
}

// Validate implements env.Validator.
func (c *config) Validate() error {
	if c.AuditRetention != 0 && c.AuditRetention < retention.LeastAudit {
		return fmt.Errorf("AUDIT_RETENTION_DAYS: %d is less than a year; set %d or more, or 0", c.AuditRetention, retention.LeastAudit)
	}
	if _, err := mail.ParseServer(c.SMTPURL); err != nil {
		return err
	}
	if _, err := clock.Zone("PLATFORM_TIME_ZONE", c.TimeZone); err != nil {
		return err
	}
	if u, err := url.Parse(c.PublicURL); err != nil || u.Host == "" {
		return fmt.Errorf("PUBLIC_URL: %q is no http or https address", c.PublicURL)
	}
	c.PublicURL = strings.TrimRight(c.PublicURL, "/")
	if _, err := mail.ParseAddress(c.MailFrom); err != nil {
		return fmt.Errorf("MAIL_FROM: %w", err)
	}
	return nil
}

// retention is for how long what is kept.
func (c *config) retention() retention.Days {
	return retention.Days{Mails: c.MailRetention, Plans: c.PlanRetention, Rosters: c.RosterRetention, Audit: c.AuditRetention}
}
