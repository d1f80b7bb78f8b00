// Package sealtest makes boxes for tests.
package sealtest

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// New is a box with a keyset of its own.
func New(t testing.TB) *seal.Box {
	t.Helper()
	keyset, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.New(keyset)
	if err != nil {
		t.Fatal(err)
	}
	return box
}
