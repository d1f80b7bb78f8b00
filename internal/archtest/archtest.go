// Package archtest holds the layers of the code apart:
//
//	kit ← domain ← flow ← program
//
// A package imports only from layers to its left, an area of the domain never imports another area
// but for the few shared packages, and each outside world (HTTP routing, Kubernetes, Asynq, SQL) is known in one place. The rules are
// functions over a list of packages, so that each can be shown to find what it forbids.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Module is the import path of the whole product.
const Module = "github.com/registrar-dev/registrar"

// A Package is what the rules need of `go list -json`.
type Package struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	Imports      []string // of the product's own files
	TestImports  []string // of test files in the package
	XTestImports []string // of test files beside the package
}

// Check returns every breach of the import rules, one line each.
func Check(packages []Package) []string {
	var breaches []string
	for _, p := range packages {
		for _, imported := range p.Imports {
			if why := forbidden(p.ImportPath, imported, false); why != "" {
				breaches = append(breaches, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imported, why))
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if why := forbidden(p.ImportPath, imported, true); why != "" {
				breaches = append(breaches, fmt.Sprintf("a test of %s imports %s: %s", p.ImportPath, imported, why))
			}
		}
	}
	return breaches
}

// forbidden says why a package may not import another; "" when it may. A test may reach for what
// lies outside the product, an HTTP server for instance, but never for a layer above its own.
func forbidden(importer, imported string, test bool) string {
	from := strings.TrimPrefix(strings.TrimPrefix(importer, Module), "/")
	to, own := strings.CutPrefix(imported, Module+"/")
	if own {
		return forbiddenLayer(from, to, test)
	}
	for _, rule := range outside {
		if under(imported, rule.imports...) && !rule.allowed(from, imported) && (!test || rule.inTests) {
			return rule.why
		}
	}
	return ""
}

// layers, from the left; a folder that is in none of them is a program or a tool.
const (
	kit = iota
	domain
	flow
	program
)

func layerOf(folder string) int {
	switch {
	case under(folder, "internal/kit"):
		return kit
	case under(folder, "internal/domain"):
		return domain
	case under(folder, "internal/flow"):
		return flow
	default:
		return program
	}
}

// fixtures is the package that tests of every layer may use; it knows kit alone.
const fixtures = "internal/flow/flowtest"

func forbiddenLayer(from, to string, test bool) string {
	switch {
	case to == fixtures && test:
		return ""
	case to == fixtures || from == fixtures && layerOf(to) != kit:
		return "fixtures are for tests, and know kit alone"
	case under(to, "hack") && !under(from, "hack"):
		return "neither the product nor its tests need its developers' tools"
	case layerOf(to) > layerOf(from):
		return "kit ← domain ← flow ← program: a layer imports only from layers to its left"
	case layerOf(from) == domain && layerOf(to) == domain && area(from) != area(to) && !slices.Contains(areasShare, area(to)):
		return "an area of the domain never imports another area; what touches two is a flow"
	case layerOf(from) == flow && layerOf(to) == flow && area(from) != area(to) && !flowsShare(area(from), area(to)):
		return "flows share only internal/flow/wire and internal/flow/notify; provision also calls testplan"
	default:
		return ""
	}
}

// flowsShare says whether a flow may import another: the shapes of what APIs and events show, and
// which events a change makes. A provisioning call starts and changes test plans in its own
// transaction, so provision calls testplan.
func flowsShare(from, to string) bool {
	return to == "wire" || to == "notify" && from != "wire" || from == "provision" && to == "testplan"
}

// areasShare are the packages of the domain that its areas may import: rules that several of them read.
var areasShare = []string{"scope"}

// area is the folder below a layer: course in internal/domain/course/coursetest.
func area(folder string) string {
	parts := strings.SplitN(folder, "/", 4)
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}

// outside are the packages of others that only some folders may know.
var outside = []struct {
	imports []string
	allowed func(from, imported string) bool
	inTests bool // tests are held to it too
	why     string
}{
	{
		imports: []string{"github.com/go-chi"},
		allowed: func(from, _ string) bool { return under(from, "api-server") },
		inTests: true,
		why:     "only api-server routes HTTP",
	},
	{
		imports: []string{"k8s.io", "sigs.k8s.io"},
		allowed: func(from, _ string) bool { return under(from, "operator", "hack") },
		inTests: true,
		why:     "only operator knows Kubernetes",
	},
	{
		imports: []string{"github.com/hibiken/asynq", "github.com/hibiken/asynqmon"},
		allowed: func(from, imported string) bool {
			return under(from, "internal/kit/queue") ||
				under(from, "worker") && under(imported, "github.com/hibiken/asynqmon")
		},
		inTests: true,
		why:     "tasks go through internal/kit/queue; worker may show asynqmon",
	},
	{
		imports: []string{"net/http"},
		allowed: func(from, _ string) bool { return !under(from, "internal/domain", "internal/flow") },
		why:     "domain and flow know nothing of HTTP",
	},
}

// under reports whether a path is one of the roots or lies below one.
func under(p string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return p == root || strings.HasPrefix(p, root+"/") })
}

// sqlHomes are the folders where SQL is not confined to files named sql.go: developers' tools, and
// kit/pg, whose few statements (locks, databases for tests) are about the server and not about rows.
var sqlHomes = []string{"hack", "internal/kit/pg"}

var sqlStart = regexp.MustCompile(`(?i)^\s*(SELECT|INSERT\s+INTO|UPDATE|DELETE\s+FROM|WITH|MERGE\s+INTO|TRUNCATE)\s`)

// sqlShape tells a statement from a sentence that begins with the same word.
var sqlShape = regexp.MustCompile(`^\s*[A-Z]{4,}|(?s)(?i)\s(FROM|INTO|SET|AS\s*\(|VALUES)\s`)

// CheckSQL returns every string in the product's files, other than sql.go, that begins as an SQL
// statement does. Test files are not read.
func CheckSQL(packages []Package) ([]string, error) {
	var breaches []string
	for _, p := range packages {
		if under(strings.TrimPrefix(p.ImportPath, Module+"/"), sqlHomes...) {
			continue
		}
		for _, file := range p.GoFiles {
			if file == "sql.go" {
				continue
			}
			found, err := sqlIn(filepath.Join(p.Dir, file))
			if err != nil {
				return nil, err
			}
			for _, line := range found {
				breaches = append(breaches, fmt.Sprintf("%s:%d holds SQL: it belongs into sql.go", path.Join(p.ImportPath, file), line))
			}
		}
	}
	return breaches, nil
}

// sessions match what outlives a transaction in a session of PostgreSQL, or belongs to one: behind a pooler,
// the next transaction runs in another session.
var sessions = []*regexp.Regexp{
	regexp.MustCompile(`(?i)^\s*(UN)?LISTEN\s+["\w*]*\s*;?\s*$|\bpg_notify\s*\(`),
	regexp.MustCompile(`(?i)\bpg_(try_)?advisory_(lock|unlock)(_shared|_all)?\s*\(`),
	regexp.MustCompile(`(?i)(^|;)\s*(RESET|DISCARD|DEALLOCATE)\s+\w+|(^|;)\s*PREPARE\s+\w+(\s*\([^)]*\))?\s+AS\b|\bWITH\s+HOLD\b`),
	regexp.MustCompile(`(?i)\bset_config\s*\([^()]*(\([^()]*\)[^()]*)*,\s*false\s*\)`),
}

var (
	setting   = regexp.MustCompile(`(?:^|;)\s*SET\s+(\w+)(?:\s+\w+)*\s*(?:=|TO\b)`)
	temporary = regexp.MustCompile(`(?is)\bCREATE\s+TEMP(?:ORARY)?\s+TABLE\b[^;]*`)
	onCommit  = regexp.MustCompile(`(?i)\bON\s+COMMIT\s+DROP\b`)
)

// needsSession says whether a statement needs the session after its transaction.
func needsSession(text string) bool {
	for _, found := range setting.FindAllStringSubmatch(text, -1) {
		if !strings.EqualFold(found[1], "LOCAL") {
			return true
		}
	}
	for _, table := range temporary.FindAllString(text, -1) {
		if !onCommit.MatchString(table) {
			return true
		}
	}
	return slices.ContainsFunc(sessions, func(r *regexp.Regexp) bool { return r.MatchString(text) })
}

// sessionHomes are the files that have sessions of their own: migrations run past a pooler, and so do tests.
var sessionHomes = []string{"internal/kit/pg/migrate.go", "internal/kit/pg/pgtest/pgtest.go"}

// CheckSessions returns every statement of the product that needs a session of PostgreSQL beyond its
// transaction, which it does not have behind a transaction pooler. Test files are not read.
func CheckSessions(packages []Package) ([]string, error) {
	var breaches []string
	for _, p := range packages {
		folder := strings.TrimPrefix(p.ImportPath, Module+"/")
		if under(folder, "hack") {
			continue
		}
		for _, file := range p.GoFiles {
			if slices.Contains(sessionHomes, path.Join(folder, file)) {
				continue
			}
			lines, err := stringsIn(filepath.Join(p.Dir, file), needsSession)
			if err != nil {
				return nil, err
			}
			for _, line := range lines {
				breaches = append(breaches, fmt.Sprintf("%s:%d needs a session of PostgreSQL, which a transaction pooler does not keep", path.Join(p.ImportPath, file), line))
			}
		}
	}
	return breaches, nil
}

// dbWrites are the methods that open a transaction or write to the database.
var dbWrites = []string{"InTx", "Exec", "SendBatch", "CopyFrom"}

// CheckTransactions returns every call in an HTTP package (below api-server/internal) that opens
// a transaction or writes to the database: commands of flows and areas do that, so that their
// audit row is in the same transaction.
func CheckTransactions(packages []Package) ([]string, error) {
	var breaches []string
	for _, p := range packages {
		folder := strings.TrimPrefix(p.ImportPath, Module+"/")
		if !under(folder, "api-server/internal") {
			continue
		}
		for _, file := range p.GoFiles {
			lines, err := callsIn(filepath.Join(p.Dir, file), dbWrites)
			if err != nil {
				return nil, err
			}
			for _, line := range lines {
				breaches = append(breaches, fmt.Sprintf("%s:%d writes to the database: it belongs into a command of a flow or an area", path.Join(p.ImportPath, file), line))
			}
		}
	}
	return breaches, nil
}

// weakening are the functions that make programs weaker, for tests.
var weakening = []string{"CheapHashes"}

// CheckWeakening returns every place, outside of tests and of packages for tests, that names a function
// that is for tests alone.
func CheckWeakening(packages []Package) ([]string, error) {
	var breaches []string
	for _, p := range packages {
		if strings.HasSuffix(p.ImportPath, "test") {
			continue
		}
		for _, file := range p.GoFiles {
			lines, err := namesIn(filepath.Join(p.Dir, file), weakening)
			if err != nil {
				return nil, err
			}
			for _, line := range lines {
				breaches = append(breaches, fmt.Sprintf("%s:%d weakens a program as only tests may", path.Join(p.ImportPath, file), line))
			}
		}
	}
	return breaches, nil
}

// namesIn are the lines of a file that use one of the names, other than in its declaration.
func namesIn(file string, names []string) (lines []int, err error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	declared := map[*ast.Ident]bool{}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			declared[n.Name] = true
		case *ast.Ident:
			if slices.Contains(names, n.Name) && !declared[n] {
				lines = append(lines, files.Position(n.Pos()).Line)
			}
		}
		return true
	})
	return lines, nil
}

// callsIn are the lines of a file that call one of the methods.
func callsIn(file string, methods []string) (lines []int, err error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if method, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(methods, method.Sel.Name) {
			lines = append(lines, files.Position(call.Pos()).Line)
		}
		return true
	})
	return lines, nil
}

func sqlIn(file string) ([]int, error) {
	return stringsIn(file, func(text string) bool { return sqlStart.MatchString(text) && sqlShape.MatchString(text) })
}

// stringsIn are the lines of a file's strings that match.
func stringsIn(file string, match func(string) bool) (lines []int, err error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && match(text) {
			lines = append(lines, files.Position(literal.Pos()).Line)
		}
		return true
	})
	return lines, nil
}

// topLevel are all the folders that the repository has.
var topLevel = []string{
	"api-server", "worker", "webhook-sender", "operator",
	"internal", "charts", "config", "hack", "docs",
}

// CheckFolders returns the top-level folders that are not among the known ones. Names that begin
// with a dot belong to tools.
func CheckFolders(folders []string) []string {
	return slices.DeleteFunc(slices.Clone(folders), func(folder string) bool {
		return strings.HasPrefix(folder, ".") || slices.Contains(topLevel, folder)
	})
}
