// Package alert mails owners and admins of organizations about what one of them has to mend: a webhook URL that is
// switched off or has been failing for an hour, and a roster import that waits for a decision.
//
// A sweep looks at how things are, not at what happened: what was mended before it came is mailed to nobody, and a time
// without a worker loses no mail. What was mailed when is remembered for each subject, so that nobody is mailed about the
// same one twice within an hour, however often its state changes.
package alert

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/roster"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Service sends the mails.
type Service struct {
	DB        *pg.DB
	Mail      email.Service
	Clock     clock.Clock
	PublicURL string // the base of every link, without a slash at its end
}

const (
	// pause is how long nobody is mailed again about the same subject.
	pause = time.Hour
	// failing is how far apart the first and the last of a URL's failures in a row are before anybody is mailed.
	failing = time.Hour
	// news is how long ago a URL may have been switched off: who installs this version knows of the others.
	news = 7 * 24 * time.Hour
)

// Sweep queues the mails that are due, and returns about how many subjects. Several may sweep at once: each subject is
// mailed by one of them.
func (s *Service) Sweep(ctx context.Context) (mailed int, err error) {
	now := s.Clock()
	if err := note(ctx, s.DB, now); err != nil {
		return 0, err
	}
	due, err := selectDue(ctx, s.DB, now)
	if err != nil {
		return 0, err
	}
	for _, d := range due {
		if err := s.DB.InTx(ctx, func(tx *pg.Tx) error { return s.mail(ctx, tx, d, now) }); err != nil {
			return mailed, fmt.Errorf("mailing %s %d: %w", d.Type, d.Subject, err)
		}
		mailed++
	}
	return mailed, nil
}

// mail queues a mail to each owner and admin who wants it.
func (s *Service) mail(ctx context.Context, tx *pg.Tx, d due, now time.Time) error {
	first, err := setMailed(ctx, tx, d, now)
	if err != nil || !first {
		return err
	}
	all, err := org.ReadAll(ctx, tx, d.Organization)
	if err != nil {
		return err
	}
	o, known := all[d.Organization]
	if !known {
		return nil
	}
	content, err := s.content(ctx, tx, o, d)
	if pg.None(err) || fault.KindOf(err) == fault.NotFound {
		return nil // it is gone meanwhile
	}
	if err != nil {
		return err
	}
	managers, err := org.Managers(ctx, tx, o.ID)
	if err != nil {
		return err
	}
	ended, err := email.EndedBy(ctx, tx, o.ID, d.Type)
	if err != nil {
		return err
	}
	managers = slices.DeleteFunc(managers, func(u id.User) bool { return slices.Contains(ended, u) })
	accounts, err := student.FindAll(ctx, tx, o.ID, managers)
	if err != nil {
		return err
	}
	for _, user := range slices.Sorted(slices.Values(managers)) {
		a, known := accounts[user]
		if !known {
			continue
		}
		content.FirstName, content.LastName = a.FirstName, a.LastName
		if _, err := s.Mail.Queue(ctx, tx, now, email.Message{Organization: o.ID, User: user, Recipient: string(a.Email), Content: content}); err != nil {
			return err
		}
	}
	return nil
}

// content is the mail without its addressee's names.
func (s *Service) content(ctx context.Context, tx *pg.Tx, o org.Organization, d due) (email.Alert, error) {
	a := email.Alert{Of: d.Type, Organization: o.Name, Since: d.Since}
	if d.Type == email.TypeRosterHeld {
		held, err := selectHeld(ctx, tx, o.ID, d.Subject)
		if err != nil {
			return a, err
		}
		run, err := roster.Find(ctx, tx, o.ID, held)
		a.Source, a.Page = run.Source.Name, roster.ReviewURL(s.PublicURL, o.Slug, run.ID)
		for _, reason := range run.Reasons {
			a.Reasons = append(a.Reasons, reason.Text)
		}
		return a, err
	}
	u, err := selectURL(ctx, tx, o.ID, id.Endpoint(d.Subject), d.Since)
	a.URL, a.Failures, a.Waiting = u.URL, u.Failures, u.Waiting
	a.Page = s.PublicURL + "/console/" + o.Slug + "/webhooks/" + strconv.FormatInt(d.Subject, 10) + "/"
	if a.Cause = u.Reason; d.Type == email.TypeURLFailing && u.Cause != "" {
		a.Cause = webhook.Explain(u.Cause)
	}
	return a, err
}
