// Command licences writes the table of all dependencies' licences, and fails when one is not allowed; or,
// for an image, the notices of one program.
//
//	go generate -C hack ./licences                              docs/licences.md
//	go run -C hack ./licences -notices worker -arch arm64       notices, to the standard output
package main

//go:generate go run . -table ../../docs/licences.md

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/registrar-dev/registrar/hack/internal/licences"
	"github.com/registrar-dev/registrar/hack/stack"
)

var programs = []string{"api-server", "worker", "webhook-sender", "operator"}

func main() {
	table := flag.String("table", "", "file for the table")
	notices := flag.String("notices", "", "program whose notices are printed")
	arch := flag.String("arch", "amd64", "architecture of that program")
	flag.Parse()
	if err := run(context.Background(), *table, *notices, *arch); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, table, notices, arch string) error {
	root, err := stack.Root()
	if err != nil {
		return err
	}
	if notices != "" {
		all, err := licences.Of(ctx, root, "linux", arch, false, "./"+notices)
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(licences.Notices(notices, all))
		return err
	}
	text, refused, err := makeTable(ctx, root)
	if err != nil {
		return err
	}
	if len(refused) > 0 {
		return fmt.Errorf("licences that are not allowed:\n  %s", strings.Join(refused, "\n  "))
	}
	if table == "" {
		return errors.New("say -table or -notices")
	}
	return os.WriteFile(table, text, 0o644)
}

// makeTable lists what the four programs contain, and what only their tests and developers use.
func makeTable(ctx context.Context, root string) (text []byte, refused []string, err error) {
	users := map[string][]string{}
	all := map[string]licences.Dependency{}
	add := func(dir, user string, tests bool, packages ...string) error {
		found, err := licences.Of(ctx, dir, "linux", "amd64", tests, packages...)
		for _, d := range found {
			if user != "" {
				users[d.Name] = append(users[d.Name], user)
			}
			all[d.Name] = d
		}
		return err
	}
	for _, program := range programs {
		if err := add(root, program, false, "./"+program); err != nil {
			return nil, nil, err
		}
	}
	for _, module := range []string{".", "hack"} {
		if err := add(filepath.Join(root, module), "", true, "./..."); err != nil {
			return nil, nil, err
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Licences of what Registrar uses

Registrar itself is [Apache-2.0](../LICENSE). This table is made from the licence texts of all Go modules that are used, and of what other files of
other projects the repository holds (`+"`make generate`"+`); `+"`make verify`"+` fails if it is not up to date, and making it fails if a licence
is none of %s. The images hold the licences and notices of what is in them, `+"`/THIRD-PARTY-NOTICES`"+`.

| module | version | licence | contained in |
|---|---|---|---|
`, strings.Join(licences.Allowed, ", "))
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		d := all[name]
		version := d.Version
		if name == licences.Stdlib {
			version = "of the Go that builds"
		}
		in := "none: tests and developers' programs"
		if len(users[name]) > 0 {
			in = strings.Join(users[name], ", ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, version, d.Expression(), in)
		refused = append(refused, licences.Refused([]licences.Dependency{d})...)
	}
	return b.Bytes(), refused, nil
}
