package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// place is a function by its name, and which of its parameters is a fault's code.
type place struct {
	name  string
	param int
}

// Every code that an API can answer is in the documents, for callers' programs go by it.
// Reference: errors#codes.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	known := documented(t)
	codes := codesOf(t, sources(t))
	if len(codes) < 100 {
		t.Fatalf("only %d codes were found: this test no longer knows how faults are made", len(codes))
	}
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		if !known[code] {
			t.Errorf("%s (%s) is in no document: add it to the tables of docs/reference/errors.md", code, codes[code])
		}
	}
}

// documented are the words in backquotes of the documents.
func documented(t *testing.T) map[string]bool {
	t.Helper()
	var files []string
	for _, pattern := range []string{"../../docs/*.md", "../../docs/reference/*.md"} {
		found, err := filepath.Glob(pattern)
		check.NoError(check.Now(t), err, "no documents at %s: %v", pattern, err)
		check.True(check.Now(t), "there are documents", len(found) != 0, "no documents at %s: %v", pattern, err)
		files = append(files, found...)
	}
	known := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range regexp.MustCompile("`([a-z0-9_]+)`").FindAllSubmatch(text, -1) {
			known[string(word[1])] = true
		}
	}
	return known
}

func sources(t *testing.T) (files []*ast.File) {
	t.Helper()
	set := token.NewFileSet()
	for _, root := range []string{"../../api-server", "../../internal"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			files = append(files, file)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// codesOf finds the literals that become a fault's code, also by way of functions that take
// the code from their caller, with the name of the function that they are given to.
func codesOf(t *testing.T, files []*ast.File) map[string]string {
	t.Helper()
	codes, takers := map[string]string{}, map[place]bool{{"New", 1}: true, {"Field", 1}: true}
	for before := 0; before != len(takers); {
		before = len(takers)
		for _, file := range files {
			for _, d := range file.Decls {
				eachCode(d, takers, codes)
			}
		}
	}
	return codes
}

// eachCode looks at the calls of takers within a declaration: a literal is a code, and a
// parameter makes the function around it a taker, too.
func eachCode(d ast.Decl, takers map[place]bool, codes map[string]string) {
	ast.Inspect(d, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := called(call.Fun)
		for i, arg := range call.Args {
			if !takers[place{name, i}] {
				continue
			}
			switch arg := arg.(type) {
			case *ast.BasicLit:
				if code, err := strconv.Unquote(arg.Value); err == nil && regexp.MustCompile(`^[a-z][a-z0-9_]*$`).MatchString(code) {
					codes[code] = name
				}
			case *ast.Ident:
				if f, ok := d.(*ast.FuncDecl); ok {
					if p := parameter(f, arg.Name); p >= 0 {
						takers[place{f.Name.Name, p}] = true
					}
				}
			}
		}
		return true
	})
}

// called is a function's name; of those of other packages, fault's alone are recognized by theirs.
func called(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		x, ok := f.X.(*ast.Ident)
		if (f.Sel.Name == "New" || f.Sel.Name == "Field") && (!ok || x.Name != "fault") {
			return ""
		}
		return f.Sel.Name
	}
	return ""
}

// parameter is the place of the parameter called name, -1 where there is none.
func parameter(f *ast.FuncDecl, name string) int {
	i := 0
	for _, field := range f.Type.Params.List {
		for _, n := range field.Names {
			if n.Name == name {
				return i
			}
			i++
		}
	}
	return -1
}
