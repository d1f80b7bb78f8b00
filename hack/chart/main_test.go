package main

import (
	"strings"
	"testing"
)

func TestValuesTable(t *testing.T) {
	table, err := valuesTable([]byte("a:\n  # -- The first | one\n  b: [x, '<y>']\n# -- Two\nc: {d: 1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| `a.b` | `[\"x\",\"<y>\"]` | The first \\| one |\n", "| `c` | `{\"d\":1}` | Two |\n"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing in:\n%s", want, table)
		}
	}
	if _, err := valuesTable([]byte("a: {b: 1}\n")); err == nil || !strings.Contains(err.Error(), "a.b") {
		t.Errorf("a value without a description: %v", err)
	}
}
