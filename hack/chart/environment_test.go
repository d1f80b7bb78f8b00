package chart_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/nottested"
)

var usageLine = regexp.MustCompile(`(?m)^\s*([A-Z][A-Z0-9_]+)( \(required\))?(?: \(default .*\))?$`)

// variables are what a program says that it reads, and which of them it cannot do without.
func variables(t *testing.T, program string) (known map[string]bool, required []string) {
	t.Helper()
	bin := os.Getenv("REGISTRAR_BIN")
	if bin == "" {
		nottested.Skip(t, "REGISTRAR_BIN names no built programs")
	}
	usage, err := run(t, filepath.Join(bin, program), "--help")
	if err != nil {
		t.Fatal(err)
	}
	known = map[string]bool{}
	for _, m := range usageLine.FindAllStringSubmatch(usage, -1) {
		known[m[1]] = true
		if m[2] != "" {
			required = append(required, m[1])
		}
	}
	if len(known) < 5 {
		t.Fatalf("%s --help says:\n%s", program, usage)
	}
	return known, required
}

// What the chart sets is what the programs read: a variable that nobody reads is a value that does
// nothing.
func TestProgramsKnowTheirEnvironment(t *testing.T) {
	ofTheRuntime := map[string]bool{"GOMEMLIMIT": true, "HTTPS_PROXY": true, "SSL_CERT_DIR": true,
		"PGHOST": true, "PGPORT": true, "PGSSLMODE": true, "PGSSLROOTCERT": true, "PGSSLCERT": true, "PGSSLKEY": true}
	for _, file := range valuesFiles(t) {
		all := render(t, "--values", file)
		for _, o := range all {
			if o["kind"] != "Deployment" {
				continue
			}
			program := text(container(o), "name")
			known, required := variables(t, program)
			set := map[string]bool{}
			for _, e := range list(container(o), "env") {
				name := text(e, "name")
				if set[name] {
					t.Errorf("%s: %s is set twice", program, name)
				}
				set[name] = true
				if ofTheRuntime[name] || strings.HasPrefix(name, "OTEL_") {
					continue
				}
				check.True(t, "the program knows the variable", known[name], "%s: %s", program, name)
			}
			for _, name := range required {
				if !set[name] {
					t.Errorf("%s needs %s; the chart sets %v", program, name, slices.Sorted(maps.Keys(set)))
				}
			}
		}
	}
}
