package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// drill is a PostgreSQL that the commands of docs/restore.md find as they say.
type drill struct {
	t         *testing.T
	options   stack.PostgresOptions
	variables []string
	commands  []string // of the page, in their order
	settings  string
}

func newDrill(t *testing.T) *drill {
	t.Helper()
	o := ownPostgres(t)
	dir := filepath.Dir(o.Dir)
	superuser := fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", o.Port)
	d := &drill{t: t, options: o, variables: []string{
		"PGDATA=" + o.Dir,
		"BACKUPS=" + filepath.Join(dir, "backups"),
		"ARCHIVE=" + filepath.Join(dir, "archive"),
		"SUPERUSER_URL=" + superuser,
		"PATH=" + strings.Join([]string{o.Bin, os.Getenv("REGISTRAR_BIN"), os.Getenv("PATH")}, ":"),
		"LC_ALL=C",
	}}
	root, err := stack.Root()
	must(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "restore.md"))
	must(t, err)
	for _, block := range blocks.FindAllStringSubmatch(string(page), -1) {
		if block[2] == "sh" {
			d.commands = append(d.commands, block[3])
		} else {
			d.settings += strings.ReplaceAll(block[3], "/var/lib/registrar/archive", filepath.Join(dir, "archive"))
		}
	}
	check.Equal(check.Now(t), "blocks of commands", len(d.commands), 3, "docs/restore.md")
	for _, folder := range []string{dir, filepath.Join(dir, "backups"), filepath.Join(dir, "archive")} {
		must(t, os.MkdirAll(folder, 0o755))
		if u := o.User; u != nil {
			must(t, os.Chown(folder, int(u.UID), int(u.GID)))
		}
	}
	d.sh(`initdb --username=postgres --encoding=UTF8 --locale=C.UTF-8 --auth=trust >/dev/null; cat >> "$PGDATA/postgresql.conf"`,
		fmt.Sprintf("port = %d\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nmax_connections = 200\n%s", o.Port, d.settings))
	d.sh(`pg_ctl start --log="$PGDATA.log" --wait >/dev/null`, "")
	t.Cleanup(func() {
		if err := d.command(`pg_ctl stop --mode=immediate >/dev/null`, "").Run(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// command is a line for the shell of the user who runs PostgreSQL.
func (d *drill) command(line, input string, variables ...string) *exec.Cmd {
	args := []string{"sh", "-ec", line}
	if u := d.options.User; u != nil {
		args = append([]string{"runuser", "-u", u.Name, "--"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stdin = filepath.Dir(d.options.Dir), strings.NewReader(input)
	cmd.Env = append(append(os.Environ(), d.variables...), variables...)
	return cmd
}

func (d *drill) sh(line, input string, variables ...string) string {
	d.t.Helper()
	out, err := d.command(line, input, variables...).CombinedOutput()
	check.NoError(check.Now(d.t), err, "%s: %s", line, out)
	return string(out)
}

// The commands of docs/restore.md bring an installation back as it was at a moment. Readers with stored cursors
// learn that rows are lost, and miss nothing that comes afterwards.
// Reference: conventions#cursors.
func TestARestoreToAPointInTime(t *testing.T) {
	t.Parallel()
	d := newDrill(t)
	d.sh(`psql --quiet "$SUPERUSER_URL" --command "CREATE ROLE registrar LOGIN SUPERUSER" --command "CREATE DATABASE registrar OWNER registrar"`, "")
	owner := fmt.Sprintf("postgres://registrar@127.0.0.1:%d/registrar?sslmode=disable", d.options.Port)
	settings := stack.Settings{Bin: os.Getenv("REGISTRAR_BIN"), LogDir: t.TempDir(), DatabaseURL: owner, Ports: stack.Ports{API: port(t), Platform: port(t), APIPrivate: port(t)}}
	must(t, stack.Run(t.Context(), settings.Migrate()))
	d.sh(`psql --quiet "$SUPERUSER_URL"`, `SELECT format('ALTER ROLE %I LOGIN', rolname) FROM pg_roles WHERE rolname LIKE 'registrar\_%' \gexec`)
	h := newHouseOn(t, owner)
	first := h.provision("first@north-institute.org", http.StatusCreated)
	h.walk("/api/v1/students/", "") // the first one makes the cursors' key
	d.sh(d.commands[0], "")
	h.provision("kept@north-institute.org", http.StatusCreated)
	var moment string
	db, err := pgx.Connect(t.Context(), owner)
	must(t, err)
	must(t, db.QueryRow(t.Context(), `SELECT clock_timestamp()::text FROM pg_sleep(1.5)`).Scan(&moment))
	must(t, db.Close(t.Context()))
	lost := h.provision("lost@north-institute.org", http.StatusCreated)
	cursor := h.walk("/api/v1/students/", "").cursor
	for _, p := range []*stack.Program{h.api, h.worker, h.sender} {
		must(t, p.Stop())
	}
	d.sh(d.commands[1], "", "MOMENT="+moment)
	said := d.sh(d.commands[2], "", "DATABASE_URL="+owner)
	check.Contains(t, "what the command says", said, "have begun an epoch", "%s", said)
	h.startPrograms()
	after := h.provision("after@north-institute.org", http.StatusCreated)
	check.True(t, "the id is a new one", after.UserID > lost.UserID, "%d after %d and %d", after.UserID, first.UserID, lost.UserID)
	h.provision("lost@north-institute.org", http.StatusCreated)
	h.provision("kept@north-institute.org", http.StatusOK)
	rest := h.walk("/api/v1/students/", cursor)
	check.True(t, "the reader learns of the loss", rest.told, "%+v", rest)
	check.Slices(t, "what the reader gets", rest.rows, []string{"after@north-institute.org", "lost@north-institute.org"}, "behind the cursor")
}
