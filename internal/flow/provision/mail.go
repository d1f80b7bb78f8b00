package provision

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// mailing is what a call does about the onboarding mail.
type mailing int

const (
	mailSend   mailing = iota
	mailReport         // show the status of the last one, unless it has arrived
	mailRecent         // show the status of the last one
	mailNone           // not_requested
)

// resendAfter is how long a resend answers with the mail that was just made, and adds none.
const resendAfter = time.Minute

// decideMail sends a mail after a change, after one that failed, and for resend; resend adds none
// to a mail of the same type (next) that is still queued, and none to one that was made just now.
// Without send there is never a mail.
func decideMail(send, resend, changed bool, latest email.Record, next email.Type, now time.Time) mailing {
	waits := latest.Status == email.Queued && latest.Type == next
	switch {
	case !send:
		return mailNone
	case changed, latest.Status == email.Failed:
		return mailSend
	case resend && isRecent(latest, now):
		return mailRecent
	case resend && !waits:
		return mailSend
	}
	return mailReport
}

// isRecent says whether the mail is under way, or has just arrived.
func isRecent(latest email.Record, now time.Time) bool {
	switch latest.Status {
	case email.Queued, email.Sent, email.Suppressed:
		return now.Before(latest.CreatedAt.Add(resendAfter))
	case email.Uncertain, email.Failed:
	}
	return false
}

// report shows the status of an earlier mail, for a call that sends none. Where there never was one,
// nobody has asked for it.
func report(latest email.Record) Mail {
	if latest.ID == 0 {
		return Mail{Status: MailNotRequested}
	}
	switch latest.Status {
	case email.Queued, email.Uncertain, email.Suppressed:
		return newMail(latest)
	case email.Sent, email.Failed: // Failed is sent again and never comes here
	}
	return Mail{Status: MailNotNeeded}
}

// sendsMail is send_welcome_email, or the organization's default.
func (c *call) sendsMail() bool {
	if c.cmd.SendEmail != nil {
		return *c.cmd.SendEmail
	}
	return c.who.Organization.Defaults.SendWelcomeEmail
}

// writeMail queues the mail, if there is one to be sent; it is the latest when b is sent. Its link is
// another than the answer's: it is the mailbox's alone.
func (c *call) writeMail(ctx context.Context, b *pg.Batch) error {
	next := c.mailType()
	c.mailing = decideMail(c.sendsMail(), c.cmd.ResendEmail, c.changed(), c.latest, next, c.now)
	if c.mailing != mailSend {
		return nil
	}
	if next == email.TypeWelcome && c.cmd.mode() != ModeLink {
		c.warn("password_mode: no password is generated again; the mail has a link to set one, and no credentials")
	}
	var link student.Link
	if next != email.TypeAccessUpdate || !c.seen().HasPassword() {
		o := c.who.Organization
		link = student.IssueMailedLink(b, o.ID, c.account.ID, o.Defaults.SetPasswordLinkValidDays, c.now)
	}
	return c.Mail.Write(ctx, b, c.now, c.message(next, link), &c.latest)
}

func (c *call) mail() Mail {
	switch c.mailing {
	case mailNone:
		return Mail{Status: MailNotRequested}
	case mailReport:
		return report(c.latest)
	case mailSend, mailRecent:
	}
	return newMail(c.latest)
}

// mailType is credentials with a password that this call gave the student, or that it sent and the
// student has already. Without one, it is a welcome for a student who may get a link, and an access
// update for one who signs in already.
func (c *call) mailType() email.Type {
	switch {
	case c.link.Token == "":
		return email.TypeAccessUpdate
	case c.details.password != "":
		return email.TypeCredentials
	}
	return email.TypeWelcome
}

// message is the mail of the type with a link, which may be zero for an access update.
func (c *call) message(next email.Type, link student.Link) email.Message {
	m := email.Message{Organization: c.who.Organization.ID, User: c.account.ID, Recipient: string(c.account.Email)}
	about := email.Student{FirstName: c.account.FirstName, LastName: c.account.LastName, Organization: c.who.Organization.Name,
		Username: c.account.CalledBy(c.who.Organization.ID), LoginURL: wire.SignInURL(c.PublicURL, c.who.Organization.Slug), Courses: c.granted()}
	if link.Token != "" {
		m.Secrets.SetPasswordURL = c.urlOf(link)
	}
	switch next {
	case email.TypeAccessUpdate:
		m.Content = email.AccessUpdate{Student: about, LinkExpires: link.ExpiresAt}
	case email.TypeCredentials:
		m.Content = email.Credentials{Student: about, MustChangePassword: c.account.MustChangePassword}
		m.Secrets.Password = c.details.password
	default:
		m.Content = email.Welcome{Student: about, LinkExpires: link.ExpiresAt}
	}
	return m
}

// granted are the courses that the mail announces.
func (c *call) granted() []email.Course {
	var courses []email.Course
	for _, m := range c.moves {
		if m.Granted() {
			courses = append(courses, email.Course{Name: m.After.Course.Name, StartDate: m.After.StartDate, EndDate: m.After.EndDate})
		}
	}
	return courses
}
