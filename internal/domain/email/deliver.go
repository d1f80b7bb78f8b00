package email

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	netmail "net/mail"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/lang"
	"github.com/registrar-dev/registrar/internal/kit/mail"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
	"github.com/registrar-dev/registrar/internal/kit/task"
)

// Sender sends queued mails, each at most once.
//
// SMTP has no way to ask whether a message arrived, so a mail that may have left is never
// sent again by itself. Just before its text goes over the wire, the row is marked in a
// transaction of its own. The mark is removed together with the record of a refusal, and
// stays when nothing could be recorded (the process died, PostgreSQL went away). A worker that
// finds a queued mail with the mark therefore records it as uncertain. Everything before the
// mark can be repeated.
type Sender struct {
	DB     *pg.DB
	Box    *seal.Box
	Server *mail.Server
	From   netmail.Address // the organization's name stands in front of it
	// PublicURL is the base of the addresses of logos and of UnsubscribePath, without a slash at its end.
	PublicURL string
	Zone      *time.Location // dates and times in mails
	Clock     clock.Clock
	Log       *slog.Logger
	// Catch, when set, takes mails in the server's place. It may be called again for a mail that it has.
	Catch func(context.Context, id.Email, mail.Message) error
	// Observe, when set, is called after every attempt, with the time since the mail was ordered.
	Observe func(Type, mail.Result, time.Duration)
}

// giveUpAfter is how long a mail is tried again after temporary refusals.
const giveUpAfter = 24 * time.Hour

// Pause is the wait after so many attempts that failed for now.
func Pause(attempts int) time.Duration {
	minutes := []time.Duration{1, 2, 5, 10, 30}
	return minutes[min(max(attempts, 1), len(minutes))-1] * time.Minute
}

// hold is how long a worker keeps a mail: longer than a sending can take, so that a mark
// without a live claim means a dead worker.
func (p *Sender) hold() time.Time {
	if p.Catch != nil {
		return p.Clock().Add(time.Minute)
	}
	return p.Clock().Add(p.Server.Times.Total() + time.Minute)
}

// errTaken stops a sending whose claim or mark another worker has.
var errTaken = errors.New("another worker has the mail")

// Deliver works on one claim of a mail: it sends the mail and records the outcome, unless there
// is nothing left to send. A claim that was lost is no error.
func (p *Sender) Deliver(ctx context.Context, ref task.Outbox) error {
	err := p.deliver(ctx, ref)
	if errors.Is(err, outbox.ErrLost) || errors.Is(err, errTaken) {
		return nil
	}
	return err
}

func (p *Sender) deliver(ctx context.Context, ref task.Outbox) error {
	claimed, err := outbox.Hold(ctx, p.DB, ref, p.hold())
	if err != nil {
		return err
	}
	r, err := load(ctx, p.DB, id.Email(claimed.Subject))
	switch {
	case pg.None(err): // the account or organization is gone, and the mail with it
		return outbox.Done(ctx, p.DB, ref)
	case err != nil:
		return err
	case r.Status.Final():
		return outbox.Done(ctx, p.DB, ref)
	case r.HandedOver:
		return p.settle(ctx, ref, r, mail.Outcome{Result: mail.Uncertain,
			Detail: "sending was interrupted after the message was handed to the mail server; it may have been received"})
	}
	outcome, err := p.send(ctx, ref, r)
	if err != nil {
		return err
	}
	return p.settle(ctx, ref, r, outcome)
}

// send fails only when the mail is not this worker's to send. A mail that cannot be
// written (a missing key, a type of a newer version) waits like one that is refused.
func (p *Sender) send(ctx context.Context, ref task.Outbox, r row) (mail.Outcome, error) {
	m, err := p.write(ctx, r)
	if err != nil {
		p.Log.ErrorContext(ctx, "mail cannot be written", "email", int64(r.ID), "type", string(r.Type), "error", err)
		return mail.Outcome{Result: mail.Temporary, Detail: "the message could not be written by this installation"}, nil
	}
	if p.Catch != nil {
		return mail.Outcome{Result: mail.Accepted}, p.Catch(ctx, r.ID, m)
	}
	return p.Server.Send(ctx, m, func(ctx context.Context) error { return p.mark(ctx, ref, r.ID) })
}

// mark says that the text leaves now. The claim must be current, and the mark new.
func (p *Sender) mark(ctx context.Context, ref task.Outbox, mail id.Email) error {
	return p.DB.InTx(ctx, func(tx *pg.Tx) error {
		if _, err := outbox.Hold(ctx, tx, ref, p.hold()); err != nil {
			return err
		}
		first, err := markHandedOver(ctx, tx, mail, p.Clock())
		if err == nil && !first {
			return errTaken
		}
		return err
	})
}

func (p *Sender) write(ctx context.Context, r row) (mail.Message, error) {
	content, err := decodeContent(r.Type, r.Params)
	if err != nil {
		return mail.Message{}, err
	}
	secrets, err := openSecrets(ctx, p.Box, r.Reference, r.Sealed)
	if err != nil {
		return mail.Message{}, err
	}
	now := p.Clock()
	var links Links
	if r.Logo != "" { // at the address that pages have for it
		links.Logo = fmt.Sprintf("%s/logos/%d/%s", p.PublicURL, r.Organization, r.Logo)
	}
	if r.Type.Optional() {
		token, err := Subscription{r.Organization, r.User, r.Type}.Token(ctx, p.Box)
		if err != nil {
			return mail.Message{}, err
		}
		links.Unsubscribe = p.PublicURL + UnsubscribePath + token + "/"
	}
	text, err := Render(content, secrets, links, lang.Of(r.Language), now, p.Zone)
	if err != nil {
		return mail.Message{}, err
	}
	from := p.From
	to := netmail.Address{Address: r.Recipient}
	if s, ok := content.(interface{ student() Student }); ok {
		from.Name, to.Name = s.student().Organization, s.student().fullName()
	}
	_, domain, _ := strings.Cut(p.From.Address, "@")
	return mail.Message{From: from, To: to, Subject: text.Subject, Text: text.Plain, HTML: text.HTML, Language: text.Language, Unsubscribe: links.Unsubscribe,
		ID: r.Reference.String() + "@" + domain, Date: now}, nil
}

// settle records an attempt's outcome and finishes the task, or puts it back for later. It goes
// on when ctx has ended, as the outcome must be recorded.
func (p *Sender) settle(ctx context.Context, ref task.Outbox, r row, o mail.Outcome) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	next := decide(r, o, p.Clock())
	err := p.DB.InTx(ctx, func(tx *pg.Tx) error {
		if err := record(ctx, tx, r.ID, next, p.Clock()); err != nil {
			return err
		}
		if !next.status.Final() {
			return outbox.Postpone(ctx, tx, ref, next.again)
		}
		tx.Wake(Channel, nameOf(r.ID))
		return outbox.Done(ctx, tx, ref)
	})
	if errors.Is(err, outbox.ErrLost) {
		p.Log.WarnContext(ctx, "another worker has settled the mail in the meantime", "email", int64(r.ID), "result", string(o.Result))
	}
	if err != nil {
		return fmt.Errorf("recording that mail %d is %s: %w", r.ID, next.status, err)
	}
	if p.Observe != nil {
		p.Observe(r.Type, o.Result, p.Clock().Sub(r.CreatedAt))
	}
	p.Log.InfoContext(ctx, "mail attempted", "email", int64(r.ID), "organization", int64(r.Organization), "type", string(r.Type),
		"result", string(o.Result), "status", string(next.status), "detail", next.detail, "attempt", r.Attempts+1)
	return nil
}

// outcome is a mail's state after an attempt.
type outcome struct {
	status Status
	detail string
	again  time.Time // when queued
}

// decide says what an attempt's outcome means for the mail.
func decide(r row, o mail.Outcome, now time.Time) outcome {
	switch o.Result {
	case mail.Accepted:
		return outcome{status: Sent}
	case mail.Uncertain:
		return outcome{status: Uncertain, detail: o.Detail}
	case mail.Permanent:
		return outcome{status: Failed, detail: o.Detail}
	case mail.Temporary:
	}
	again := now.Add(Pause(r.Attempts + 1))
	if again.After(r.CreatedAt.Add(giveUpAfter)) {
		return outcome{status: Failed, detail: "not delivered within 24 hours; at last " + o.Detail}
	}
	return outcome{status: Queued, detail: o.Detail + "; it is tried again", again: again}
}
