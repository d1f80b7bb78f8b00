package seal_test

import (
	"bytes"
	"testing"

	"github.com/registrar-dev/registrar/internal/kit/check"
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
	check.NoError(check.Now(t), err, "sealed = %q, %v", sealed, err)
	check.False(check.Now(t), "the secret can be read", bytes.Contains(sealed, []byte("whsec")), "sealed = %q, %v", sealed, err)
	if plain, err := b.Open(t.Context(), sealed, "webhook_secrets/7/1"); check.NoError(check.Now(t), err, "plain = %q, %v", plain, err) {
		check.Equal(check.Now(t), "the secret", string(plain), "whsec_abc", "plain = %q, %v", plain, err)
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
		if _, err := seal.Open(c); check.True(t, "there is an error", err != nil, "%+v is accepted", c) {
			check.Contains(t, "the error", err.Error(), "SECRET_KEYSET", "%+v is accepted", c)
		}
	}
}

func TestTokensDiffer(t *testing.T) {
	a, b := seal.Token(), seal.Token()
	check.True(check.Now(t), "the secrets differ", a != b, "%q %q", a, b)
	check.Equal(check.Now(t), "length of the secret", len(a), 43, "%q %q", a, b)
	check.True(check.Now(t), "a secret equals itself", seal.Equal(a, a), "comparison is wrong")
	check.False(check.Now(t), "another secret is equal", seal.Equal(a, b), "comparison is wrong")
	check.False(check.Now(t), "two secrets have one hash", bytes.Equal(seal.Hash(a), seal.Hash(b)), "comparison is wrong")
}
