// Package pg gives access to PostgreSQL: the pool, transactions, constraint names and the embedded
// migrations.
//
// A function that takes a Querier may run anywhere; one that takes a *Tx must run in
// its caller's transaction.
package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/obs"
	"github.com/registrar-dev/registrar/internal/kit/wake"
)

// Querier is what a statement needs: a pool, a connection or a transaction.
type Querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
}

// DB is a pool of connections.
type DB struct {
	*pgxpool.Pool

	// Wakes sends the wake-ups of transactions, and those of others arrive by it. Set it before
	// the DB is used, and before a second pool is opened; nil sends none.
	Wakes *wake.Bus
	// Committed, when set, is called after each commit of a transaction that asked for a wake-up.
	Committed func(context.Context)

	pooled  bool   // PostgreSQL is reached through a pooler
	setting string // the statement that each transaction begins with then
	commits *commits
}

// defaultConns is the pool's size when the address does not set pool_max_conns. With pgx's
// default, one a core, requests would wait for each other on small machines, and large
// machines would open more connections than an operator expects.
const defaultConns = 16

// A connection is replaced after lifetime, or up to lifetimeJitter later, so that one that leads where
// the address no longer does is not kept.
const (
	lifetime       = 5 * time.Minute
	lifetimeJitter = time.Minute
)

// silence is how long a transaction may be idle between two statements. PostgreSQL then ends
// the transactions of a program whose machine was lost, and frees their locks; by itself it
// would notice only after hours.
const (
	silence           = "1min"
	idleInTransaction = "idle_in_transaction_session_timeout"
)

// Open connects to the database of url (a postgres:// address, whose query may hold
// pgxpool settings such as pool_max_conns) and waits up to 10 s for its first answer. The address may
// name several servers: connections lead to the one that takes writes.
func Open(ctx context.Context, url string) (*DB, error) {
	cfg, err := configure("DATABASE_URL", url)
	if err != nil {
		return nil, err
	}
	leaveStandbys(cfg.ConnConfig)
	return open(ctx, cfg)
}

// configure reads the address that the variable has.
func configure(variable, url string) (*pgxpool.Config, error) {
	cfg, err := parse(variable, url)
	if err != nil {
		return nil, err
	}
	if _, given := cfg.ConnConfig.RuntimeParams["application_name"]; !given {
		cfg.ConnConfig.RuntimeParams["application_name"] = "registrar"
	}
	if !strings.Contains(url, "pool_max_conns") {
		cfg.MaxConns = defaultConns
	}
	if !strings.Contains(url, "pool_max_conn_lifetime") {
		cfg.MaxConnLifetime, cfg.MaxConnLifetimeJitter = lifetime, lifetimeJitter
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = connectTimeout(cfg.ConnConfig)
	}
	cfg.ConnConfig.OnNotice = noteUnreplicated
	// Days are computed in Go; timestamps are sent as instants.
	cfg.ConnConfig.RuntimeParams["timezone"] = "UTC"
	if obs.Tracing() {
		cfg.ConnConfig.Tracer = otelpgx.NewTracer() // below a span alone; without arguments
	}
	return cfg, nil
}

// open connects as cfg says.
func open(ctx context.Context, cfg *pgxpool.Config) (*DB, error) {
	cfg = cfg.Copy()
	commits := newCommits()
	cfg.ConnConfig.DialFunc = commits.dialer(cfg.ConnConfig.ConnectTimeout)
	// PostgreSQL would compile short statements on many partitions, which is never worth it.
	settings := map[string]string{"jit": "off"}
	if _, given := cfg.ConnConfig.RuntimeParams[idleInTransaction]; !given {
		settings[idleInTransaction] = silence
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	pool, pooled, err := connect(ctx, cfg, settings)
	if err != nil {
		return nil, fmt.Errorf("postgresql does not answer: %w", err)
	}
	db := &DB{Pool: pool, pooled: pooled, commits: commits}
	if pooled {
		db.setting = setLocally(settings)
		db.tellOfPooler(ctx)
	}
	return db, nil
}

// parse reads an address. Whatever it asks for, connections lead to a server that takes writes: to be
// led to a standby is to find PostgreSQL away. Its error says what is wrong without any part of the address: pgx
// removes the password only from addresses in which it recognises one.
func parse(variable, url string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err == nil {
		cfg.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
		return cfg, nil
	}
	text, what := err.Error(), "it cannot be read"
	if inner := errors.Unwrap(err); inner != nil {
		text = strings.TrimSuffix(text, " ("+inner.Error()+")")
	}
	if i := strings.LastIndex(text, "`: "); i >= 0 { // cannot parse `postgres://…`: what
		what = text[i+len("`: "):]
	}
	return nil, fmt.Errorf("%s: %s; send a postgres:// address, with special characters of the user name and password percent-encoded", variable, what)
}

// Exec implements Querier for a statement that stands alone and changes something.
func (db *DB) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if db.commits.wait() {
		return pgconn.CommandTag{}, errCommitsWait
	}
	return db.Pool.Exec(ctx, sql, args...)
}

// attempts bounds how often InTx runs a transaction that PostgreSQL aborts because of a
// deadlock.
const attempts = 3

// Along runs fn, which only reads pages, each along the index that has its order. PostgreSQL, which cannot tell how few of the
// rows are wanted, would read all of them and sort them.
func (db *DB) Along(ctx context.Context, fn func(q Querier) error) error {
	return db.InTx(ctx, func(tx *Tx) error {
		if _, err := tx.Exec(ctx, `SELECT set_config(name, 'off', true) FROM unnest(ARRAY['enable_sort', 'enable_bitmapscan']) AS name`); err != nil {
			return err
		}
		return fn(tx)
	})
}

// InTx runs fn in one READ COMMITTED transaction, which it commits when fn returns nil and
// rolls back otherwise. After a deadlock fn runs again, so it must have no effect outside the
// transaction.
func (db *DB) InTx(ctx context.Context, fn func(tx *Tx) error) error {
	var err error
	for range attempts {
		if err = db.once(ctx, fn); !deadlocked(err) {
			return err
		}
	}
	return err
}

func (db *DB) once(ctx context.Context, fn func(tx *Tx) error) error {
	if db.commits.wait() {
		return errCommitsWait
	}
	conn, err := db.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	tx := &Tx{conn: conn, setting: db.setting}
	defer conn.Release()
	defer tx.rollback(ctx)
	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.end(ctx); err != nil {
		return err
	}
	if unreplicated(conn.Conn()) {
		_ = conn.Conn().Close(ctx)
		return fmt.Errorf("commit: %w", errCommitsWait)
	}
	for _, w := range tx.wakes {
		db.Wakes.Wake(w.channel, w.payload)
	}
	if db.Committed != nil && len(tx.wakes) > 0 {
		db.Committed(context.WithoutCancel(ctx))
	}
	return nil
}

func deadlocked(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && (e.Code == "40P01" || e.Code == "40001")
}

// Violates says whether err is the violation of the named constraint or unique index.
func Violates(err error, constraint string) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.ConstraintName == constraint
}

// Duplicate says whether err is the violation of any unique constraint.
func Duplicate(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "23505"
}

// Locked says whether err is that of a statement that waited for a lock for too long (Batch.Hurry, GiveWay).
func Locked(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "55P03"
}

// Refused says whether err is PostgreSQL's refusal of a statement, which it may take in another transaction.
// When the server is away, a standby, out of disk or memory, it refuses all alike.
func Refused(err error) bool {
	var e *pgconn.PgError
	all := func(class string) bool { return strings.HasPrefix(e.Code, class) }
	return errors.As(err, &e) && !Away(err) && !slices.ContainsFunc([]string{"25", "53", "57", "58"}, all)
}

// Away says whether err means that PostgreSQL cannot be used now, so that a retry can help: a refused or
// lost connection, a server that starts, stops or has no connection or disk left, a standby, a
// transaction that was idle for too long, commits that wait for a standby. After a lost connection the
// transaction may have been committed.
func Away(err error) bool {
	var connecting *pgconn.ConnectError
	var lost *lostError
	if errors.As(err, &connecting) || errors.As(err, &lost) || errors.Is(err, errCommitsWait) {
		return true
	}
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return strings.HasPrefix(e.Code, "08") || strings.HasPrefix(e.Code, "57P") ||
			slices.Contains([]string{"53100", "53300", "58030", "25P03"}, e.Code) || ofStandby(e)
	}
	return pgconn.SafeToRetry(err)
}

// Unreadable says whether err means that a text was sent which PostgreSQL cannot hold: with a NUL
// character, or not in UTF-8.
func Unreadable(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == "22021"
}

// None says whether err means that a query found no row.
func None(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// Lock takes the advisory lock of (space, key), waiting until it is free. The lock is released
// with the transaction. Spaces keep unrelated keys apart.
func Lock(ctx context.Context, tx *Tx, space LockSpace, key string) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, hashtext($2))`, int32(space), key)
	return err
}

// LockAll takes the locks of many keys of a space. All callers take them in the same order, so
// that two of them never deadlock.
func LockAll(ctx context.Context, tx *Tx, space LockSpace, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		SELECT pg_advisory_xact_lock($1, k.hash)
		FROM (SELECT DISTINCT hashtext(key) AS hash FROM unnest($2::text[]) AS key ORDER BY hash) AS k`, int32(space), keys)
	return err
}

// TryLockAll takes those locks of LockAll that are free, and returns their keys.
func TryLockAll(ctx context.Context, tx *Tx, space LockSpace, keys []string) ([]string, error) {
	return Column[string](ctx, tx, `
		SELECT key FROM unnest($2::text[]) AS key WHERE pg_try_advisory_xact_lock($1, hashtext(key))`, int32(space), keys)
}

// AwaitOthers returns once the transactions that had begun in the database before are over, or after 10 s, and says which: a
// process that has died or stands still may have left one, with its locks. It sees those of its own role.
func AwaitOthers(ctx context.Context, q Querier) (over bool, err error) {
	within, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var began *time.Time // NULL with the first question
	for {
		var others bool
		err := q.QueryRow(ctx, `
			SELECT coalesce($1::timestamptz, now()), EXISTS (
				SELECT FROM pg_stat_activity
				WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
				  AND xact_start <= coalesce($1, now()))`, began).Scan(&began, &others)
		if err != nil || !others {
			return err == nil, err
		}
		if clock.Pause(within, 2*time.Millisecond) != nil {
			return false, ctx.Err()
		}
	}
}

// GiveWay makes the transaction's statements fail when they wait for a lock longer than
// lockPatience. Use it before locking a whole table, because all later transactions queue
// behind such a lock.
func GiveWay(ctx context.Context, tx *Tx) error {
	_, err := tx.Exec(ctx, "SET LOCAL "+lockTimeout+" = '"+lockPatience+"'")
	return err
}

// LockSpace is the first key of an advisory lock. All of them are listed here, so that
// no two uses can meet by chance.
type LockSpace int32

// The lock spaces.
const (
	LockEmail        LockSpace = 1001 // one provisioning call an email address
	LockOrganization LockSpace = 1003 // one upsert an organization's slug
	LockRoster       LockSpace = 1050 // whose turn it is among an organization's roster runs
	LockBatch        LockSpace = 1051 // one batch of people's changes at a time, of all organizations

	LockActivity LockSpace = 1020 // "register": adding events against closing days; a date: one compilation a day
	LockCatalog  LockSpace = 1021 // one upsert a catalog item's kind and code
	LockLTI      LockSpace = 1026 // one new secret an organization's LMS
	LockLMS      LockSpace = 1028 // an organization's number: one registration at a time; "keys": one new key; "pulls": one process that hands out pulls
	LockSandbox  LockSpace = 1027 // one process that makes, wipes or drops an organization's sandbox

	LockRights    LockSpace = 1060 // one process that changes what the programs' roles may do
	LockDatabases LockSpace = 1061 // one process that makes or drops databases beside the own
)
