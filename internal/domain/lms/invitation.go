package lms

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// InviteLife is how long a link of Invite is good.
const InviteLife = 24 * time.Hour

// Invite makes the text with which the organization's LMS may register itself, once; the one before ends. Conflict:
// registration_limit.
func (s Service) Invite(ctx context.Context, by audit.Actor, org id.Organization, now time.Time) (string, error) {
	who, err := json.Marshal(by)
	if err != nil {
		return "", err
	}
	sealed, err := s.Box.Seal(ctx, who, inviter(org))
	if err != nil {
		return "", err
	}
	token := base64.RawURLEncoding.EncodeToString(sealed)
	return token, s.DB.InTx(ctx, func(tx *pg.Tx) error {
		if err := room(ctx, tx, org); err != nil {
			return err
		}
		if err := upsertInvitation(ctx, tx, org, seal.Hash(token), now.Add(InviteLife)); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Entry{Organization: org, Actor: by, Action: "made registration link for LMS", Target: "the one before ends", At: now})
	})
}

// inviter is what the sealed name of who has made a link is bound to.
func inviter(org id.Organization) string { return fmt.Sprintf("lms_invitations/%d", org) }

var errInvitation = fault.Field("link", "used", "link: it was used already, is too old, or was replaced by another one; an owner or admin makes one in the console, under LMS")

// Invited says who has made a link. Invalid (used) for one that is not good any more.
func (s Service) Invited(ctx context.Context, org id.Organization, token string, now time.Time) (by audit.Actor, err error) {
	if err := selectInvitation(ctx, s.DB, org, seal.Hash(token), now); err != nil {
		if pg.None(err) {
			err = errInvitation
		}
		return by, err
	}
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return by, err
	}
	who, err := s.Box.Open(ctx, sealed, inviter(org))
	if err != nil {
		return by, err
	}
	return by, json.Unmarshal(who, &by)
}

// TakeInvitation ends a link: of several at once, one may go on. Invalid (used) for the others.
func (s Service) TakeInvitation(ctx context.Context, org id.Organization, token string, now time.Time) error {
	err := deleteInvitation(ctx, s.DB, org, seal.Hash(token), now)
	if pg.None(err) {
		return errInvitation
	}
	return err
}
