package provision_test

import (
	"context"
	"errors"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/pg/pgtest"
)

// as is a call of another organization's key.
func (d *fixture) as(who org.Principal, c provision.Command) provision.Answer {
	d.t.Helper()
	a, err := d.Student(d.t.Context(), who, c)
	if err != nil {
		d.t.Fatal(err)
	}
	return a
}

func (d *fixture) link(user provision.Answer) student.Link {
	d.t.Helper()
	var l student.Link
	d.inTx(func(tx *pg.Tx) (err error) {
		l, err = student.ResetLink(d.t.Context(), tx, user.UserID, now)
		return err
	})
	return l
}

func (d *fixture) inTx(do func(tx *pg.Tx) error) {
	d.t.Helper()
	if err := d.DB.InTx(d.t.Context(), do); err != nil {
		d.t.Fatal(err)
	}
}

// use sets the password over a link.
func (d *fixture) use(token string) error {
	d.t.Helper()
	hash, err := student.HashPassword(d.t.Context(), password)
	if err != nil {
		d.t.Fatal(err)
	}
	return student.SetOwnPassword(d.t.Context(), d.DB, token, hash, now)
}

// Who made the account reads what other organizations give the student if it
// can sign in as them: it gets no link, and sets no details, once there is another one.
// Reference: provisioning#existing-accounts.
func TestTheMakerOfAnAccountThatOthersShareGetsNoWayIn(t *testing.T) {
	t.Parallel()
	d := open(t)
	south := d.organization("south")
	first := d.student(ana())
	d.as(south, ana("ielts"))
	if _, err := student.FindLink(t.Context(), d.DB, token(first), now); !errors.Is(err, student.ErrLinkOver) {
		t.Errorf("the link from before is still good: %v", err)
	}
	for _, c := range []provision.Command{ana(), resent(ana()), ana("toefl")} {
		a := d.student(c)
		check.True(t, "there is no link for the password", a.SetPasswordURL == nil, "%+v", a)
		check.True(t, "there is no end of a link", a.SetPasswordExpires == nil, "%+v", a)
		check.True(t, "the credentials have a note", a.Credentials.Note != "", "%+v", a)
		check.Equal(t, "number of warnings", len(a.Warnings), 0, "%+v", a)
		if a.Email.Type != nil {
			check.True(t, "the mail has no credentials", *a.Email.Type != email.TypeCredentials, "%+v", a)
		}
	}
	if a := d.student(resent(ana())); *a.Email.Type != email.TypeAccessUpdate {
		t.Errorf("email = %+v", a.Email)
	}
	for _, mode := range []provision.Mode{provision.ModeSet, provision.ModeGenerate} {
		c := ana()
		c.Mode, c.Username = mode, "taken.over"
		if mode == provision.ModeSet {
			c.Password = password
		}
		if a := d.student(c); check.Equal(t, "number of warnings", len(a.Warnings), 2, "%s: %+v", mode, a) &&
			check.True(t, "there is a note", a.Credentials.Note != "", "%s: %+v", mode, a) &&
			check.True(t, "there is no password", a.Credentials.Password == nil, "%s: %+v", mode, a) {
			check.True(t, "there is no link for the password", a.SetPasswordURL == nil, "%s: %+v", mode, a)
		}
	}
	if n := d.Count(`accounts WHERE password_hash IS NULL AND username = 'ana@institute.org'`); n != 1 {
		t.Error("the sent details were applied")
	}
	if n := d.Count(`set_password_tokens`); n != 0 {
		t.Errorf("%d links", n)
	}
	if err := d.use(d.link(first).Token); err != nil {
		t.Errorf("the student's own link: %v", err)
	}
}

// What a partner may know lets nobody in where another organization's student is.
func TestAnotherOrganizationsStudentLosesThePasswordThatAPartnerGave(t *testing.T) {
	t.Parallel()
	withPassword := ana()
	withPassword.Password = password
	for name, c := range map[string]struct {
		call provision.Command
		set  func(d *fixture, made provision.Answer) error
		kept bool
	}{
		"set":                            {call: withPassword},
		"chosen over the partner's link": {call: ana(), set: func(d *fixture, made provision.Answer) error { return d.use(token(made)) }},
		"chosen over a mailed link":      {call: ana(), set: func(d *fixture, made provision.Answer) error { return d.use(d.link(made).Token) }, kept: true},
		"used already": {call: withPassword, set: func(d *fixture, _ provision.Answer) error {
			_, err := student.SignIn(d.t.Context(), d.DB, "ana@institute.org", password, now)
			return err
		}, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			south := d.organization("south")
			made := d.student(c.call)
			if c.set != nil {
				if err := c.set(d, made); err != nil {
					t.Fatal(err)
				}
			}
			a := d.as(south, ana())
			if check.True(t, "there is no link for the password", a.SetPasswordURL == nil, "%+v", a) &&
				check.True(t, "there is a note", a.Credentials.Note != "", "%+v", a) {
				check.Equal(t, "*a.Email.Type", *a.Email.Type, email.TypeAccessUpdate, "%+v", a)
			}
			if got := d.Count(`emails WHERE organization_id = $1 AND coalesce((params ->> 'no_password')::boolean, false)`, south.Organization.ID); got == 1 == c.kept {
				t.Errorf("%d mails say that there is no password", got)
			}
			_, err := student.SignIn(t.Context(), d.DB, "ana@institute.org", password, now)
			if (err == nil) != c.kept {
				t.Errorf("the password signs in: %v, want %v", err == nil, c.kept)
			}
			if n := d.Count(`set_password_tokens`); n != 0 {
				t.Errorf("%d links of the partner's are left", n)
			}
			// The owner of the mailbox gets in, and stays in.
			if err := d.use(d.link(made).Token); err != nil {
				t.Fatal(err)
			}
			d.student(ana())
			d.as(south, ana())
			if _, err := student.SignIn(t.Context(), d.DB, "ana@institute.org", password, now); err != nil {
				t.Errorf("the student's own password: %v", err)
			}
		})
	}
}

// The same where the partner's link is being used while another organization comes.
func TestALinkThatIsUsedAsAnotherOrganizationComes(t *testing.T) {
	t.Parallel()
	d := open(t)
	south := d.organization("south")
	d.student(ana())
	hash, err := student.HashPassword(t.Context(), password)
	if err != nil {
		t.Fatal(err)
	}
	using, err := d.DB.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = using.Rollback(context.Background()) }()
	// What the use of the link writes.
	if _, err := using.Exec(t.Context(), `WITH used AS (DELETE FROM set_password_tokens)
		UPDATE accounts SET password_hash = $1, own_password = true`, hash); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := d.Student(t.Context(), south, ana("ielts"))
		done <- err
	}()
	pgtest.AwaitBlocked(t, d.DB, using)
	if err := using.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := student.SignIn(t.Context(), d.DB, "ana@institute.org", password, now); !errors.Is(err, student.ErrSignIn) {
		t.Errorf("the password of the partner's link signs in: %v", err)
	}
}
