package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func settings(t *testing.T) map[string]string {
	t.Helper()
	keyset, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	owner := pgtest.URL(t)
	return map[string]string{
		"OWNER_URL":    owner,                                                                    // not of the program: for tests
		"DATABASE_URL": pgtest.As(t, owner, "api-server"), "REDIS_URL": "redis://" + freeAddr(t), // nobody listens there
		"HTTP_ADDR": freeAddr(t), "PLATFORM_ADDR": freeAddr(t), "PRIVATE_ADDR": freeAddr(t),
		"PLATFORM_KEY": "0123456789abcdef", "PUBLIC_URL": "http://localhost/", "SECRET_KEYSET": string(keyset),
	}
}

// fetch gives status and body; 0 while nobody listens.
func fetch(t *testing.T, url, key string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	body, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(body)
}

// The program serves while Redis is away, says so, and ends when it is asked to.
func TestServesWithoutRedisAndEndsInOrder(t *testing.T) {
	vars := settings(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, nil, environment(vars), io.Discard) }()
	status, ready := 0, ""
	for deadline := time.Now().Add(20 * time.Second); status == 0 && time.Now().Before(deadline); {
		select {
		case err := <-ended:
			t.Fatalf("ended by itself: %v", err)
		default:
		}
		status, ready = fetch(t, "http://"+vars["PRIVATE_ADDR"]+"/readyz", "")
	}
	check.Equal(check.Now(t), "status", status, 200, "readyz: %d %s", status, ready)
	check.Contains(check.Now(t), "the readiness", ready, `"degraded"`, "readyz: %d %s", status, ready)
	check.Contains(check.Now(t), "the readiness", ready, `"redis"`, "readyz: %d %s", status, ready)
	if status, body := fetch(t, "http://"+vars["HTTP_ADDR"]+"/api/v1/ping/", "wrong"); status != 401 {
		t.Errorf("ping: %d %s", status, body)
	}
	if status, body := fetch(t, "http://"+vars["PLATFORM_ADDR"]+"/platform/v1/organizations/x/api-keys", vars["PLATFORM_KEY"]); status != 404 {
		t.Errorf("platform: %d %s", status, body)
	}
	_, metrics := fetch(t, "http://"+vars["PRIVATE_ADDR"]+"/metrics", "")
	for _, want := range []string{"registrar_http_requests_total{", "registrar_postgres_pool_connections{", "go_goroutines"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"HTTP_ADDR", "PLATFORM_ADDR", "PRIVATE_ADDR"} {
		if status, _ := fetch(t, "http://"+vars[addr], ""); status != 0 {
			t.Errorf("%s is still served", addr)
		}
	}
}

// A replica whose connections are all in use is ready: left alone, it would only hand its load
// to the next one.
func TestReadyWhileAllConnectionsAreInUse(t *testing.T) {
	vars := settings(t)
	db, err := pg.Open(t.Context(), vars["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, nil, environment(vars), io.Discard) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	readyz := func() (status int, body string) { return fetch(t, "http://"+vars["PRIVATE_ADDR"]+"/readyz", "") }
	for deadline := time.Now().Add(20 * time.Second); ; {
		if status, body := readyz(); status == 200 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("it does not begin: %d %s", status, body)
		}
	}
	hold, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hold.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := hold.Exec(t.Context(), `LOCK TABLE organizations IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	const pool = 16
	statuses := make(chan int, pool)
	for range pool {
		go func() {
			status, _ := fetch(t, "http://"+vars["PLATFORM_ADDR"]+"/platform/v1/organizations/x/api-keys", vars["PLATFORM_KEY"])
			statuses <- status
		}()
	}
	pgtest.AwaitAllBlocked(t, db, hold, pool)
	for range 3 {
		if status, body := readyz(); status != 200 {
			t.Errorf("with all connections in use: %d %s", status, body)
		}
	}
	if err := hold.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range pool {
		if status := <-statuses; status != 404 {
			t.Errorf("a request that held a connection: %d", status)
		}
	}
}

func TestConfigurationFaultsAreToldTogether(t *testing.T) {
	err := run(t.Context(), []string{"serve"}, environment(map[string]string{"REDIS_URL": "redis://x"}), io.Discard)
	if err == nil {
		t.Fatal("started")
	}
	for _, want := range []string{"DATABASE_URL is required", "PLATFORM_KEY is required", "PUBLIC_URL is required"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
	vars := settings(t)
	vars["PLATFORM_KEY"], vars["PUBLIC_URL"], vars["PLATFORM_TIME_ZONE"], vars["MAX_IN_FLIGHT"] = "short", "registrar.example", "Mars/Base", "-1"
	vars["EGRESS_ADDRESSES"] = "203.0.113.7,hooks.example"
	err = run(t.Context(), nil, environment(vars), io.Discard)
	for _, want := range []string{"EGRESS_ADDRESSES: ", "PLATFORM_KEY: ", "PUBLIC_URL: ", "PLATFORM_TIME_ZONE: ", "MAX_IN_FLIGHT: "} {
		if check.True(t, "there is an error", err != nil, "%q is missing in:\n%v", want, err) {
			check.Contains(t, "the error", err.Error(), want, "%q is missing in:\n%v", want, err)
		}
	}
}

func TestMigrateNeedsOnlyTheDatabase(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), []string{"migrate"}, environment(map[string]string{"DATABASE_URL": pgtest.URL(t)}), &out)
	check.NoError(check.Now(t), err, "%v\n%s", err, out.String())
	check.Contains(check.Now(t), "the output", out.String(), "schema is current", "%v\n%s", err, out.String())
}

func TestNewKeysetOpensABox(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"new-keyset"}, environment(nil), &out); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.New(out.Bytes()); check.NoError(check.Now(t), err, "%v in %s", err, out.String()) {
		check.True(check.Now(t), "the output is JSON", json.Valid(out.Bytes()), "%v in %s", err, out.String())
	}
}

func TestRotateKeyset(t *testing.T) {
	vars := settings(t)
	for _, step := range []string{"add", "promote"} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{"rotate-keyset", step}, environment(vars), &out); err != nil {
			t.Fatal(err)
		}
		if _, err := seal.New(out.Bytes()); check.NoError(check.Now(t), err, "%s: %v in %s", step, err, out.String()) {
			check.True(check.Now(t), "the keyset is another", out.String() != vars["SECRET_KEYSET"]+"\n", "%s: %v in %s", step, err, out.String())
		}
		vars["SECRET_KEYSET"] = out.String()
	}
	if err := run(t.Context(), []string{"rotate-keyset", "promote"}, environment(vars), io.Discard); err == nil {
		t.Fatal("promoted twice")
	}
}

// The database is the same in all steps, as is what the first key sealed.
func TestAnOlderKeyIsDroppedWhenNothingNeedsIt(t *testing.T) {
	vars := settings(t)
	command := func(step string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), []string{"rotate-keyset", step}, environment(vars), &out)
		return out.String(), err
	}
	_, err := command("drop")
	check.True(check.Now(t), "the only key is not dropped", err != nil, "%v", err)
	db, err := pg.Open(t.Context(), vars["OWNER_URL"])
	check.NoError(check.Now(t), err, "the database")
	defer db.Close()
	store := func() {
		box, err := seal.New([]byte(vars["SECRET_KEYSET"]))
		check.NoError(check.Now(t), err, "the keyset")
		sealed, err := box.Seal(t.Context(), []byte("a secret"), "page_keys/1")
		check.NoError(check.Now(t), err, "a secret")
		_, err = db.Exec(t.Context(), `
			INSERT INTO page_keys (version, sealed) VALUES (1, $1) ON CONFLICT (version) DO UPDATE SET sealed = excluded.sealed`, sealed)
		check.NoError(check.Now(t), err, "its row")
	}
	store()
	for _, step := range []string{"add", "promote"} {
		vars["SECRET_KEYSET"], err = command(step)
		check.NoError(check.Now(t), err, "%s", step)
	}
	status, err := command("status")
	check.NoError(check.Now(t), err, "the status")
	check.Contains(t, "the status", status, "Do not drop the older keys yet", "%s", status)
	if _, err := command("drop"); check.True(check.Now(t), "a key that is needed is not dropped", err != nil, "%v", err) {
		check.Contains(t, "the refusal", err.Error(), "still encrypts 1 stored secrets", "%v", err)
	}
	store() // as the worker does
	status, err = command("status")
	check.NoError(check.Now(t), err, "the status")
	check.Contains(t, "the status", status, "Nothing is encrypted with an older key", "%s", status)
	vars["SECRET_KEYSET"], err = command("drop")
	check.NoError(check.Now(t), err, "dropping")
	box, err := seal.New([]byte(vars["SECRET_KEYSET"]))
	check.NoError(check.Now(t), err, "the keyset")
	check.False(t, "there is an older key", box.Rotating(), "%s", vars["SECRET_KEYSET"])
	var sealed []byte
	check.NoError(check.Now(t), db.QueryRow(t.Context(), `SELECT sealed FROM page_keys`).Scan(&sealed), "the row")
	_, err = box.Open(t.Context(), sealed, "page_keys/1")
	check.NoError(t, err, "what is stored")
}

func TestUnknownCommand(t *testing.T) {
	if err := run(t.Context(), []string{"fly"}, environment(nil), io.Discard); err == nil {
		t.Fatal("accepted")
	}
}

func TestProbe(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/well" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, "out of order")
		}
	}))
	defer server.Close()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"probe", server.URL + "/well"}, environment(nil), &out); check.NoError(check.Now(t), err, "%v\n%s", err, out.String()) {
		check.True(check.Now(t), "strings.Contains(out.String(), \"200 OK \"+server.URL)", strings.Contains(out.String(), "200 OK "+server.URL), "%v\n%s", err, out.String())
	}
	err := run(t.Context(), []string{"probe", "--timeout=5s", server.URL + "/ill", server.URL + "/well", "http://" + freeAddr(t)}, environment(nil), &out)
	for _, want := range []string{"/ill: 503", "out of order", "refused"} {
		if check.True(t, "there is an error", err != nil, "%q is missing in: %v", want, err) {
			check.Contains(t, "the error", err.Error(), want, "%q is missing in: %v", want, err)
		}
	}
}
