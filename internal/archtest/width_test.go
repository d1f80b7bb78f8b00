package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// widest is how many columns a line of SQL may take, a tab as four of them.
const widest = 120

func TestSQLIsLegible(t *testing.T) {
	t.Parallel()
	files := 0
	for _, p := range list(t) {
		name := filepath.Join(p.Dir, "sql.go")
		source, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		files++
		lines := strings.Split(string(source), "\n")
		for _, number := range linesOfSQL(t, name, source) {
			if columns := len(strings.ReplaceAll(lines[number-1], "\t", "    ")); columns > widest {
				t.Errorf("%s:%d has %d columns; break the statement", name, number, columns)
			}
		}
	}
	if files < 10 {
		t.Errorf("only %d files named sql.go were found", files)
	}
}

// linesOfSQL are the lines of a file's raw strings, but for the last of each: Go goes on behind it.
func linesOfSQL(t *testing.T, name string, source []byte) (lines []int) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(text.Value, "`") {
			for number := set.Position(text.Pos()).Line; number < set.Position(text.End()).Line; number++ {
				lines = append(lines, number)
			}
		}
		return true
	})
	return lines
}
