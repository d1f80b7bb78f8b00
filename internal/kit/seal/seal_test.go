package seal_test

import (
	"bytes"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/seal"
)

func box(t *testing.T) *seal.Box {
	t.Helper()
	text, err := seal.NewKeyset()
	if err != nil {
		t.Fatal(err)
	}
	b, err := seal.Open(seal.Config{Keyset: string(text)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSealedBytesOpenInTheirPlaceAlone(t *testing.T) {
	b := box(t)
	sealed, err := b.Seal(t.Context(), []byte("whsec_abc"), "webhook_secrets/7/1")
	if err != nil || bytes.Contains(sealed, []byte("whsec")) {
		t.Fatalf("sealed = %q, %v", sealed, err)
	}
	if plain, err := b.Open(t.Context(), sealed, "webhook_secrets/7/1"); err != nil || string(plain) != "whsec_abc" {
		t.Fatalf("plain = %q, %v", plain, err)
	}
	if _, err := b.Open(t.Context(), sealed, "webhook_secrets/8/1"); err == nil {
		t.Fatal("opens in another row")
	}
	if _, err := box(t).Open(t.Context(), sealed, "webhook_secrets/7/1"); err == nil {
		t.Fatal("opens with another keyset")
	}
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	for _, c := range []seal.Config{{}, {Keyset: "{}", KeysetFile: "x"}, {KeysetFile: "/nonexistent"}, {Keyset: "{}"}} {
		if _, err := seal.Open(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func TestTokensDiffer(t *testing.T) {
	a, b := seal.Token(), seal.Token()
	if a == b || len(a) != 43 {
		t.Fatalf("%q %q", a, b)
	}
	if !seal.Equal(a, a) || seal.Equal(a, b) || bytes.Equal(seal.Hash(a), seal.Hash(b)) {
		t.Fatal("comparison is wrong")
	}
}
