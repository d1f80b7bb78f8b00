package main

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/api-server/internal/docsite"
	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/api-server/internal/rest"
	"github.com/registrar-dev/registrar/api-server/internal/server"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/env"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/obs/otlp"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

type serveCommand struct{}

// Run wires the program and serves until the process is asked to end.
func (serveCommand) Run(p *process) error {
	c, err := env.Parse[config](p.getenv)
	if err != nil {
		return err
	}
	log := obs.Logger(p.stdout, c.LogLevel, "api-server")
	slog.SetDefault(log)
	c.Clock.Set(log)
	stopTraces, err := otlp.Start(p.ctx, "api-server", p.getenv)
	if err != nil {
		return err
	}
	defer stopTraces()
	box, err := seal.Open(c.Secrets)
	if err != nil {
		return err
	}
	db, err := pg.OpenCurrent(p.ctx, c.DatabaseURL, c.SchemaWait)
	if err != nil {
		return err
	}
	defer db.Close()
	rdb, err := queue.Connect(c.RedisURL, c.RedisTLS)
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()
	db.Wakes = wake.Start(rdb, wake.Installation)
	defer db.Wakes.Close()
	reg := obs.NewRegistry()
	db.Wakes.Metrics(reg)
	obs.PoolMetrics(reg, db.Pool)
	pg.SchemaMetrics(reg, db)
	reads, err := pg.NewReads(db, c.DatabaseReadURL)
	if err != nil {
		return err
	}
	reads.Metrics(reg)
	now, err := pg.StartClock(p.ctx, db, clock.System, log)
	if err != nil {
		return err
	}
	now.Metrics(reg)
	sandboxes, err := simulate.New(c.SandboxURL, db, now.Now, log)
	if err != nil {
		return err
	}
	keys, usage, mails, rosters := org.NewKeyring(db), org.NewUsage(db, log), email.NewWatch(db), roster.NewWatch(db)
	refusals := audit.NewRefusals(db, now.Now, log)
	apis := server.New(server.Deps{DB: db, Reads: reads, Clock: now.Now, Zone: c.zone, Keys: keys, Usage: usage, Refusals: refusals, Mails: mails, Rosters: rosters, Sandboxes: sandboxes, Box: box, Egress: egress.New(c.Egress), Redis: rdb, Log: log, Registry: reg,
		PlatformKey: c.PlatformKey, PreviousPlatformKey: c.PreviousKey, PublicURL: c.PublicURL, Suppressed: c.Suppressed, Proxies: c.proxies, EgressAddresses: c.EgressAddresses, SafeExamBrowser: c.SafeExamBrowser, InFlight: c.MaxInFlight, Connections: db.Config().MaxConns,
		Rate: rest.Rate{PerSecond: c.RatePerSecond, Burst: c.RateBurst}})
	probe := pg.NewProbe(db)
	defer probe.Close(p.ctx)
	probe.Metrics(reg)
	private := obs.NewPrivate(reg,
		obs.Check{Name: "postgresql", Probe: probe.Ping},
		obs.Check{Name: "commits", Optional: true, Probe: probe.Commits}, // what reads goes on without them
		obs.Check{Name: "redis", Optional: true, Probe: func(ctx context.Context) error { return queue.Ping(ctx, rdb) }})
	private.Profiles(c.Profiles)
	serve, err := obs.Listen(p.ctx, c.bounded(reg, "public", obs.NewServer(c.HTTPAddr, apis.Public)),
		c.bounded(reg, "platform", obs.NewServer(c.PlatformAddr, apis.Platform)))
	if err != nil {
		return err
	}
	go docsite.Prepare()
	log.Info("serving", "http", c.HTTPAddr, "platform", c.PlatformAddr, "private", c.PrivateAddr)
	watch := func(ctx context.Context) error { probe.Watch(ctx, nil); return nil }
	return obs.Run(p.ctx, private, c.PrivateAddr, keys.Run, usage.Run, refusals.Run, mails.Run, rosters.Run, reads.Run, watch, serve)
}

// bounded bounds the server's connections.
func (c config) bounded(reg prometheus.Registerer, port string, s *http.Server) *http.Server {
	connections := &limit.Connections{All: c.MaxConnections, Each: max(c.MaxConnections/8, 1), Proxies: c.proxies}
	connections.Metrics(reg, port)
	connections.Watch(s)
	return s
}
