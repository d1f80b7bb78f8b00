// Package seal keeps secrets: it encrypts the ones that must be read again (signing
// secrets, passwords on their way into a mail) and hashes the ones that must only be
// recognised (API keys, one-time links).
package seal

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// Box encrypts with the primary key of a Tink keyset and decrypts with any of its keys,
// so that everything can be read at any moment of a rotation.
type Box struct {
	aead    tink.AEAD
	primary []byte // what begins that which is sealed
	keys    int
}

// Column is where sealed values are stored: a table's column sealed.
type Column struct {
	Table   string
	Context string // an SQL expression for what a row's value is bound to
}

// Config names where the keyset is: exactly one of the two. It is embedded in the
// configuration of every program that reads or writes secrets.
type Config struct {
	Keyset     string `env:"SECRET_KEYSET,unset" json:"-" help:"Tink keyset in JSON that encrypts stored secrets; or SECRET_KEYSET_FILE"`
	KeysetFile string `env:"SECRET_KEYSET_FILE" help:"file that holds the keyset"`
}

// Open makes the Box of the keyset that c names.
func Open(c Config) (*Box, error) {
	text, err := Read(c)
	if err != nil {
		return nil, err
	}
	box, err := New(text)
	if err != nil {
		name := "SECRET_KEYSET"
		if c.KeysetFile != "" {
			name = "SECRET_KEYSET_FILE"
		}
		return nil, fmt.Errorf("%s: it is no Tink keyset in JSON, such as `api-server new-keyset` prints (%w)", name, err)
	}
	return box, nil
}

// Read gives the keyset that c names, in Tink's JSON form.
func Read(c Config) ([]byte, error) {
	switch {
	case c.Keyset != "" && c.KeysetFile != "":
		return nil, errors.New("set SECRET_KEYSET or SECRET_KEYSET_FILE, not both")
	case c.KeysetFile != "":
		text, err := os.ReadFile(c.KeysetFile)
		if err != nil {
			return nil, fmt.Errorf("SECRET_KEYSET_FILE: %w", err)
		}
		return text, nil
	case c.Keyset == "":
		return nil, errors.New("SECRET_KEYSET or SECRET_KEYSET_FILE is required; `api-server new-keyset` prints a new one")
	}
	return []byte(c.Keyset), nil
}

// New makes a Box of a keyset in Tink's JSON form.
func New(keysetJSON []byte) (*Box, error) {
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(keysetJSON)))
	if err != nil {
		return nil, fmt.Errorf("secret keyset: %w", err)
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, fmt.Errorf("secret keyset: %w", err)
	}
	info := handle.KeysetInfo()
	return &Box{aead: primitive, primary: prefix(info.GetPrimaryKeyId()), keys: len(info.GetKeyInfo())}, nil
}

// NewKeyset draws a keyset with one AES-256-GCM key, in Tink's JSON form.
func NewKeyset() ([]byte, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&out))
	return out.Bytes(), err
}

// Seal encrypts plain. boundTo names the row that stores the result ("webhook_secrets/7/2"):
// sealed bytes that were copied to another row do not open there.
func (b *Box) Seal(_ context.Context, plain []byte, boundTo string) ([]byte, error) {
	return b.aead.Encrypt(plain, []byte(boundTo))
}

// prefix is Tink's, of output prefix type TINK.
func prefix(key uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{1}, key)
}

// Primary is how everything begins that Seal makes.
func (b *Box) Primary() []byte { return bytes.Clone(b.primary) }

// Rotating says whether the keyset has keys besides the one that Seal writes with.
func (b *Box) Rotating() bool { return b.keys > 1 }

// Open decrypts what Seal made for the same row.
func (b *Box) Open(_ context.Context, sealed []byte, boundTo string) ([]byte, error) {
	plain, err := b.aead.Decrypt(sealed, []byte(boundTo))
	if err != nil {
		return nil, fmt.Errorf("the secret at %s does not open with this keyset: %w", boundTo, err)
	}
	return plain, nil
}

// Token draws 32 random bytes as 43 URL-safe characters.
func Token() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Hash is the stored form of a Token. A plain digest is enough, because a token has 256 random
// bits and cannot be guessed.
func Hash(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// Equal compares in a time that does not depend on where the two differ.
func Equal(a, b string) bool {
	return subtle.ConstantTimeCompare(Hash(a), Hash(b)) == 1
}
