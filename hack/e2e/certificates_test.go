package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/registrar-dev/registrar/hack/stack"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// Servers, the authority of their certificate and a client certificate may come from the environment,
// as the chart sets it (database.hosts, caSecret and clientCertSecret).
func TestPostgreSQLByItsOwnAuthority(t *testing.T) {
	t.Parallel()
	o := ownPostgres(t)
	settings, env, err := stack.DatabaseTLS(filepath.Join(filepath.Dir(o.Dir), "tls"), o.User)
	must(t, err)
	o.Settings = settings
	server, _ := startPostgres(t, o)

	h := newHouseOn(t, "postgres://registrar@/registrar", append(env, "PGHOST=localhost,127.0.0.1", fmt.Sprintf("PGPORT=%d", o.Port))...)
	h.provision("asha@north-institute.org", http.StatusCreated)
	h.awaitEvents("asha@north-institute.org", 2)
	conn, err := pgx.Connect(t.Context(), server.URL("postgres"))
	must(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	var all, shown int
	err = conn.QueryRow(t.Context(), `
		SELECT count(*), count(*) FILTER (WHERE s.ssl AND s.client_dn = '/CN=registrar')
		FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid) WHERE a.usename LIKE 'registrar\_%'`).Scan(&all, &shown)
	must(t, err)
	check.True(t, "the programs are connected", all > 0, "")
	check.Equal(t, "connections with TLS and a certificate", shown, all, "")
}
