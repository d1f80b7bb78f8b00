package seal_test

import (
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

func opened(t *testing.T, keyset []byte) *seal.Box {
	t.Helper()
	b, err := seal.New(keyset)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Programs of two neighbouring steps run side by side while a keyset is rolled out: each
// reads what the other wrote.
func TestRotationLosesNothingAtAnyStep(t *testing.T) {
	first, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	added, err := seal.AddKey(first)
	if err != nil {
		t.Fatal(err)
	}
	promoted, err := seal.PromoteKey(added)
	if err != nil {
		t.Fatal(err)
	}
	steps := []*seal.Box{opened(t, first), opened(t, added), opened(t, promoted)}
	for i, writer := range steps {
		sealed, err := writer.Seal(t.Context(), []byte("secret"), "here")
		if err != nil {
			t.Fatal(err)
		}
		for j, reader := range steps {
			plain, err := reader.Open(t.Context(), sealed, "here")
			readable := err == nil && string(plain) == "secret"
			check.Equal(t, "it is readable", readable, i < 2 || j > 0, "written at step %d, read at step %d: %v", i, j, err)
		}
	}
	if _, err := seal.PromoteKey(promoted); err == nil {
		t.Error("promoted what is promoted already")
	}
	if _, err := seal.AddKey([]byte("{}")); err == nil {
		t.Error("an empty keyset was taken")
	}
}
