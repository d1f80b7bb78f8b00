package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/queue"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// house is a whole Registrar with servers of its own, as in production: commits are durable.
type house struct {
	*stack.Servers

	kept     string // the folder of a kept estate's data; "" for data that goes with the house
	certs    stack.Certs
	mail     *stack.MailCatcher
	settings stack.Settings
	db       *pg.DB // the bench's own connections
	rdb      redis.UniversalClient
	webhooks webhook.Service

	api, worker, sender *stack.Program // the last two are nil in a kept house

	r *run
}

// newHouse starts everything; close ends it.
func newHouse(ctx context.Context, r *run) (*house, error) { return openHouse(ctx, r, "") }

// onHouse makes a case that runs in a house of its own.
func onHouse(do func(context.Context, *run, *house) error) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) (err error) {
		h, err := newHouse(ctx, r)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.close()) }()
		return do(ctx, r, h)
	}
}

// openHouse starts a house whose data is, and stays, in the folder kept; "" is newHouse. Nothing
// but requests changes what is kept: the worker and the sender stay out.
func openHouse(ctx context.Context, r *run, kept string) (_ *house, err error) {
	root, err := stack.Root()
	if err != nil {
		return nil, err
	}
	tools, err := stack.EnsureServers(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	bin, err := stack.Build(ctx, root)
	if err != nil {
		return nil, err
	}
	h := &house{Servers: &stack.Servers{}, kept: kept, r: r}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if err := h.startServers(ctx, r, tools); err != nil {
		return nil, err
	}
	if kept != "" { // What an earlier measurement set does not stay
		if err := h.superuser(ctx, "postgres", `ALTER SYSTEM RESET ALL`, `SELECT pg_reload_conf()`); err != nil {
			return nil, err
		}
	}
	if r.statements {
		if err := h.watchStatements(ctx); err != nil {
			return nil, err
		}
	}
	h.settings.Bin, h.settings.LogDir = bin, h.logs(r)
	return h, h.startPrograms(ctx)
}

// logs is the folder for logs.
func (h *house) logs(r *run) string {
	if r.keep != "" {
		return r.keep
	}
	return h.Dir
}

func (h *house) startServers(ctx context.Context, r *run, tools stack.Tools) error {
	options := stack.PostgresOptions{Durable: true, Settings: logSettings}
	if h.kept != "" {
		options.Dir, options.Settings = filepath.Join(h.kept, "postgres"), estateSettings
	}
	var err error
	if h.Servers, err = stack.StartServers(ctx, tools, options, r.keep); err != nil {
		return err
	}
	ports, err := stack.FreeProgramPorts(ctx)
	if err != nil {
		return err
	}
	if h.kept == "" {
		if err := h.fillLog(ctx); err != nil {
			return err
		}
	}
	if h.mail, err = stack.StartMailCatcher(ctx, stack.MailOptions{Addr: "127.0.0.1:0"}); err != nil {
		return err
	}
	if h.certs, err = stack.LoadCerts(h.Dir); err != nil {
		return err
	}
	url, err := h.Postgres.EnsureDatabase(ctx, "registrar", seal.Token())
	if err != nil {
		return err
	}
	file := filepath.Join(h.Dir, "keyset.json")
	if h.kept != "" {
		file = filepath.Join(h.kept, "keyset.json")
	}
	keyset, err := stack.Keyset(file)
	if err != nil {
		return err
	}
	box, err := seal.New(keyset)
	if err != nil {
		return err
	}
	h.webhooks = webhook.Service{Box: box, Policy: egress.New(egress.Config{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true})}
	h.settings = stack.Settings{DatabaseURL: url, RedisURL: h.Redis.URL(), SMTPURL: h.mail.URL(), PlatformKey: seal.Token(),
		KeysetFile: file, CAFile: h.certs.CAFile, Extra: []string{"LOG_LEVEL=warn", "RATE_LIMIT_PER_SECOND=0", "PPROF=true"},
		Ports: ports}
	return nil
}

func (h *house) startPrograms(ctx context.Context) error {
	if err := stack.Run(ctx, h.settings.Migrate()); err != nil {
		return err
	}
	h.api = h.settings.APIServer()
	if h.kept == "" {
		h.worker, h.sender = h.settings.Worker(), h.settings.WebhookSender()
	}
	for p, port := range h.privatePorts() {
		if err := stack.StartReady(ctx, p, port); err != nil {
			return err
		}
	}
	var err error
	if h.db, err = pg.Open(ctx, h.settings.DatabaseURL); err != nil {
		return err
	}
	if h.rdb, err = queue.Connect(h.settings.RedisURL, queue.TLS{}); err != nil {
		return err
	}
	h.db.Wakes = wake.Start(h.rdb, wake.Installation)
	h.webhooks.DB = h.db
	return nil
}

func (h *house) privatePorts() map[*stack.Program]int {
	ports := map[*stack.Program]int{h.api: h.settings.Ports.APIPrivate}
	if h.kept == "" {
		ports[h.worker], ports[h.sender] = h.settings.Ports.WorkerPrivate, h.settings.Ports.SenderPrivate
	}
	return ports
}

// watchStatements makes PostgreSQL add up what each statement costs; printStatements shows it.
func (h *house) watchStatements(ctx context.Context) error {
	if err := h.superuser(ctx, "postgres", `ALTER SYSTEM SET shared_preload_libraries = pg_stat_statements, auto_explain`); err != nil {
		return err
	}
	if err := errors.Join(h.Postgres.Stop(), h.Postgres.Start(ctx)); err != nil {
		return err
	}
	return h.superuser(ctx, "registrar",
		`CREATE EXTENSION IF NOT EXISTS pg_stat_statements`,
		`ALTER SYSTEM SET pg_stat_statements.track_planning = on`,
		`ALTER SYSTEM SET auto_explain.log_min_duration = '50ms'`,
		`ALTER SYSTEM SET log_min_duration_statement = '50ms'`,
		`ALTER SYSTEM SET log_lock_waits = on`,
		`ALTER SYSTEM SET deadlock_timeout = '100ms'`,
		`SELECT pg_reload_conf()`)
}

// superuser executes statements one after the other, over one connection.
func (h *house) superuser(ctx context.Context, database string, statements ...string) error {
	conn, err := pgx.Connect(ctx, h.Postgres.URL(database))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (h *house) printStatements(ctx context.Context, r *run) error {
	if !r.statements {
		return nil
	}
	conn, err := pgx.Connect(ctx, h.Postgres.URL("registrar"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, `
		SELECT calls, rows, total_exec_time, mean_exec_time, mean_plan_time, plans, regexp_replace(left(query, 400), '\s+', ' ', 'g')
		FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 14`)
	if err != nil {
		return err
	}
	var (
		calls, n    int64
		plan        float64
		plans       int64
		total, mean float64
		text        string
	)
	_, err = pgx.ForEachRow(rows, []any{&calls, &n, &total, &mean, &plan, &plans, &text}, func() error {
		r.printf("  %9.0f ms %8d calls %9d rows %7.3f ms each, %7d plans of %7.3f ms  %.90s", total, calls, n, mean, plans, plan, text)
		return nil
	})
	return err
}

// close ends everything and removes the data.
func (h *house) close() error {
	h.notePeaks()
	var err error
	if h.rdb != nil {
		h.db.Wakes.Close()
		err = h.rdb.Close()
	}
	if h.db != nil {
		h.db.Close()
	}
	for _, p := range []*stack.Program{h.sender, h.worker, h.api} {
		if p != nil {
			err = errors.Join(err, p.Stop())
		}
	}
	if h.mail != nil {
		err = errors.Join(err, h.mail.Stop())
	}
	return errors.Join(err, h.Stop())
}

// notePeaks notes the most memory that what runs has held.
func (h *house) notePeaks() {
	for name, p := range map[string]*stack.Program{"api-server": h.api, "worker": h.worker, "webhook-sender": h.sender} {
		if p != nil {
			h.r.peak(name, peakRSS(p.Identity().PID))
		}
	}
	if h.Redis != nil {
		h.r.peak("Redis", peakRSS(h.Redis.Identity().PID))
	}
}

// organization makes one through the platform API and returns its id.
func (h *house) organization(ctx context.Context, slug string) (id int64, err error) {
	var made struct{ ID int64 }
	err = h.settings.Platform(ctx, http.MethodPut, "organizations/"+slug, `{"name": "`+slug+`", "language_tests_enabled": true}`, &made)
	return made.ID, err
}

// private reads a page of a program's private port.
func private(ctx context.Context, port int, path string) ([]byte, error) {
	return stack.Get(ctx, fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
}

// withoutWorker stops the worker, so that work piles up, and connects to the database.
func (h *house) withoutWorker(ctx context.Context) (*pgx.Conn, error) {
	if err := h.worker.Stop(); err != nil {
		return nil, err
	}
	return pgx.Connect(ctx, h.Postgres.URL("registrar"))
}
