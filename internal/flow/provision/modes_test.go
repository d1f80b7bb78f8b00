package provision_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/clock"
)

const password = "Tr0ub4dor&3x"

// signsIn says whether the name and password are somebody's, without leaving a trace.
func (d *fixture) signsIn(name, password string) bool {
	d.t.Helper()
	_, err := d.signInAs(name, password)
	d.Exec(`UPDATE accounts SET last_login = NULL`)
	return err == nil
}

// Reference: provisioning#password-modes.
func TestPasswordModes(t *testing.T) {
	t.Parallel()
	d := open(t)
	call := func(address string, change func(*provision.Command)) provision.Answer {
		c := ana("ielts")
		c.Email = address
		change(&c)
		return d.student(c)
	}
	t.Run("link", func(t *testing.T) {
		a := call("link@institute.org", func(c *provision.Command) { c.Mode = provision.ModeLink })
		if check.True(t, "there is a link for the password", a.SetPasswordURL != nil, "%+v", a) &&
			check.True(t, "there is no password", a.Credentials.Password == nil, "%+v", a) &&
			check.False(t, "a.Credentials.MustChangePassword", a.Credentials.MustChangePassword, "%+v", a) {
			check.Equal(t, "*a.Email.Type", *a.Email.Type, email.TypeWelcome, "%+v", a)
		}
		if d.Count(`accounts WHERE id = $1 AND password_hash IS NULL`, a.UserID) != 1 {
			t.Error("the account has a password")
		}
	})
	t.Run("set", func(t *testing.T) {
		a := call("set@institute.org", func(c *provision.Command) {
			c.Mode, c.Username, c.Password = provision.ModeSet, "Ana.L", password
		})
		if check.True(t, "there is no password", a.Credentials.Password == nil, "%+v", a) &&
			check.False(t, "a.Credentials.MustChangePassword", a.Credentials.MustChangePassword, "%+v", a) &&
			check.Equal(t, "a.Credentials.Username", a.Credentials.Username, "Ana.L", "%+v", a) &&
			check.True(t, "there is a link for the password", a.SetPasswordURL != nil, "%+v", a) {
			check.Equal(t, "*a.Email.Type", *a.Email.Type, email.TypeCredentials, "%+v", a)
		}
		if check.True(t, "the username signs in", d.signsIn("ana.l", password), "the sent details do not sign in") {
			check.True(t, "the address signs in", d.signsIn("set@institute.org", password), "the sent details do not sign in")
		}
	})
	t.Run("set is implied by a password", func(t *testing.T) {
		if a := call("implied@institute.org", func(c *provision.Command) { c.Password = password }); *a.Email.Type != email.TypeCredentials {
			t.Errorf("%+v", a)
		}
	})
	t.Run("generate", func(t *testing.T) {
		generate := func(c *provision.Command) { c.Mode = provision.ModeGenerate }
		a := call("generate@institute.org", generate)
		check.True(check.Now(t), "there is a password", a.Credentials.Password != nil, "%+v", a)
		check.True(check.Now(t), "a.Credentials.MustChangePassword", a.Credentials.MustChangePassword, "%+v", a)
		check.Equal(check.Now(t), "*a.Email.Type", *a.Email.Type, email.TypeCredentials, "%+v", a)
		if !d.signsIn("generate@institute.org", *a.Credentials.Password) {
			t.Error("the generated password does not sign in")
		}
		again := call("generate@institute.org", generate)
		if check.Equal(t, "again.Status", again.Status, "already_provisioned", "a repeat: %+v", again) &&
			check.True(t, "there is no password", again.Credentials.Password == nil, "a repeat: %+v", again) &&
			check.True(t, "there is a note", again.Credentials.Note != "", "a repeat: %+v", again) &&
			check.True(t, "there is a link for the password", again.SetPasswordURL != nil, "a repeat: %+v", again) {
			check.Equal(t, "number of warnings", len(again.Warnings), 0, "a repeat: %+v", again)
		}
		if !d.signsIn("generate@institute.org", *a.Credentials.Password) {
			t.Error("a repeat has changed the password")
		}
	})
}

// Reference: provisioning#existing-accounts.
func TestSignInDetailsOfAnExistingAccount(t *testing.T) {
	t.Parallel()
	details := func(name, word string) provision.Command {
		c := ana()
		c.Username, c.Password = name, word
		return c
	}
	t.Run("made here and never signed in: applied", func(t *testing.T) {
		t.Parallel()
		d := open(t)
		d.student(ana())
		a := d.student(details("ana", password))
		check.Equal(check.Now(t), "a.Status", a.Status, "success", "%+v", a)
		check.False(check.Now(t), "a.CreatedUser", a.CreatedUser, "%+v", a)
		check.Equal(check.Now(t), "a.Credentials.Username", a.Credentials.Username, "ana", "%+v", a)
		check.True(check.Now(t), "there is no password", a.Credentials.Password == nil, "%+v", a)
		check.True(check.Now(t), "there is a note", a.Credentials.Note != "", "%+v", a)
		check.Equal(check.Now(t), "number of warnings", len(a.Warnings), 0, "%+v", a)
		check.True(check.Now(t), "there is a link for the password", a.SetPasswordURL != nil, "%+v", a)
		check.Equal(check.Now(t), "*a.Email.Type", *a.Email.Type, email.TypeCredentials, "%+v", a)
		check.True(check.Now(t), "the password signs in", d.signsIn("ana", password), "%+v", a)
		if a := d.student(details("ana", password)); check.Equal(t, "a.Status", a.Status, "already_provisioned", "the same again: %+v", a) {
			check.True(t, "the password signs in", d.signsIn("ana", password), "the same again: %+v", a)
		}
		if a := d.student(details("", password+"2")); check.Equal(t, "a.Status", a.Status, "success", "another password: %+v", a) &&
			check.Equal(t, "a.Credentials.Username", a.Credentials.Username, "ana", "another password: %+v", a) {
			check.True(t, "the new password signs in", d.signsIn("ana", password+"2"), "another password: %+v", a)
		}
		if a := d.student(details("anna", "")); check.Equal(t, "a.Status", a.Status, "success", "another username: %+v", a) &&
			check.Equal(t, "a.Credentials.Username", a.Credentials.Username, "anna", "another username: %+v", a) &&
			check.Equal(t, "*a.Email.Type", *a.Email.Type, email.TypeWelcome, "another username: %+v", a) {
			check.True(t, "the new username signs in", d.signsIn("anna", password+"2"), "another username: %+v", a)
		}
	})
	for name, sql := range map[string]string{
		"signed in":        `UPDATE accounts SET last_login = now()`,
		"own password":     `UPDATE accounts SET own_password = true, password_hash = 'x'`,
		"came from roster": `UPDATE accounts SET created_via = 'roster'`,
		"came from another organization": `WITH o AS (INSERT INTO organizations (slug, name, language_tests_enabled, default_access_months, grace_period_days,
			starter_tests_per_course, visible_tests_limit, send_welcome_email_default, set_password_link_valid_days, created_at, updated_at)
			VALUES ('south', 'South', true, 6, 7, 2, 10, true, 7, now(), now()) RETURNING id)
			UPDATE accounts SET created_by_organization = o.id FROM o`,
	} {
		t.Run(name+": left untouched", func(t *testing.T) {
			t.Parallel()
			d := open(t)
			d.student(ana())
			d.Exec(sql)
			hash := `accounts WHERE username = 'ana@institute.org' AND coalesce(password_hash, 'x') = 'x'`
			for want, c := range map[string]provision.Command{
				"username: , password: ": details("ana", password),
				"username: ":             details("ana", ""),
				"password: ":             details("ana@institute.org", password),
				"password_mode: ":        {Email: "ana@institute.org", FirstName: "Ana", Mode: provision.ModeGenerate},
			} {
				a := d.student(c)
				if check.Equal(t, "a.Status", a.Status, "already_provisioned", "%+v", a) &&
					check.True(t, "there is a note", a.Credentials.Note != "", "%+v", a) &&
					check.True(t, "there is no password", a.Credentials.Password == nil, "%+v", a) &&
					check.True(t, "there is no link for the password", a.SetPasswordURL == nil, "%+v", a) {
					check.Equal(t, "number of such accounts", d.Count(hash), 1, "%+v", a)
				}
				var got strings.Builder
				for i, w := range a.Warnings {
					if i > 0 {
						got.WriteString(", ")
					}
					got.WriteString(w[:strings.Index(w, ": ")+2])
				}
				if got.String() != want {
					t.Errorf("warnings %q, want %s", a.Warnings, want)
				}
			}
			if a := d.student(ana()); check.Equal(t, "number of warnings", len(a.Warnings), 0, "nothing was sent, and yet: %+v", a) {
				check.True(t, "there is a note", a.Credentials.Note != "", "nothing was sent, and yet: %+v", a)
			}
		})
	}
}

func TestUsernames(t *testing.T) {
	t.Parallel()
	d := open(t)
	named := func(address, username string) provision.Command {
		return provision.Command{Email: address, FirstName: "Ana", Username: username}
	}
	if a := d.student(named("one@institute.org", "Ana")); a.Credentials.Username != "Ana" {
		t.Fatalf("%+v", a)
	}
	d.refused(named("two@institute.org", "ANA"), "username username_taken")
	d.refused(named("two@institute.org", "an a"), "username invalid_username")
	bad := named("two@institute.org", "ana")
	bad.TenureMonths, bad.Courses = 500, []string{"latin"}
	d.refused(bad, "tenure_months out_of_range, username username_taken, courses unknown_course_type")
	if a := d.student(named("two@institute.org", "")); a.Credentials.Username != "two@institute.org" {
		t.Fatalf("%+v", a)
	}
	d.refused(named("two@institute.org", "ana"), "username username_taken")
	d.Exec(`UPDATE accounts SET last_login = now()`)
	if a := d.student(named("two@institute.org", "ana")); len(a.Warnings) != 1 { // it is not applied, so it is not checked
		t.Errorf("%+v", a)
	}
}

func TestConcurrentCallsWithAPassword(t *testing.T) {
	t.Parallel()
	d := open(t)
	second := &provision.Service{DB: d.DB, Mail: d.Mail, Clock: d.Clock, Zone: d.Zone, PublicURL: d.PublicURL, Plans: d.Plans} // another replica
	c := ana("ielts")
	c.Password = password
	var wg sync.WaitGroup
	for i := range 12 {
		service := d.Service
		if i%2 == 1 {
			service = second
		}
		wg.Go(func() {
			if _, err := service.Student(t.Context(), d.who, c); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := d.Count(`emails`); n != 1 {
		t.Errorf("%d mails", n)
	}
	if !d.signsIn("ana@institute.org", password) {
		t.Error("the password does not sign in")
	}
}

// What waits to be sent is not added to by a resend, but for a mail of another type.
// Reference: provisioning#email-status.
func TestAResendWhileTheMailWaitsAddsNothing(t *testing.T) {
	t.Parallel()
	d := open(t)
	mails := func(want int, typ email.Type, a provision.Answer) {
		t.Helper()
		if n := d.Count(`emails`); check.Equal(check.Now(t), "n", n, want, "%d mails, want %d; email = %+v", n, want, a.Email) &&
			check.Equal(check.Now(t), "a.Email.Status", a.Email.Status, "queued", "%d mails, want %d; email = %+v", n, want, a.Email) &&
			check.Equal(check.Now(t), "*a.Email.Type", *a.Email.Type, typ, "%d mails, want %d; email = %+v", n, want, a.Email) {
			check.True(check.Now(t), "a.WelcomeEmailSent", a.WelcomeEmailSent, "%d mails, want %d; email = %+v", n, want, a.Email)
		}
	}
	mails(1, email.TypeWelcome, d.student(ana("ielts")))
	mails(1, email.TypeWelcome, d.student(resent(ana("ielts"))))
	mails(2, email.TypeWelcome, d.student(resent(ana("toefl")))) // a change is news
	d.Exec(`UPDATE emails SET status = 'uncertain', detail = 'may have been received'`)
	mails(3, email.TypeWelcome, d.student(resent(ana("ielts"))))
	mails(3, email.TypeWelcome, d.student(resent(ana("ielts"))))
	c := ana()
	c.Password = password
	mails(4, email.TypeCredentials, d.student(c))
	mails(4, email.TypeCredentials, d.student(resent(ana()))) // just made
	d.Clock = clock.At(now.Add(time.Minute))
	mails(5, email.TypeWelcome, d.student(resent(ana())))
}

// A resend within a minute says what became of the mail that it would repeat; what is not on its way
// to the student is sent again at once.
// Reference: provisioning#email-status.
func TestAResendWithinAMinuteAnswersWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	for status, c := range map[email.Status]struct {
		after time.Duration
		mails int
		want  provision.MailStatus
	}{
		email.Queued:     {59 * time.Second, 1, "queued"},
		email.Sent:       {59 * time.Second, 1, "sent"},
		email.Suppressed: {59 * time.Second, 1, "suppressed"},
		email.Uncertain:  {time.Second, 2, "queued"},
		email.Failed:     {time.Second, 2, "queued"},
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			d := open(t)
			d.student(ana("ielts"))
			d.Exec(`UPDATE emails SET status = $1, detail = CASE WHEN $1 = 'sent' THEN '' ELSE 'why' END`, status)
			d.Clock = clock.At(now.Add(c.after))
			a := d.student(resent(ana("ielts")))
			check.Equal(t, "the status", a.Email.Status, c.want, "%+v", a.Email)
			check.Equal(t, "the mails", d.Count(`emails`), c.mails, "%+v", a.Email)
			check.Equal(t, "the type", *a.Email.Type, email.TypeWelcome, "%+v", a.Email)
			d.Exec(`UPDATE emails SET status = 'sent', detail = ''`)
			d.Clock = clock.At(now.Add(c.after + time.Minute))
			a = d.student(resent(ana("ielts")))
			check.Equal(t, "the mails after another minute", d.Count(`emails`), c.mails+1, "%+v", a.Email)
		})
	}
}
