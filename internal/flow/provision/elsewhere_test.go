package provision_test

import (
	"log/slog"
	netmail "net/mail"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/provision"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/mail"
	"github.com/registrar-dev/registrar/internal/kit/mail/mailtest"
	"github.com/registrar-dev/registrar/internal/kit/outbox"
	"github.com/registrar-dev/registrar/internal/kit/task"
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

var mailedLink = regexp.MustCompile(`https://learn\.test/set-password/([\w-]+)`)

// mailed are the tokens of the links in the mails that wait, which it sends to a real server; "" for a
// mail without one.
func (d *fixture) mailed() (tokens []string) {
	d.t.Helper()
	server := mailtest.Start(d.t, mailtest.Script{}, mailtest.Options{})
	to, err := mail.ParseServer(server.URL())
	if err != nil {
		d.t.Fatal(err)
	}
	sender := &email.Sender{DB: d.DB, Box: d.Mail.Box, Server: to, Zone: time.UTC, Clock: d.Clock, Log: slog.New(slog.DiscardHandler),
		From: netmail.Address{Address: "no-reply@registrar.school"}}
	due, err := outbox.Claim(d.t.Context(), d.DB, task.EmailSend, now, time.Minute, 100)
	for _, m := range due {
		if err == nil {
			err = sender.Deliver(d.t.Context(), task.Outbox{Task: m.ID, Claim: m.Claim})
		}
	}
	if err != nil {
		d.t.Fatal(err)
	}
	for _, text := range server.Messages() {
		found := append(mailedLink.FindStringSubmatch(strings.ReplaceAll(strings.ReplaceAll(text, "=\r\n", ""), "=3D", "=")), "", "")
		tokens = append(tokens, found[1])
	}
	return tokens
}

// proof is what a link proves.
func (d *fixture) proof(token string) student.Proof {
	d.t.Helper()
	_, p, err := student.FindLink(d.t.Context(), d.DB, token, now)
	if err != nil {
		d.t.Errorf("the link %q: %v", token, err)
	}
	return p
}

// signInAs signs somebody in as the page for it does.
func (d *fixture) signInAs(name, password string) (student.Account, error) {
	whose, err := student.ResolveName(d.t.Context(), d.DB, name)
	if err != nil {
		return student.Account{}, err
	}
	return whose.SignIn(d.t.Context(), d.DB, password, now)
}

// signIn is what signing in proves.
func (d *fixture) signIn(word string) student.Proof {
	d.t.Helper()
	a, err := d.signInAs("ana@institute.org", word)
	if err != nil {
		d.t.Errorf("signing in: %v", err)
	}
	return a.Proof()
}

// use sets the password over a link.
func (d *fixture) use(token string) {
	d.t.Helper()
	hash, err := student.HashPassword(d.t.Context(), password)
	if err == nil {
		_, _, err = student.SetOwnPassword(d.t.Context(), d.DB, token, hash, now)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// Reference: provisioning#links.
func TestTheLinkOfTheMailIsNotThatOfTheAnswer(t *testing.T) {
	t.Parallel()
	withPassword := ana()
	withPassword.Password = password
	for what, c := range map[string]provision.Command{"welcome": ana(), "credentials": withPassword} {
		d := open(t)
		a := d.student(c)
		check.Equal(t, "type", string(*a.Email.Type), what, "%+v", a.Email)
		for _, link := range d.mailed() {
			check.True(t, "another link", link != token(a), "%s: the mail has the link of the answer", what)
			check.Equal(t, "of the mail", d.proof(link), student.Mailbox, "%s", what)
		}
		check.Equal(t, "of the answer", d.proof(token(a)), student.ByOrganization(d.who.Organization.ID), "%s", what)
		check.Equal(t, "mailed links", d.Count(`set_password_tokens WHERE mailed`), 1, "%s", what)
		quiet := ana("ielts")
		quiet.SendEmail = new(bool)
		d.student(quiet)
		check.Equal(t, "mailed links after a call without a mail", d.Count(`set_password_tokens WHERE mailed`), 1, "%s", what)
	}
}

// Whoever is taken in gets an access update. Its link, for a student who has no password that opens
// what this organization shows, is the mailbox's.
// Reference: provisioning#existing-accounts.
func TestWhoIsTakenInGetsALinkToTheMailbox(t *testing.T) {
	t.Parallel()
	withPassword := ana()
	withPassword.Password = password
	for name, c := range map[string]struct {
		call provision.Command
		set  func(d *fixture, made provision.Answer)
		link bool
	}{
		"no password":                    {call: ana(), link: true},
		"set by the other":               {call: withPassword, link: true},
		"chosen over the other's link":   {call: ana(), set: func(d *fixture, made provision.Answer) { d.use(token(made)) }, link: true},
		"chosen over a mailed link":      {call: ana(), set: func(d *fixture, _ provision.Answer) { d.use(d.mailed()[0]) }},
		"set by the other and signed in": {call: withPassword, set: func(d *fixture, _ provision.Answer) { d.signIn(password) }, link: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t)
			south := d.organization("south")
			made := d.student(c.call)
			if c.set != nil {
				c.set(d, made)
			}
			d.mailed() // what the other sent
			for _, call := range []provision.Command{ana(), resent(ana())} {
				a := d.as(south, call)
				check.True(t, "set_password_url is null", a.SetPasswordURL == nil, "%+v", a)
				check.Equal(t, "type", *a.Email.Type, email.TypeAccessUpdate, "%+v", a)
				for _, link := range d.mailed() {
					check.Equal(t, "the mail has a link", link != "", c.link, "%+v", a)
					if link != "" {
						check.Equal(t, "of the mail", d.proof(link), student.Mailbox, "%+v", a)
					}
				}
			}
		})
	}
}

// A mailed its student a password; B enrolls the person.
// Reference: provisioning#existing-accounts.
func TestAPasswordThatAnotherInstituteMailedKeepsWorking(t *testing.T) {
	t.Parallel()
	d := open(t)
	south := d.organization("south")
	c := ana()
	c.Password, c.SendEmail = password, new(bool)
	made := d.student(c)
	d.as(south, ana())
	check.Equal(t, "signing in", d.signIn(password), student.ByOrganization(d.who.Organization.ID), "after the other call")
	d.Exec(`UPDATE accounts SET last_login = NULL`)
	check.Equal(t, "the link", d.proof(token(made)), student.ByOrganization(d.who.Organization.ID), "after the other call")
	again := d.student(c)
	check.True(t, "a fresh link", again.SetPasswordURL != nil, "%+v", again)
	check.Equal(t, "status", again.Status, "already_provisioned", "%+v", again)
}

// The calls of both organizations, and the person's own use of a mailed link, at the same time.
func TestOrganizationsThatCallAtOnceLeaveEachOthersLinksAlone(t *testing.T) {
	t.Parallel()
	d := open(t)
	south := d.organization("south")
	d.student(ana())
	d.as(south, ana())
	mine := d.mailed()
	withPassword := ana()
	withPassword.Password = password + "north"
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { d.as(south, ana("ielts")) })
		all.Go(func() { d.student(withPassword) })
		all.Go(func() { d.student(ana("ielts")) })
	}
	all.Wait()
	for _, link := range mine {
		check.Equal(t, "the link", d.proof(link), student.Mailbox, "after the calls")
	}
	check.Equal(t, "the password", d.signIn(password+"north"), student.ByOrganization(d.who.Organization.ID), "after the calls")
	d.Exec(`UPDATE accounts SET last_login = NULL`)
	for range 4 {
		all.Go(func() { d.as(south, ana("toefl")) })
		all.Go(func() { d.student(withPassword) })
	}
	d.use(mine[1])
	all.Wait()
	check.Equal(t, "the person's own", d.signIn(password), student.Mailbox, "after the calls")
}
