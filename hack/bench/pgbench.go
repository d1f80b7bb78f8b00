package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/flow/testplan"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// pgbench runs the SQL of one creation, as it is sent, again and again: same statements, same
// transaction, same pipelines, same number of clients. Both prepare each statement once a
// connection; where a call sends parameters pgbench has constants, but for what must differ.
// It returns transactions a second.
func (h *house) pgbench(ctx context.Context, key string, lasting time.Duration) (float64, error) {
	script, err := h.recordCreation(ctx, key)
	if err != nil {
		return 0, err
	}
	file := filepath.Join(h.Dir, "creation.sql")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		return 0, err
	}
	tools, err := stack.EnsureServers(ctx, os.Stderr)
	if err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(tools.PostgresBin, "pgbench"), "-n", "-M", "prepared", "-c", strconv.Itoa(clients), "-j", "2",
		"-T", strconv.Itoa(int(lasting.Seconds())), "-f", file, h.settings.DatabaseURL).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w\n%s\n%s", err, out, script)
	}
	if found := tps.FindSubmatch(out); found != nil {
		return strconv.ParseFloat(string(found[1]), 64)
	}
	return 0, fmt.Errorf("pgbench says no rate:\n%s", out)
}

var tps = regexp.MustCompile(`tps = ([0-9.]+)`)

// marker is the part of the recorded student's name that pgbench draws again each time.
const marker = "recorded7mark"

// recordCreation provisions one student in this process and writes down what is sent.
func (h *house) recordCreation(ctx context.Context, key string) (string, error) {
	who, err := org.NewKeyring(h.db).Principal(ctx, key, "127.0.0.1")
	if err != nil {
		return "", err
	}
	rec := &recorder{}
	config := h.db.Config()
	config.ConnConfig.Tracer = rec
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	db := *h.db
	db.Pool = pool
	mail, base := email.Service{Box: h.webhooks.Box}, h.settings.PublicURL()
	service := &provision.Service{DB: &db, Mail: mail, Clock: clock.System, Zone: time.UTC, PublicURL: base,
		Plans: &testplan.Service{DB: &db, Mail: mail, Clock: clock.System, Zone: time.UTC, PublicURL: base}}
	_, err = service.Student(ctx, who, provision.Command{Email: "student-" + marker + "@bench-school.org", FirstName: "Asha", LastName: "Rao", Courses: []string{"ielts"}})
	return rec.script(), err
}

// recorder writes a pgbench script of what it sees.
type recorder struct{ lines []string }

func (r *recorder) script() string {
	return "\\set n random(1, 1000000000000000)\n" + strings.Join(r.lines, "\n") + "\n"
}

// TraceQueryStart records a statement that is sent by itself. Ids that it gives are used later.
func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	end := ";"
	if strings.Contains(data.SQL, "INSERT INTO accounts") {
		end = ` \gset user_`
	}
	r.lines = append(r.lines, literal(ctx, data.SQL, data.Args)+end)
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart begins a pipeline.
func (r *recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	r.lines = append(r.lines, `\startpipeline`)
	return ctx
}

// TraceBatchQuery records a statement of a pipeline.
func (r *recorder) TraceBatchQuery(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	r.lines = append(r.lines, literal(ctx, data.SQL, data.Args)+";")
}

// TraceBatchEnd ends a pipeline.
func (r *recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {
	r.lines = append(r.lines, `\endpipeline`)
}

var placeholder = regexp.MustCompile(`\$[0-9]+`)

// literal puts the arguments into the statement.
func literal(ctx context.Context, sql string, args []any) string {
	if len(args) > 0 {
		if named, ok := args[0].(pgx.QueryRewriter); ok {
			var err error
			if sql, args, err = named.RewriteQuery(ctx, nil, sql, args[1:]); err != nil {
				panic(err) // the statement was just sent
			}
		}
	}
	return placeholder.ReplaceAllStringFunc(sql, func(p string) string {
		n, _ := strconv.Atoi(p[1:])
		return value(args[n-1])
	})
}

func value(arg any) string {
	switch v := arg.(type) {
	case nil:
		return "NULL"
	case id.User:
		return ":user_id::bigint"
	case id.Enrollment: // drawn by the statement that reads the course
		return "nextval('enrollments_id_seq')"
	case time.Time:
		return fmt.Sprintf("to_timestamp(%d.%06d)", v.Unix(), v.Nanosecond()/1000)
	case clock.Date:
		if v.IsZero() {
			return "NULL::date"
		}
		return quote(v.String()) + "::date"
	case uuid.UUID:
		return quote(v.String()) + "::uuid"
	case []byte:
		return bytesValue(v)
	}
	r := reflect.ValueOf(arg)
	switch r.Kind() {
	case reflect.String:
		return quote(r.String())
	case reflect.Slice:
		return listValue(r)
	case reflect.Array:
		return quote(arrayUUID(r))
	default:
		return fmt.Sprint(arg)
	}
}

// bytesValue tells JSON, the hash of a link, which is unique, and other bytes apart.
func bytesValue(v []byte) string {
	switch {
	case v == nil:
		return "NULL"
	case len(v) > 0 && v[0] == '{':
		return quote(string(v)) + "::jsonb"
	case len(v) == 32:
		return "sha256(random()::text::bytea)"
	}
	return `'\x` + hex.EncodeToString(v) + `'::bytea`
}

func listValue(r reflect.Value) string {
	list := make([]string, r.Len())
	kind := "bigint"
	for i := range list {
		list[i] = value(r.Index(i).Interface())
	}
	switch r.Type().Elem().Kind() {
	case reflect.String:
		kind = "text"
	case reflect.Array: // new ones each time, of the same millisecond
		kind = "uuid"
		for i := range list {
			list[i] = "(left(" + list[i] + "::text, 15) || substr(gen_random_uuid()::text, 16))::uuid"
		}
	case reflect.Int64:
		if _, plain := r.Interface().([]int64); plain { // whom events speak of
			for i := range list {
				list[i] = ":user_id::bigint"
			}
		}
	default:
	}
	return "ARRAY[" + strings.Join(list, ", ") + "]::" + kind + "[]"
}

// colon is what pgbench would take for one of its variables, in literals too.
var colon = regexp.MustCompile(`:([A-Za-z0-9_])`)

// quote makes a literal in which the marker is drawn again.
func quote(s string) string {
	s = colon.ReplaceAllString(strings.ReplaceAll(s, "'", "''"), `:' || '$1`)
	return "('" + strings.ReplaceAll(s, marker, "' || :n::text || '") + "')"
}

func arrayUUID(r reflect.Value) string {
	var u uuid.UUID
	reflect.Copy(reflect.ValueOf(&u).Elem(), r)
	return u.String()
}
