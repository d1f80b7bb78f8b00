package provision_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// beside is the same service in another process: nothing but the database is shared.
func (d *fixture) beside() *provision.Service {
	return &provision.Service{DB: d.DB, Mail: d.Mail, Clock: d.Clock, Zone: d.Zone, PublicURL: d.PublicURL, Plans: d.Plans}
}

// sending counts the mails that go out.
func (d *fixture) sending() int { return d.Count(`emails WHERE status = 'queued'`) }

// However many organizations call at once, and whatever for, an address gets five onboarding mails a
// day. What an organization sees of it is the same as if all of them had been its own.
// Reference: provisioning#email-status.
func TestAnAddressGetsFiveOnboardingMailsADay(t *testing.T) {
	t.Parallel()
	d := open(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var answers []provision.Answer
	for i := range 6 {
		who := d.organization(fmt.Sprintf("org-%d", i))
		service := d.beside()
		wg.Go(func() {
			for _, course := range []string{"ielts", "toefl"} {
				a, err := service.Student(t.Context(), who, ana(course))
				check.NoError(t, err, "%s for %s", course, who.Organization.Slug)
				mu.Lock()
				answers = append(answers, a)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	check.Equal(t, "the mails that go out", d.sending(), 5, "12 changes of 6 organizations")
	check.Equal(t, "the other mails", d.Count(`emails WHERE status = 'suppressed'`), 7, "12 changes of 6 organizations")
	check.Equal(t, "the secrets that nothing needs", d.Count(`emails WHERE status = 'suppressed' AND sealed IS NOT NULL`), 0, "of mails that are not sent")
	for _, a := range answers {
		if a.Email.Status == "queued" {
			continue
		}
		check.Equal(t, "the status", a.Email.Status, provision.MailStatus(email.Suppressed), "%+v", a.Email)
		check.False(t, "welcome_email_sent", a.WelcomeEmailSent, "%+v", a.Email)
		check.Equal(t, "the reason", *a.Email.Detail, "no more onboarding mails go to this address within a day; send resend_welcome_email tomorrow", "it tells nothing of others")
	}
}

func TestTheShareOfAnAddressComesBackAfterADay(t *testing.T) {
	t.Parallel()
	d := open(t)
	d.student(ana("ielts"))
	arrive := func() {
		d.Exec(`UPDATE emails SET status = 'sent', detail = '', sealed = NULL WHERE status = 'queued'`)
	}
	arrive()
	at := now
	later := func(by time.Duration) provision.Answer {
		t.Helper()
		at = at.Add(by)
		d.Clock = clock.At(at)
		return d.student(resent(ana("ielts")))
	}
	for i := range 4 {
		check.Equal(t, "the status", later(time.Hour).Email.Status, "queued", "resend %d", i+1)
		arrive()
	}
	check.Equal(t, "the sixth", later(time.Hour).Email.Status, "suppressed", "five within five hours")
	check.Equal(t, "a repeat", d.student(ana("ielts")).Email.Status, "suppressed", "it shows the last mail")
	check.Equal(t, "while the first is a day old", later(19*time.Hour-time.Second).Email.Status, "suppressed", "mails that were not sent do not count, the others do")
	check.Equal(t, "a day after the first", later(time.Minute).Email.Status, "queued", "there is one again")
	check.Equal(t, "and then", later(time.Minute).Email.Status, "queued", "the same mail is reported")
	check.Equal(t, "the mails that go out", d.sending(), 1, "one more than before")
}

// What a person asks for is mailed, and another address has a share of its own.
func TestMailsThatAPersonAsksForAreNotCounted(t *testing.T) {
	t.Parallel()
	d := open(t)
	no := false
	quiet := ana()
	quiet.SendEmail = &no
	user := d.student(quiet).UserID
	var asked email.Record
	ask := func() {
		t.Helper()
		d.InTx(func(tx *pg.Tx) (err error) {
			asked, err = d.Mail.Queue(t.Context(), tx, now, email.Message{User: user, Recipient: "ana@institute.org",
				Content: email.PasswordReset{Student: email.Student{FirstName: "Ana"}}, Secrets: email.Secrets{SetPasswordURL: "https://learn.test/set-password/x"}})
			return err
		})
		check.Equal(t, "the mail that was asked for", asked.Status, email.Queued, "%+v", asked)
	}
	for range 7 {
		ask()
	}
	for i := range 6 {
		a := d.as(d.organization(fmt.Sprintf("org-%d", i)), ana("ielts"))
		want := provision.MailStatus(email.Queued)
		if i == 5 {
			want = provision.MailStatus(email.Suppressed)
		}
		check.Equal(t, "the onboarding mail", a.Email.Status, want, "organization %d: %+v", i, a.Email)
	}
	ask()
	other := ana("ielts")
	other.Email = "ben@institute.org"
	check.Equal(t, "another's mail", d.student(other).Email.Status, "queued", "another address")
}

// Who has been mailed enough cannot be told from who is not mailed at all by its organization.
func TestAShareTellsNothingOfOthers(t *testing.T) {
	t.Parallel()
	d := open(t)
	var own, others provision.Answer
	for i := range 6 {
		own = d.student(ana([]string{"ielts", "toefl", "sat", "gre", "gmat", "oet"}[i]))
	}
	var last org.Principal
	for i := range 6 {
		last = d.organization(fmt.Sprintf("org-%d", i))
		c := ana("ielts")
		c.Email = "ben@institute.org"
		others = d.as(last, c)
	}
	check.Equal(t, "the reason", *others.Email.Detail, *own.Email.Detail, "others had the share, or the organization itself")
	check.False(t, "it names somebody", strings.Contains(*others.Email.Detail, "org-"), "%q", *others.Email.Detail)
}
