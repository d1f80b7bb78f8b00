// Package factortest has an authenticator for tests, which makes and uses passkeys as a device does.
package factortest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/go-webauthn/webauthn/protocol/webauthncbor"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

// What a device has asked of its owner: to be there, and to show it who they are.
const (
	Present  = 0x01
	Verified = 0x05
)

// Device is an authenticator: it makes a passkey for a site, and signs with it.
type Device struct {
	key     *ecdsa.PrivateKey
	id      []byte
	user    []byte
	Counter uint32 // of its answers
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// data is what the device says of itself; 0x05: the person is there, and has shown it to the device.
func (d *Device) data(rp string, flags byte, more ...byte) []byte {
	of := sha256.Sum256([]byte(rp))
	d.Counter++
	return append(append(append(of[:], flags), binary.BigEndian.AppendUint32(nil, d.Counter)...), more...)
}

func clientData(kind, challenge, origin string) []byte {
	text, err := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": origin, "crossOrigin": false})
	if err != nil {
		panic(err)
	}
	return text
}

func option(t testing.TB, options, name string) string {
	t.Helper()
	var all map[string]any
	check.NoError(check.Now(t), json.Unmarshal([]byte(options), &all), "%s", options)
	if name == "user" {
		user, _ := all["user"].(map[string]any)
		text, _ := user["id"].(string)
		return text
	}
	text, _ := all[name].(string)
	return text
}

// Create answers the options of a question for a new passkey, from a page of the origin, for the site rp.
func (d *Device) Create(t testing.TB, options, origin, rp string) string {
	t.Helper()
	var err error
	d.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.NoError(check.Now(t), err, "a key")
	d.id = make([]byte, 32)
	_, _ = rand.Read(d.id)
	d.user, err = base64.RawURLEncoding.DecodeString(option(t, options, "user"))
	check.NoError(check.Now(t), err, "%s", options)
	public, err := d.key.PublicKey.Bytes()
	check.NoError(check.Now(t), err, "the public key")
	cose, err := webauthncbor.Marshal(map[int]any{1: 2, 3: -7, -1: 1, -2: public[1:33], -3: public[33:]})
	check.NoError(check.Now(t), err, "the public key")
	attested := append(append(make([]byte, 16), byte(len(d.id)>>8), byte(len(d.id))), append(d.id, cose...)...)
	object, err := webauthncbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": d.data(rp, 0x45, attested...)})
	check.NoError(check.Now(t), err, "the answer")
	return d.answer(t, map[string]any{"clientDataJSON": b64(clientData("webauthn.create", option(t, options, "challenge"), origin)), "attestationObject": b64(object)})
}

// Get answers the options of a question for a passkey. flags say what the device has asked of its owner.
func (d *Device) Get(t testing.TB, options, origin, rp string, flags byte) string {
	t.Helper()
	client, data := clientData("webauthn.get", option(t, options, "challenge"), origin), d.data(rp, flags)
	of := sha256.Sum256(client)
	digest := sha256.Sum256(append(append([]byte{}, data...), of[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, d.key, digest[:])
	check.NoError(check.Now(t), err, "signing")
	return d.answer(t, map[string]any{"clientDataJSON": b64(client), "authenticatorData": b64(data), "signature": b64(signature), "userHandle": b64(d.user)})
}

func (d *Device) answer(t testing.TB, response map[string]any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"id": b64(d.id), "rawId": b64(d.id), "type": "public-key", "response": response, "clientExtensionResults": map[string]any{}})
	check.NoError(check.Now(t), err, "the answer")
	return string(text)
}
