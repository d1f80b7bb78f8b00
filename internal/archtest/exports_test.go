package archtest_test

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/registrar-dev/registrar/internal/archtest"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestNothingIsExportedForNobody(t *testing.T) {
	t.Parallel()
	breaches, err := archtest.CheckExports(os.DirFS("../.."))
	check.NoError(check.Now(t), err, "%v", err)
	for _, breach := range breaches {
		t.Error(breach)
	}
}

func TestExportsThatNobodyNamesAreFound(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	module := `"` + archtest.Module + `/internal/a"`
	got, err := archtest.CheckExports(fstest.MapFS{
		"internal/a/a.go": file("package a\n\ntype T struct{ U U }\n\ntype U int\n\ntype Nobodys int\n\nfunc F() T { return T{} }\n\nfunc Lonely() { Lonely() }\n\n" +
			"const (\n\tOne = 1\n\tTwo = 2\n)\n\nvar V = Tests\n\nvar Tests = 1\n\nfunc (T) Method() {}\n"),
		"internal/a/a_test.go":         file("package a_test\n\nimport " + module + "\n\nvar _ = a.Tests\n"),
		"internal/b/b.go":              file("package b\n\nimport other " + module + "\n\nvar x = other.F()\nvar y = other.One\n"),
		"internal/c/c.go":              file("package c\n\nvar a struct{ Lonely int }\n\nvar _ = a.Lonely\n"),
		"webhook-sender/verify/api.go": file("package verify\n\nfunc ForOthers() {}\n"),
		"worker/main.go":               file("package main\n\nfunc Main() {}\n"),
	})
	check.NoError(check.Now(t), err, "%v", err)
	check.Slices(t, "what is found", got, []string{
		"internal/a/a.go exports Nobodys, which no other package names",
		"internal/a/a.go exports Lonely, which no other package names",
		"internal/a/a.go exports V, which no other package names",
	}, "")
}
