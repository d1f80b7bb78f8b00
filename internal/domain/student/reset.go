package student

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// ResetValid is how long a link lives that a person asked for on the sign-in page.
const ResetValid = time.Hour

// maxResets is how many such links an account may have at a time, so that nobody's mailbox
// is filled by others while limits are not counted.
const maxResets = 3

// TakeReset removes a request and returns its address; "" when it was taken before.
func TakeReset(ctx context.Context, tx *pg.Tx, reset int64) (Email, error) {
	email, err := deleteReset(ctx, tx, reset)
	if pg.None(err) {
		return "", nil
	}
	return email, err
}

// ResetLink makes the link for who asked for it. It goes to the person's mailbox and nowhere else,
// and proves the mailbox. The zero Link when there are enough of them already. The caller holds the
// lock of the account's address.
func ResetLink(ctx context.Context, tx *pg.Tx, user id.User, now time.Time) (Link, error) {
	n, err := countResets(ctx, tx, user, now)
	if err != nil || n >= maxResets {
		return Link{}, err
	}
	var b pg.Batch
	l := issue(&b, 0, user, true, now.Truncate(time.Second).Add(ResetValid), now)
	return l, b.Send(ctx, tx)
}
