package provision

import (
	"context"
	"errors"
	"strings"

	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/pg"
)

// Mode is how a new account gets its password (reference: provisioning#password-modes).
type Mode string

// The modes. "" is ModeSet when a password was sent, else ModeLink.
const (
	ModeLink     Mode = "link"     // the student sets one by the link
	ModeSet      Mode = "set"      // the call brings it
	ModeGenerate Mode = "generate" // the platform draws it, and it must be changed
)

func (c Command) mode() Mode {
	switch {
	case c.Mode != "":
		return c.Mode
	case c.Password != "":
		return ModeSet
	}
	return ModeLink
}

// checkDetails finds the faults of the sign-in details that show without the account.
func (c Command) checkDetails(email student.Email, add func(error)) {
	switch {
	case c.mode() == ModeSet && c.Password == "":
		add(fault.Field("password", "missing", "password: required with password_mode set; send one, or use link or generate"))
	case c.mode() != ModeSet && c.Password != "":
		add(fault.Field("password", "password_with_other_mode",
			"password: it is sent with password_mode %s; leave it out or use password_mode set", c.mode()))
	case c.Password != "":
		add(student.CheckPassword(c.Password, email, c.Username, c.FirstName, c.LastName))
	}
	if c.Username != "" {
		username, err := student.ParseUsername(c.Username)
		if err == nil && email != "" {
			err = student.CheckUsername(username, email)
		}
		add(err)
	}
}

// sends says whether the call brings or asks for sign-in details.
func (c Command) sends() bool { return c.Username != "" || c.mode() != ModeLink }

// details are the sign-in details of a call. A password is hashed, or compared, before
// the transaction, because that takes tens of milliseconds.
type details struct {
	username string // in its canonical form; "" when not sent
	derived  bool   // it is the one that the account gets by itself: no answer says that it is taken
	password string // what the student signs in with after the call, where the call knows it; else ""
	hash     string // of password, to be stored; "" for no new password

	seen student.Account // what they were prepared for
}

// errStale means that the account has changed since the details were prepared for it.
var errStale = errors.New("the account has changed in the meantime")

// prepare reads the account, without a lock, and hashes the password if one will be needed.
func (o *Service) prepare(ctx context.Context, c *call) (d details, err error) {
	if !c.cmd.sends() {
		return d, nil
	}
	if c.cmd.Username != "" {
		if d.username, err = student.ParseUsername(c.cmd.Username); err != nil {
			return d, err
		}
		d.derived = student.DerivedFrom(d.username, c.address)
	}
	if c.cmd.mode() == ModeLink {
		return d, nil
	}
	var b pg.Batch
	student.Load(&b, c.who.Organization.ID, c.address, &d.seen)
	if err := b.Send(ctx, o.DB); err != nil {
		return d, err
	}
	var held bool
	if d.password, held, err = c.password(ctx, d.seen); err != nil || held || d.password == "" {
		return d, err
	}
	d.hash, err = student.HashPassword(ctx, d.password)
	return d, err
}

// password is what the account has after the call, "" where the call does not know it; held says that the
// account has it already. An account that exists gets no generated one.
func (c *call) password(ctx context.Context, seen student.Account) (password string, held bool, err error) {
	switch {
	case seen.ID == 0 && c.cmd.mode() == ModeGenerate:
		return student.GeneratePassword(), false, nil
	case seen.ID == 0:
		return c.cmd.Password, false, nil
	case c.cmd.mode() == ModeGenerate || !seen.Untouched(c.who.Organization.ID):
		return "", false, nil
	}
	held, err = seen.Owns(ctx, c.cmd.Password)
	return c.cmd.Password, held, err
}

// planDetails decides about the sign-in details, with the account locked.
func (c *call) planDetails() error {
	switch {
	case !c.cmd.sends():
		return nil
	case c.cmd.mode() != ModeLink && !c.account.SameSignIn(c.details.seen):
		return errStale
	case !c.created && !c.account.Untouched(c.who.Organization.ID):
		c.warnDetails()
		return nil
	}
	if err := c.checkName(); err != nil {
		return err
	}
	if c.details.derived && (c.created || c.nameTaken) {
		c.details.username = "" // a new account gets it, or a free one like it; others keep theirs
	}
	c.applied = !c.created &&
		(c.details.hash != "" || c.details.username != "" && c.details.username != c.account.Username)
	return nil
}

// checkName is the fault of a username that would be applied and is another account's.
func (c *call) checkName() error {
	if c.nameTaken && !c.details.derived && (c.account.ID == 0 || c.account.Untouched(c.who.Organization.ID)) {
		return student.ErrUsernameTaken
	}
	return nil
}

// warnDetails warns of ignored details: people who sign in already keep theirs. The text is the
// same for staff of other organizations and people who came from elsewhere.
func (c *call) warnDetails() {
	why := "the account signs in with its own details, or is not this organization's to sign in for"
	if c.cmd.Username != "" && !strings.EqualFold(c.details.username, c.account.Username) {
		c.warn("username: ignored; %s", why)
	}
	switch c.cmd.mode() {
	case ModeSet:
		c.warn("password: ignored; %s", why)
	case ModeGenerate:
		c.warn("password_mode: no password was generated; %s", why)
	case ModeLink:
	}
}

// writeDetails stores the sent details of an account that existed.
func (c *call) writeDetails(b *pg.Batch) {
	if !c.applied {
		return
	}
	if c.details.username != "" {
		c.account.Username = c.details.username
	}
	if c.details.hash != "" {
		c.account.MustChangePassword = false
	}
	student.SetSignIn(b, c.account, c.details.hash, c.now)
}

// seen is the account as the caller may know it.
func (c *call) seen() student.Account { return c.account.SeenBy(c.who.Organization.ID) }

// note says, for an account that existed, what was done with its sign-in details.
func (c *call) note() string {
	switch {
	case c.created:
		return ""
	case c.applied:
		return "The account existed before this call; the sent sign-in details replaced its old ones. The student can also set a password with set_password_url."
	case c.account.Untouched(c.who.Organization.ID):
		return "The account existed before this call; its sign-in details are unchanged. The student can set a password with set_password_url."
	case !c.seen().HasPassword():
		return "The account existed before this call, and has no password for your organization yet; the student sets one by the link in our mail, or asks for one on the sign-in page."
	}
	return "The account existed before this call; its sign-in details were left untouched. The student signs in as before."
}
