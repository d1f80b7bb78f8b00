package archtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/registrar-dev/registrar/internal/archtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestImports(t *testing.T) {
	t.Parallel()
	for _, breach := range archtest.Check(list(t)) {
		t.Error(breach)
	}
}

func TestSQLLivesInItsFiles(t *testing.T) {
	t.Parallel()
	breaches, err := archtest.CheckSQL(list(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, breach := range breaches {
		t.Error(breach)
	}
}

func TestHTTPPackagesOpenNoTransactions(t *testing.T) {
	t.Parallel()
	breaches, err := archtest.CheckTransactions(list(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, breach := range breaches {
		t.Error(breach)
	}
}

func TestOnlyTestsWeakenPrograms(t *testing.T) {
	t.Parallel()
	breaches, err := archtest.CheckWeakening(list(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, breach := range breaches {
		t.Error(breach)
	}
}

func TestNoStatementNeedsASession(t *testing.T) {
	t.Parallel()
	breaches, err := archtest.CheckSessions(list(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, breach := range breaches {
		t.Error(breach)
	}
}

func TestRulesTakeTheTimeAsAnArgument(t *testing.T) {
	t.Parallel()
	breaches, err := archtest.CheckTime(list(t), archtest.MachineTime)
	if err != nil {
		t.Fatal(err)
	}
	for _, breach := range breaches {
		t.Error(breach)
	}
}

// The folders are those that git knows: bin/ and what else a developer keeps are nobody's business.
func TestTopLevelFolders(t *testing.T) {
	t.Parallel()
	out, err := run("git", "ls-files", "-z")
	if err != nil {
		t.Skip("not a git checkout:", err)
	}
	var folders []string
	for name := range strings.SplitSeq(string(out), "\x00") {
		if folder, _, below := strings.Cut(name, "/"); below {
			folders = append(folders, folder)
		}
	}
	if !slices.Contains(folders, "internal") {
		t.Fatal("git knows of no folder internal")
	}
	slices.Sort(folders)
	for _, folder := range archtest.CheckFolders(slices.Compact(folders)) {
		t.Errorf("unknown top-level folder %s", folder)
	}
}

// list reads the packages of the product's module and of the tools'.
func list(t *testing.T) []archtest.Package {
	t.Helper()
	packages, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

var listed = sync.OnceValues(func() (packages []archtest.Package, err error) {
	for _, module := range []string{".", "hack"} {
		of, err := listModule(module)
		if err != nil {
			return nil, err
		}
		packages = append(packages, of...)
	}
	return packages, nil
})

// listModule asks go list, and reads all folders but the root itself: go test takes a result from its
// cache unless something has changed that the test itself has read.
func listModule(folder string) (packages []archtest.Package, err error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return nil, err
	}
	out, err := run("go", "list", "-C", folder, "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports", "./...")
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p archtest.Package
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
		for dir := p.Dir; strings.HasPrefix(dir, root+string(filepath.Separator)); dir = filepath.Dir(dir) {
			if _, err := os.ReadDir(dir); err != nil {
				return nil, err
			}
		}
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("go list found no package in %s", folder)
	}
	return packages, nil
}

// run runs a command in the root of the checkout.
func run(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = filepath.Join("..", "..")
	return cmd.Output()
}

// TestCheckFinds shows that every import rule finds what it forbids and lets the neighbouring case be.
func TestCheckFinds(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name     string
		from, to string // without the module, when they begin with ./
		test     bool   // imported by a test file
		want     string // a part of the breach; "" for none
	}{
		{"kit stays below domain", "./internal/kit/pg", "./internal/domain/org", false, "kit ← domain"},
		{"kit stays below flow", "./internal/kit/pg", "./internal/flow/provision", false, "kit ← domain"},
		{"kit may use kit", "./internal/kit/pg", "./internal/kit/fault", false, ""},
		{"domain stays below flow", "./internal/domain/org", "./internal/flow/provision", false, "kit ← domain"},
		{"domain may use kit", "./internal/domain/org", "./internal/kit/pg", false, ""},
		{"flow stays below programs", "./internal/flow/provision", "./worker/internal/relay", false, "kit ← domain"},
		{"flow may use domain", "./internal/flow/provision", "./internal/domain/org", false, ""},
		{"programs may use flow", "./api-server/internal/rest", "./internal/flow/provision", false, ""},
		{"a test keeps its layer", "./internal/kit/pg", "./internal/domain/org", true, "kit ← domain"},

		{"an area stays by itself", "./internal/domain/org", "./internal/domain/course", false, "another area"},
		{"also with its tests", "./internal/domain/org", "./internal/domain/course", true, "another area"},
		{"also below", "./internal/domain/org/orgtest", "./internal/domain/course", false, "another area"},
		{"areas share scope", "./internal/domain/result", "./internal/domain/scope", false, ""},
		{"scope uses no area", "./internal/domain/scope", "./internal/domain/org", false, "another area"},
		{"an area may have folders", "./internal/domain/org/orgtest", "./internal/domain/org", false, ""},
		{"a flow stays by itself", "./internal/flow/provision", "./internal/flow/assign", false, "internal/flow/wire"},
		{"flows share wire", "./internal/flow/provision", "./internal/flow/wire", false, ""},
		{"flows share notify", "./internal/flow/provision", "./internal/flow/notify", false, ""},
		{"notify shows what wire has", "./internal/flow/notify", "./internal/flow/wire", false, ""},
		{"wire makes no events", "./internal/flow/wire", "./internal/flow/notify", false, "internal/flow/wire"},
		{"provision calls testplan", "./internal/flow/provision", "./internal/flow/testplan", false, ""},
		{"and not the other way round", "./internal/flow/testplan", "./internal/flow/provision", false, "internal/flow/wire"},
		{"no other flow calls testplan", "./internal/flow/work", "./internal/flow/testplan", false, "internal/flow/wire"},
		{"fixtures in a domain test", "./internal/domain/org", "./internal/flow/flowtest", true, ""},
		{"fixtures in the product", "./worker", "./internal/flow/flowtest", false, "for tests"},
		{"fixtures know kit alone", "./internal/flow/flowtest", "./internal/domain/org", false, "kit alone"},
		{"wire uses no flow", "./internal/flow/wire", "./internal/flow/assign", false, "internal/flow/wire"},

		{"chi in a flow", "./internal/flow/provision", "github.com/go-chi/chi/v5", false, "only api-server"},
		{"chi in another program", "./worker/internal/private", "github.com/go-chi/chi/v5", false, "only api-server"},
		{"chi in a test", "./worker", "github.com/go-chi/chi/v5", true, "only api-server"},
		{"chi in api-server", "./api-server/internal/rest", "github.com/go-chi/chi/v5", false, ""},

		{"Kubernetes in a program", "./worker", "k8s.io/api/core/v1", false, "only operator"},
		{"controller-runtime in kit", "./internal/kit/obs", "sigs.k8s.io/controller-runtime", false, "only operator"},
		{"Kubernetes in operator", "./operator/internal/endpoint", "k8s.io/api/core/v1", false, ""},
		{"Kubernetes in hack", "./hack/kube", "sigs.k8s.io/controller-runtime", false, ""},

		{"asynq in a program", "./worker", "github.com/hibiken/asynq", false, "internal/kit/queue"},
		{"asynq's parts", "./worker", "github.com/hibiken/asynq/x/rate", false, "internal/kit/queue"},
		{"asynq beside the queue", "./internal/kit/queuex", "github.com/hibiken/asynq", false, "internal/kit/queue"},
		{"asynq in a test", "./worker", "github.com/hibiken/asynq", true, "internal/kit/queue"},
		{"asynq in the queue", "./internal/kit/queue", "github.com/hibiken/asynq", false, ""},
		{"asynqmon in another program", "./api-server", "github.com/hibiken/asynqmon", false, "internal/kit/queue"},
		{"asynqmon in worker", "./worker/internal/private", "github.com/hibiken/asynqmon", false, ""},

		{"HTTP in domain", "./internal/domain/webhook", "net/http", false, "nothing of HTTP"},
		{"HTTP in a flow", "./internal/flow/provision", "net/http", false, "nothing of HTTP"},
		{"HTTP's parts in domain", "./internal/domain/webhook", "net/http/httputil", false, "nothing of HTTP"},
		{"HTTP in a domain test", "./internal/domain/webhook", "net/http/httptest", true, ""},
		{"HTTP in kit", "./internal/kit/obs", "net/http", false, ""},

		{"tools in a program", "./worker", "./hack/stack", false, "developers' tools"},
		{"tools in kit", "./internal/kit/pg", "./hack/stack", false, "developers' tools"},
		{"tools in a program's test", "./worker", "./hack/stack", true, "developers' tools"},
		{"tools in a domain test", "./internal/domain/org", "./hack/stack", true, "developers' tools"},
		{"tools among tools", "./hack/up", "./hack/stack", false, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := archtest.Package{ImportPath: full(c.from)}
			if c.test {
				p.XTestImports = []string{full(c.to)}
			} else {
				p.Imports = []string{full(c.to)}
			}
			got := strings.Join(archtest.Check([]archtest.Package{p}), "\n")
			check.Contains(t, "what is found", got, c.want, "%s imports %s", c.from, c.to)
			if c.want == "" {
				check.Equal(t, "what is found", got, "", "%s imports %s", c.from, c.to)
			}
		})
	}
}

func full(p string) string {
	if below, ok := strings.CutPrefix(p, "."); ok {
		return archtest.Module + below
	}
	return p
}

func TestCheckSQLFinds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := "package org\n\nconst a = `\n\tSELECT id FROM organizations`\n" +
		"const b = \"select an organization first\"\nvar c = \"update organizations set name = $1\"\n" +
		"const d = \"WITH x AS (SELECT 1) SELECT 1\"\nconst e = \"Delete it\"\nconst f = `INSERT INTO x VALUES (1)`\n"
	for _, name := range []string{"org.go", "sql.go"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := archtest.Package{ImportPath: archtest.Module + "/internal/domain/org", Dir: dir, GoFiles: []string{"org.go", "sql.go"}}
	got, err := archtest.CheckSQL([]archtest.Package{p})
	if err != nil {
		t.Fatal(err)
	}
	check.Equal(check.Now(t), "number of statements", len(got), 4, "%q", got)
	for i, line := range []string{"org.go:3 ", "org.go:6 ", "org.go:7 ", "org.go:9 "} {
		check.Contains(t, "the statement", got[i], line, "%q", got)
	}
	p.ImportPath = archtest.Module + "/hack/bench"
	if got, err := archtest.CheckSQL([]archtest.Package{p}); check.NoError(t, err, "tools may hold SQL: %q, %v", got, err) {
		check.Equal(t, "number of statements", len(got), 0, "tools may hold SQL: %q, %v", got, err)
	}
}

func TestCheckTransactionsFinds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := "package platform\n\nfunc a() {\n\ts.DB.InTx(ctx, f)\n\ttx.Exec(ctx, q)\n\tInTx()\n\ts.DB.Query(ctx, q)\n\tb := s.InTx\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "plans.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, folder string
		want         []string
	}{
		{"an HTTP package", "/api-server/internal/platform", []string{"plans.go:4 ", "plans.go:5 "}},
		{"below one", "/api-server/internal/platform/lists", []string{"plans.go:4 ", "plans.go:5 "}},
		{"a flow", "/internal/flow/testplan", nil},
		{"the program itself", "/api-server", nil},
	} {
		p := archtest.Package{ImportPath: archtest.Module + c.folder, Dir: dir, GoFiles: []string{"plans.go"}}
		got, err := archtest.CheckTransactions([]archtest.Package{p})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: CheckTransactions = %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCheckWeakeningFinds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := "package student\n\nfunc CheapHashes() {}\n\nfunc a() {\n\tCheapHashes()\n\tstudent.CheapHashes()\n\tb := student.CheapHashes\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string][]string{"/internal/domain/student": {"a.go:6 ", "a.go:7 ", "a.go:8 "}, "/api-server/internal/apitest": nil} {
		p := archtest.Package{ImportPath: archtest.Module + folder, Dir: dir, GoFiles: []string{"a.go"}}
		got, err := archtest.CheckWeakening([]archtest.Package{p})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, want, strings.Contains) {
			t.Errorf("%s: CheckWeakening = %q, want %q", folder, got, want)
		}
	}
}

func TestCheckSessionsFinds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`LISTEN `:                                               1,
		`LISTEN "keys"`:                                         1,
		`SELECT pg_notify($1, $2)`:                              1,
		`SELECT pg_advisory_lock(1)`:                            1,
		`SELECT pg_try_advisory_lock_shared(1, 2)`:              1,
		`SELECT pg_advisory_unlock_all()`:                       1,
		`SET jit = off`:                                         1,
		`SELECT 1; SET SESSION timezone TO 'UTC'`:               1,
		`SELECT set_config('jit', $1, false)`:                   1,
		`SELECT set_config('jit', current_setting('x'), false)`: 1,
		`DECLARE rows NO SCROLL CURSOR WITH HOLD FOR SELECT 1`:  1,
		`CREATE TEMP TABLE a (n int)`:                           1,
		`CREATE TEMP TABLE a (n int) ON COMMIT DROP; CREATE TEMPORARY TABLE b AS SELECT 1`: 1,
		`PREPARE a AS SELECT 1`: 1,
		`DISCARD ALL`:           1,

		`listen to the sentence`:                         0,
		`prepare the body`:                               0,
		`SELECT pg_try_advisory_xact_lock($1)`:           0,
		`SET LOCAL jit = off`:                            0,
		`UPDATE a SET b = 1`:                             0,
		`SELECT set_config('jit', 'off', true)`:          0,
		`DECLARE rows NO SCROLL CURSOR FOR SELECT 1`:     0,
		`CREATE TEMP TABLE a ON COMMIT DROP AS SELECT 1`: 0,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "sql.go"), []byte("package a\n\nconst a = `"+text+"`\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p := archtest.Package{ImportPath: archtest.Module + "/internal/domain/a", Dir: dir, GoFiles: []string{"sql.go"}}
		got, err := archtest.CheckSessions([]archtest.Package{p})
		if check.NoError(t, err, "%s", text) {
			check.Equal(t, "number of breaches", len(got), want, "%s: %q", text, got)
		}
	}
}

func TestCheckTimeFinds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := "package org\n\nvar a = time.Now()\nvar b = clock.System\nvar c = time.Since(a)\n" +
		"const d = `SELECT id FROM organizations WHERE created_at < now()`\nconst e = `SELECT CURRENT_DATE`\n" +
		"var f = o.Clock()\nvar g = time.NewTimer(1)\nconst h = `SELECT $1 AS now`\nvar i = s.now()\n"
	for _, name := range []string{"org.go", "sql.go"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const folder = "internal/domain/org"
	for _, c := range []struct {
		name, folder string
		allowed      []string
		want         []string
	}{
		{"nothing is allowed", folder, nil, []string{"org.go:3 ", "org.go:4 ", "org.go:5 ", "org.go:6 ", "org.go:7 ", "sql.go:3 ", "sql.go:4 ", "sql.go:5 ", "sql.go:6 ", "sql.go:7 "}},
		{"a file", folder, []string{folder + "/org.go"}, []string{"sql.go:3 ", "sql.go:4 ", "sql.go:5 ", "sql.go:6 ", "sql.go:7 "}},
		{"a folder", folder, []string{folder}, nil},
		{"a folder above", folder, []string{"internal/domain"}, nil},
		{"one that is not needed", folder, []string{folder, "internal/domain/plan"}, []string{"internal/domain/plan is in MachineTime"}},
		{"tools", "hack/bench", nil, nil},
	} {
		allowed := map[string]string{}
		for _, place := range c.allowed {
			allowed[place] = "a reason"
		}
		p := archtest.Package{ImportPath: archtest.Module + "/" + c.folder, Dir: dir, GoFiles: []string{"org.go", "sql.go"}}
		got, err := archtest.CheckTime([]archtest.Package{p}, allowed)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: CheckTime = %q, want %q", c.name, got, c.want)
		}
	}
}

func TestCheckFoldersFinds(t *testing.T) {
	t.Parallel()
	got := archtest.CheckFolders([]string{".github", "api-server", "docs", "pkg", "internal", "util"})
	if !slices.Equal(got, []string{"pkg", "util"}) {
		t.Errorf("CheckFolders = %q", got)
	}
}
