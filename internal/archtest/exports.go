package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// public are the packages that others import.
var public = []string{"api-server/client", "webhook-sender/verify", "operator/api"}

// unlooked are packages in which names are still exported for nobody.
var unlooked = []string{"internal/domain/lms", "internal/domain/roster"}

// export is a name that a package has for others.
type export struct{ pkg, name string }

// CheckExports returns each exported function, variable, constant and type of the files below root that no other package names, tests
// included. A type may be what an exported declaration of its package is made of, and a constant a value of such a
// type, or one of a group of which others are named. Methods and fields are not looked at: interfaces, JSON and templates name them.
func CheckExports(root fs.FS) ([]string, error) {
	files, err := parsed(root)
	if err != nil {
		return nil, err
	}
	names := map[string]string{} // of packages, by their folder
	for file, tree := range files {
		if !strings.HasSuffix(file, "_test.go") {
			names[path.Dir(file)] = tree.Name.Name
		}
	}
	used := map[export]bool{}
	for file, tree := range files {
		addUses(used, tree, names)
		addParts(used, tree, path.Dir(file))
	}
	var breaches []string
	for _, file := range slices.Sorted(maps.Keys(files)) {
		folder, tree := path.Dir(file), files[file]
		if strings.HasSuffix(file, "_test.go") || tree.Name.Name == "main" || under(folder, slices.Concat(public, unlooked)...) || ast.IsGenerated(tree) {
			continue
		}
		for _, name := range exports(tree, func(name string) bool { return used[export{folder, name}] }) {
			breaches = append(breaches, fmt.Sprintf("%s exports %s, which no other package names", file, name))
		}
	}
	return breaches, nil
}

// parsed are the Go files below root, by their paths.
func parsed(root fs.FS) (map[string]*ast.File, error) {
	files, set := map[string]*ast.File{}, token.NewFileSet()
	return files, fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == "testdata" || file != "." && strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(file) != ".go":
			return nil
		}
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		files[file], err = parser.ParseFile(set, file, text, parser.ParseComments)
		return err
	})
}

// exports are the names that a file declares for others and that are not used.
func exports(tree *ast.File, used func(string) bool) (names []string) {
	add := func(all ...*ast.Ident) {
		for _, i := range all {
			if i.IsExported() && !used(i.Name) {
				names = append(names, i.Name)
			}
		}
	}
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			var group []*ast.Ident
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name)
				case *ast.ValueSpec:
					if kind, ok := s.Type.(*ast.Ident); d.Tok != token.CONST || !ok || !kind.IsExported() {
						group = append(group, s.Names...)
					}
				}
			}
			if d.Tok != token.CONST || !slices.ContainsFunc(group, func(i *ast.Ident) bool { return used(i.Name) }) {
				add(group...)
			}
		}
	}
	return names
}

// addParts adds the types that a file's exported declarations are made of.
func addParts(used map[export]bool, tree *ast.File, folder string) {
	add := func(n ast.Node) bool {
		if i, ok := n.(*ast.Ident); ok && i.IsExported() {
			used[export{folder, i.Name}] = true
		}
		return true
	}
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				ast.Inspect(d.Type, add)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					ast.Inspect(s.Type, add)
				case *ast.ValueSpec:
					if s.Type != nil {
						ast.Inspect(s.Type, add)
					}
					for _, v := range s.Values {
						if made, ok := v.(*ast.CompositeLit); ok && made.Type != nil {
							ast.Inspect(made.Type, add)
						}
					}
				}
			}
		}
	}
}

// addUses adds what a file names of other packages.
func addUses(used map[export]bool, tree *ast.File, names map[string]string) {
	folders := map[string]string{} // by the name in this file
	for _, i := range tree.Imports {
		target, err := strconv.Unquote(i.Path.Value)
		folder, own := strings.CutPrefix(target, Module+"/")
		if err != nil || !own {
			continue
		}
		name := names[folder]
		if i.Name != nil {
			name = i.Name.Name
		}
		folders[name] = folder
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && folders[x.Name] != "" {
				used[export{folders[x.Name], s.Sel.Name}] = true
			}
		}
		return true
	})
}
