package seal

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// A keyset rotates in three steps, each rolled out to every program before the next: first
// all of them can read with the new key, then they write with it. The old key goes when what
// was written with it has been written again.

// AddKey gives the keyset with a new key that is not written with yet.
func AddKey(keysetJSON []byte) ([]byte, error) {
	return change(keysetJSON, func(m *keyset.Manager, _ *keyset.Handle) error {
		_, err := m.Add(aead.AES256GCMKeyTemplate())
		return err
	})
}

// PromoteKey gives the keyset with its newest key as the one that is written with.
func PromoteKey(keysetJSON []byte) ([]byte, error) {
	return change(keysetJSON, func(m *keyset.Manager, h *keyset.Handle) error {
		keys := h.KeysetInfo().GetKeyInfo()
		newest := keys[len(keys)-1].GetKeyId()
		if newest == h.KeysetInfo().GetPrimaryKeyId() {
			return errors.New("its newest key is the primary one already: add one first")
		}
		return m.SetPrimary(newest)
	})
}

func change(keysetJSON []byte, do func(*keyset.Manager, *keyset.Handle) error) ([]byte, error) {
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(keysetJSON)))
	if err != nil {
		return nil, fmt.Errorf("secret keyset: %w", err)
	}
	manager := keyset.NewManagerFromHandle(handle)
	if err := do(manager, handle); err != nil {
		return nil, fmt.Errorf("secret keyset: %w", err)
	}
	if handle, err = manager.Handle(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&out))
	return out.Bytes(), err
}

// DropKeys gives the keyset with the key alone that is written with. What another one sealed cannot
// be read any more: see flow/reseal.
func DropKeys(keysetJSON []byte) ([]byte, error) {
	return change(keysetJSON, func(m *keyset.Manager, h *keyset.Handle) error {
		primary := h.KeysetInfo().GetPrimaryKeyId()
		dropped := false
		for _, key := range h.KeysetInfo().GetKeyInfo() {
			if key.GetKeyId() != primary {
				dropped = true
				if err := m.Delete(key.GetKeyId()); err != nil {
					return err
				}
			}
		}
		if !dropped {
			return errors.New("it has one key, which is written with")
		}
		return nil
	})
}
