package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MachineTime are the folders and files that ask for the time of the machine or of PostgreSQL, each with what
// it needs it for. None of it is a rule that an organization sees: such a rule takes now as an argument, and a
// statement takes it as a parameter.
var MachineTime = map[string]string{
	"internal/kit/clock":  "the clock itself",
	"internal/kit/pg":     "connections and waiting; it gives programs PostgreSQL's time",
	"internal/kit/lead":   "which process leads",
	"internal/kit/mail":   "deadlines of connections",
	"internal/kit/obs":    "how long something takes",
	"internal/kit/queue":  "how long a task waits and takes",
	"internal/kit/replay": "whether the process that works on a request is alive",
	"internal/kit/wake":   "pauses and silence",

	"internal/domain/org/guesses.go":           "how often this process sees wrong keys",
	"internal/domain/org/keyring.go":           "how old this process's memory is",
	"internal/domain/student/sql.go":           "sessions, which belong to a browser and to no organization",
	"internal/domain/webhook/journal/keep.go":  "what senders of the version before have in hand",
	"internal/flow/reseal":                     "how long a pass takes",
	"api-server/client":                        "when a caller tries again",
	"api-server/internal/console/rosters.go":   "the deadline of an answer",
	"api-server/internal/edge":                 "deadlines and durations of requests",
	"api-server/internal/limit":                "how long this process does without Redis",
	"api-server/internal/rest/roster.go":       "the deadline of an answer",
	"operator/internal/reconcile/uninstall.go": "how long nobody has renewed a lease",
	"operator/internal/reconcile/watching.go":  "how old its memory is",
	"operator/kubectl-registrar":               "a person's own machine, who says how long ago something was",
	"operator/manager.go":                      "how old the guard's memory is",
	"webhook-sender/internal/deliver":          "how long attempts and their parts take",
	"webhook-sender/verify":                    "receivers, which compare a signature's time with their own",
	"worker/internal/relay":                    "pauses, and how long passes take",

	"api-server/serve.go":      "it makes the program's clock",
	"operator/main.go":         "it makes the program's clock",
	"operator/uninstall.go":    "it makes the program's clock",
	"webhook-sender/sender.go": "it makes the program's clock",
	"worker/main.go":           "it makes the program's clock",
}

// machineClocks are what tells the machine's time, by package.
var machineClocks = map[string][]string{"time": {"Now", "Since", "Until"}, "clock": {"System"}}

// sqlClocks match what tells PostgreSQL's time in a statement.
var sqlClocks = regexp.MustCompile(`(?i)\b(now|(clock|statement|transaction)_timestamp|timeofday)\s*\(\s*\)|\bcurrent_(date|time|timestamp)\b|\blocaltimestamp\b`)

// CheckTime returns every place of the product that asks for the machine's or PostgreSQL's time and is not in
// allowed, and what is there needlessly. Test files and fixtures are not read.
func CheckTime(packages []Package, allowed map[string]string) ([]string, error) {
	var breaches []string
	needless := maps.Clone(allowed)
	for _, p := range packages {
		folder := strings.TrimPrefix(p.ImportPath, Module+"/")
		if under(folder, "hack", fixtures) {
			continue
		}
		for _, file := range p.GoFiles {
			lines, err := clocksIn(filepath.Join(p.Dir, file))
			if err != nil {
				return nil, err
			}
			name := path.Join(folder, file)
			for _, line := range lines {
				place := listed(name, allowed)
				if delete(needless, place); place == "" {
					breaches = append(breaches, fmt.Sprintf("%s:%d asks for the machine's or PostgreSQL's time: take now as an argument, or say in MachineTime why not", name, line))
				}
			}
		}
	}
	for _, place := range slices.Sorted(maps.Keys(needless)) {
		breaches = append(breaches, fmt.Sprintf("%s is in MachineTime and asks for no time", place))
	}
	return breaches, nil
}

// listed is the entry that holds a file, itself or one of its folders; "" for none.
func listed(file string, allowed map[string]string) string {
	for at := file; at != "."; at = path.Dir(at) {
		if _, ok := allowed[at]; ok {
			return at
		}
	}
	return ""
}

// clocksIn are the lines of a file that ask for the time.
func clocksIn(file string) (lines []int, err error) {
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains(machineClocks[x.Name], n.Sel.Name) {
				lines = append(lines, files.Position(n.Pos()).Line)
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && sqlClocks.MatchString(text) {
				lines = append(lines, files.Position(n.Pos()).Line)
			}
		}
		return true
	})
	return lines, nil
}
