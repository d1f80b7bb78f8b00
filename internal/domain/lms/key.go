package lms

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// How our keys follow one another. LMSes keep our set for hours, some for a day: a key signs only when it has been published for that
// long, and what it signed can be checked for as long after the next one signs.
const (
	keyLife   = 90 * 24 * time.Hour // until the next one is made
	announced = 2 * 24 * time.Hour  // published before it signs
	published = 2 * 24 * time.Hour  // after the next one signs
)

// keysLock is no organization's number.
const keysLock = "keys"

// Keys are the installation's own, of which one at a time signs what we say to LMSes.
type Keys struct {
	DB  *pg.DB
	Box *seal.Box
}

// Key is one of them, without its private part.
type Key struct {
	KID       string
	Public    json.RawMessage // a JSON Web Key
	CreatedAt time.Time
	SignsFrom time.Time
}

// Sealed is where the private parts are stored; a value is bound to place.
var Sealed = seal.Column{Table: "lms_keys", Context: `'lms_keys/' || kid`}

func place(kid string) string { return "lms_keys/" + kid }

// Published are the keys that LMSes may meet, the next one included, newest first. The first call makes the first key.
func (k Keys) Published(ctx context.Context, now time.Time) ([]Key, error) {
	all, err := selectKeys(ctx, k.DB)
	if err == nil && len(all) == 0 {
		if _, err = k.renew(ctx, audit.Scheduled, now, false); err == nil {
			all, err = selectKeys(ctx, k.DB)
		}
	}
	return all, err
}

// Signer is the key that signs now, with its private part. The set has it already.
func (k Keys) Signer(ctx context.Context, now time.Time) (jose.JSONWebKey, error) {
	if _, err := k.Published(ctx, now); err != nil {
		return jose.JSONWebKey{}, err
	}
	kid, sealed, err := selectSigner(ctx, k.DB, now)
	if err != nil {
		return jose.JSONWebKey{}, err
	}
	der, err := k.Box.Open(ctx, sealed, place(kid))
	if err != nil {
		return jose.JSONWebKey{}, err
	}
	private, err := x509.ParsePKCS8PrivateKey(der)
	return jose.JSONWebKey{Key: private, KeyID: kid, Algorithm: string(jose.RS256), Use: "sig"}, err
}

// Sign writes claims as a token that is signed with the key that signs now.
func (k Keys) Sign(ctx context.Context, claims any, now time.Time) (string, error) {
	key, err := k.Signer(ctx, now)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	return jwt.Signed(signer).Claims(claims).Serialize()
}

// Rotate makes the next key when its time has come, and drops those that nobody needs any more. It may be repeated.
func (k Keys) Rotate(ctx context.Context, now time.Time) error {
	all, err := selectKeys(ctx, k.DB)
	if err != nil || len(all) == 0 { // nobody has asked for one yet
		return err
	}
	if all[0].CreatedAt.Before(now.Add(-keyLife)) {
		if _, err := k.renew(ctx, audit.Scheduled, now, false); err != nil {
			return err
		}
	}
	return deleteKeys(ctx, k.DB, now.Add(-published))
}

// Renew makes the next key now, by hand. It signs after two days; at once says that it signs at once, and that the keys before it
// are published no longer, for when one of them was stolen: LMSes that keep our set refuse us until they fetch it again.
func (k Keys) Renew(ctx context.Context, by audit.Actor, atOnce bool, now time.Time) (Key, error) {
	return k.renew(ctx, by, now, atOnce)
}

func (k Keys) renew(ctx context.Context, by audit.Actor, now time.Time, atOnce bool) (made Key, err error) {
	private, err := rsa.GenerateKey(rand.Reader, minBits) // before the transaction: it takes its time
	if err != nil {
		return made, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return made, err
	}
	made = Key{KID: seal.Token(), CreatedAt: now, SignsFrom: now}
	if made.Public, err = json.Marshal(jose.JSONWebKey{Key: private.Public(), KeyID: made.KID, Algorithm: string(jose.RS256), Use: "sig"}); err != nil {
		return made, err
	}
	sealed, err := k.Box.Seal(ctx, der, place(made.KID))
	if err != nil {
		return made, err
	}
	err = k.DB.InTx(ctx, func(tx *pg.Tx) error {
		if err := pg.Lock(ctx, tx, pg.LockLMS, keysLock); err != nil {
			return err
		}
		all, err := selectKeys(ctx, tx)
		if err != nil {
			return err
		}
		action := "made the next LTI key"
		switch {
		case atOnce:
			action, err = "replaced the LTI keys at once", deleteAllKeys(ctx, tx)
		case len(all) > 0 && all[0].CreatedAt.After(now.Add(-time.Minute)): // another process was faster
			made = all[0]
			return nil
		case len(all) > 0:
			made.SignsFrom = now.Add(announced)
		}
		if err != nil {
			return err
		}
		if err := insertKey(ctx, tx, made, sealed); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Actor: by, Action: action, Target: made.KID, At: now})
	})
	if err != nil {
		return made, fmt.Errorf("a new key for LMSes: %w", err)
	}
	return made, nil
}
