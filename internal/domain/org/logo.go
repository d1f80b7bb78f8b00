package org

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"image"
	_ "image/jpeg" // what is taken, beside PNG
	"image/png"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// MaxLogo is the largest file that is taken as a logo, in bytes; maxSide is its largest side, in pixels.
const (
	MaxLogo = 500 << 10
	maxSide = 1024
)

// PutLogo makes the picture of a PNG or JPEG file the organization's logo. It is encoded again: what a file has beside its
// picture is not kept. Invalid where it is none or too large.
func PutLogo(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, file []byte, now time.Time) error {
	picture, err := readLogo(file)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(picture)
	return db.InTx(ctx, func(tx *pg.Tx) error {
		if err := upsertLogo(ctx, tx, org, picture, digest[:16], now); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "changed organization", Target: "its logo", At: now})
	})
}

// DropLogo takes the logo away; without one it does nothing.
func DropLogo(ctx context.Context, db *pg.DB, by audit.Actor, org id.Organization, now time.Time) error {
	return db.InTx(ctx, func(tx *pg.Tx) error {
		found, err := deleteLogo(ctx, tx, org)
		if err != nil || !found {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "removed logo of organization", Target: "", At: now})
	})
}

// Logo reads the picture, a PNG, of the digest. NotFound where the organization has another or none.
func Logo(ctx context.Context, q pg.Querier, org id.Organization, digest string) ([]byte, error) {
	sum, err := hex.DecodeString(digest)
	if err != nil {
		return nil, errNoLogo
	}
	picture, err := selectLogo(ctx, q, org, sum)
	if pg.None(err) {
		return nil, errNoLogo
	}
	return picture, err
}

var errNoLogo = fault.New(fault.NotFound, "not_found", "there is no such logo")

func readLogo(file []byte) ([]byte, error) {
	size, _, err := image.DecodeConfig(bytes.NewReader(file))
	if err != nil || len(file) > MaxLogo {
		return nil, fault.Field("logo", "invalid", "logo: send a PNG or JPEG picture of at most %d KiB", MaxLogo>>10)
	}
	if size.Width > maxSide || size.Height > maxSide { // before any of it is unpacked
		return nil, fault.Field("logo", "invalid", "logo: send a picture of at most %d by %d pixels", maxSide, maxSide)
	}
	picture, _, err := image.Decode(bytes.NewReader(file))
	if err != nil {
		return nil, fault.Field("logo", "invalid", "logo: the file is not a whole picture")
	}
	var out bytes.Buffer
	err = png.Encode(&out, picture)
	return out.Bytes(), err
}
