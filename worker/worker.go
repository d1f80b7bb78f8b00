package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/flow/alert"
	"github.com/registrar-dev/registrar/internal/flow/organization"
	"github.com/registrar-dev/registrar/internal/flow/person"
	"github.com/registrar-dev/registrar/internal/flow/reseal"
	"github.com/registrar-dev/registrar/internal/flow/reset"
	"github.com/registrar-dev/registrar/internal/flow/rosterimport"
	"github.com/registrar-dev/registrar/internal/flow/simulate"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/lead"
	"github.com/registrar-dev/registrar/internal/kit/mail"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/queue/monitor"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/task"
	"github.com/registrar-dev/registrar/worker/internal/handler"
	"github.com/registrar-dev/registrar/worker/internal/periodic"
	"github.com/registrar-dev/registrar/worker/internal/relay"
	"github.com/registrar-dev/registrar/worker/internal/sandbox"
)

// worker is the program's parts, put together.
type worker struct {
	config   config
	zone     *time.Location // the platform's
	log      *slog.Logger
	db       *pg.DB
	now      *pg.Clock
	rdb      redis.UniversalClient
	registry *prometheus.Registry
	tasks    *queue.Metrics
	postman  *email.Sender
	resets   *reset.Service
	importer *rosterimport.Importer
	outbox   *relay.Outbox
	webhooks *relay.Webhooks
	plans    *testplan.Service
	alerts   *alert.Service
	reseal   *reseal.Service
	keys     lms.Keys
	people   *person.Eraser
	orgs     *organization.Eraser
	sandbox  *sandbox.Runner // nil: there are none
}

// rosterTime bounds one run; the next claim continues it.
const rosterTime = 30 * time.Minute

// smtpRest is the pause after a check that the mail server answers: providers count
// connections without a mail.
const smtpRest = time.Minute

func newWorker(c config, log *slog.Logger, db, steady *pg.DB, now *pg.Clock, box *seal.Box, rdb redis.UniversalClient) (*worker, error) {
	server, err := mail.ParseServer(c.SMTPURL)
	if err != nil {
		return nil, err
	}
	from, err := mail.ParseAddress(c.MailFrom)
	if err != nil {
		return nil, err
	}
	zone, err := clock.Zone("PLATFORM_TIME_ZONE", c.TimeZone)
	if err != nil {
		return nil, err
	}
	w := &worker{config: c, zone: zone, log: log, db: db, now: now, rdb: rdb, registry: obs.NewRegistry()}
	w.tasks = queue.NewMetrics(w.registry)
	w.postman = &email.Sender{DB: db, Box: box, Server: server, From: from, Zone: zone, PublicURL: c.PublicURL, Clock: now.Now, Log: log,
		Observe: observeMails(w.registry)}
	service := email.Service{Box: box, Suppressed: c.Suppressed}
	w.resets = &reset.Service{DB: db, Mail: service, Clock: now.Now, PublicURL: c.PublicURL}
	w.plans = &testplan.Service{DB: db, Mail: service, Clock: now.Now, Log: log, Zone: zone, PublicURL: c.PublicURL}
	w.alerts = &alert.Service{DB: db, Mail: service, Clock: now.Now, PublicURL: c.PublicURL}
	w.importer = &rosterimport.Importer{DB: db, Clock: now.Now, Zone: zone, Log: log, Lease: c.OutboxLease,
		Turns: rosterimport.NewTurns(c.RosterConcurrency)}
	client := queue.NewClient(rdb)
	w.outbox = &relay.Outbox{DB: db, Queue: client, Clock: now.Now, Log: log, Lease: c.OutboxLease,
		Kinds: map[task.Kind]time.Duration{
			task.EmailSend:      server.Times.Total() + 30*time.Second,
			task.PasswordReset:  0,
			task.PlanStep:       0,
			task.RosterRun:      rosterTime,
			task.WebhookCancel:  0,
			task.WebhookRecover: 0,
			task.WebhookSkip:    0,
		}}
	w.reseal, w.keys = reseal.New(db, box, log, w.registry), lms.Keys{DB: db, Box: box}
	w.people = &person.Eraser{DB: db, Box: box, Clock: now.Now, Log: log}
	w.orgs = &organization.Eraser{DB: db, Clock: now.Now, Log: log}
	sandboxes, err := simulate.New(c.SandboxURL, db, now.Now, log)
	if err != nil {
		return nil, err
	}
	if sandboxes != nil {
		w.sandbox = &sandbox.Runner{Sandboxes: sandboxes, Queue: client, Config: sandbox.Config{Box: box, Zone: zone, From: from, PublicURL: c.PublicURL,
			WebhookRetention: c.WebhookRetention, Keep: c.retention(), MaxSize: sandboxes.MaxSize, Log: log, Real: now.Now}}
	}
	w.webhooks = &relay.Webhooks{DB: steady, Queue: client, Clock: now.Now, Log: log}
	obs.PoolMetrics(w.registry, db.Pool)
	pg.SchemaMetrics(w.registry, db)
	now.Metrics(w.registry)
	db.Wakes.Metrics(w.registry)
	w.registry.MustRegister(lead.Held, w.outbox, w.webhooks, &relay.Backlog{DB: db, Clock: now.Now, Log: log}, &periodic.Late{DB: db, Clock: now.Now, Log: log}, queue.Collector(rdb, queue.Email, queue.Webhook, queue.Plan, queue.Maintenance, queue.Roster))
	return w, nil
}

// observeMails counts attempts by type and result, and how long accepted mails took.
func observeMails(reg prometheus.Registerer) func(email.Type, mail.Result, time.Duration) {
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "registrar_mail_attempts_total",
		Help: "Attempts to send a mail, by type and result (accepted, temporary, permanent or uncertain)."}, []string{"type", "result"})
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "registrar_mail_order_to_acceptance_seconds",
		Help:    "Time from a mail's order to its acceptance by the mail server.",
		Buckets: []float64{.1, .5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 6 * 3600}})
	reg.MustRegister(attempts, took)
	return func(t email.Type, r mail.Result, since time.Duration) {
		attempts.WithLabelValues(string(t), string(r)).Inc()
		if r == mail.Accepted {
			took.Observe(max(0, since.Seconds()))
		}
	}
}

// run runs all of a worker's pieces until ctx ends, and serves its private port.
func (w *worker) run(ctx context.Context) error {
	// Neither Redis nor the mail server makes a worker unready: other work can go on.
	probe := pg.NewProbe(w.db)
	defer probe.Close(ctx)
	private := obs.NewPrivate(w.registry,
		obs.Check{Name: "postgresql", Probe: probe.Ping},
		obs.Check{Name: "redis", Optional: true, Probe: func(ctx context.Context) error { return queue.Ping(ctx, w.rdb) }},
		obs.Check{Name: "smtp", Optional: true, Probe: obs.Seldom(smtpRest, w.postman.Server.Ping)})
	private.Profiles(w.config.Profiles)
	page := monitor.Handler("/asynq", w.rdb)
	defer func() { _ = page.Close() }()
	private.Handle("/asynq", monitor.SignIn(w.config.AsynqPassword, page))
	private.Handle("/asynq/", monitor.SignIn(w.config.AsynqPassword, page))
	return obs.Run(ctx, private, w.config.PrivateAddr, w.pieces()...)
}

// pieces is everything that runs at the same time, until its context ends.
func (w *worker) pieces() []func(context.Context) error {
	pieces := []func(context.Context) error{
		w.lead("relay-outbox", w.outbox.Run),
		func(ctx context.Context) error { w.webhooks.Run(ctx); return nil },
		func(ctx context.Context) error {
			return lead.Share(ctx, w.db, "relay-webhooks", relay.ShardNames(), w.webhooks.Lead)
		},
		w.lead("duties", func(ctx context.Context) {
			periodic.Run(ctx, w.now.Now, w.log, append(periodic.All(w.db, w.zone, w.config.WebhookRetention), periodic.Plans(w.plans), periodic.Alerts(w.alerts), periodic.Reseal(w.reseal),
				periodic.ErasePeople(w.people), periodic.EraseOrganizations(w.orgs), periodic.Retain(w.db, w.config.retention()), periodic.LMSKeys(w.keys)))
		}),
		w.serve(queue.Email, w.config.EmailConcurrency, map[task.Kind]queue.Handler{
			task.EmailSend: handler.Outbox(w.postman.Deliver), task.PasswordReset: handler.Outbox(w.resets.Answer)}),
		w.serve(queue.Plan, w.config.PlanConcurrency, map[task.Kind]queue.Handler{task.PlanStep: handler.Plan(w.plans)}),
		w.serve(queue.Roster, rosterimport.InHand, map[task.Kind]queue.Handler{task.RosterRun: handler.Outbox(w.importer.Run)}),
		w.serve(queue.Maintenance, 2, handler.Maintenance{DB: w.db, Clock: w.now.Now}.Handlers()),
	}
	if w.sandbox != nil {
		pieces = append(pieces, w.lead("sandboxes", w.sandbox.Run))
	}
	return pieces
}

// lead makes a piece of work that only one worker at a time does.
func (w *worker) lead(name string, do func(context.Context)) func(context.Context) error {
	return func(ctx context.Context) error {
		return lead.Lead(ctx, w.db, name, func(ctx context.Context, _ lead.Lease) { do(ctx) })
	}
}

func (w *worker) serve(name queue.Name, concurrency int, handlers map[task.Kind]queue.Handler) func(context.Context) error {
	return func(ctx context.Context) error {
		return queue.Serve(ctx, w.rdb, queue.Options{Queue: name, Concurrency: concurrency, Handlers: handlers, Log: w.log, Metrics: w.tasks})
	}
}
