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

// Programs take a new keyset one after the other, so at each step what either of two
// neighbouring keysets sealed must open with the other one.
func TestAKeysetRotatesWithoutAMomentAtWhichSomethingDoesNotOpen(t *testing.T) {
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
	const place = "webhook_secrets/7/1"
	boxOf := func(keyset []byte) *seal.Box {
		b, err := seal.New(keyset)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	exchange := func(from, to []byte) error {
		sealed, err := boxOf(from).Seal(t.Context(), []byte("whsec_abc"), place)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := boxOf(to).Open(t.Context(), sealed, place)
		if err == nil {
			check.Equal(check.Now(t), "the secret", string(plain), "whsec_abc", "sealed and opened")
		}
		return err
	}
	for name, c := range map[string][2][]byte{
		"first to added":    {first, added},
		"added to first":    {added, first},
		"added to promoted": {added, promoted},
		"promoted to added": {promoted, added},
		"first to promoted": {first, promoted},
	} {
		if err := exchange(c[0], c[1]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if exchange(promoted, first) == nil {
		t.Error("the promoted key does not seal: the keyset before it opens what it wrote")
	}
}
