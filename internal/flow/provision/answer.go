package provision

import (
	"context"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/flow/wire"
	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Answer is the response (reference: provisioning#response).
type Answer struct {
	Status             string           `json:"status"` // success or already_provisioned
	UserID             id.User          `json:"user_id"`
	CreatedUser        bool             `json:"created_user"` // 201, else 200
	Organization       Organization     `json:"organization"`
	Membership         Membership       `json:"membership"`
	Enrollments        []Entry          `json:"enrollments"`
	Warnings           []string         `json:"warnings"`
	Credentials        Credentials      `json:"credentials"`
	LoginURL           string           `json:"login_url"`
	SetPasswordURL     *string          `json:"set_password_url"`
	SetPasswordExpires *clock.Timestamp `json:"set_password_expires_at"`
	WelcomeEmailSent   bool             `json:"welcome_email_sent"`
	Email              Mail             `json:"email"`
	TargetScorePlan    *wire.PlanAnswer `json:"target_score_plan,omitempty"`
}

// Organization names the key's organization.
type Organization struct {
	Name string `json:"name"`
	Slug string `json:"slug"`
}

// Membership is the student's, and what the call did to it.
type Membership struct {
	wire.Membership
	Created     bool `json:"created"`
	Reactivated bool `json:"reactivated"`
}

// Entry is one course of the call.
type Entry struct {
	wire.Enrollment
	Action               course.Action `json:"action"`
	AlreadyEnrolled      bool          `json:"already_enrolled"`
	StarterTestsAssigned *int          `json:"starter_tests_assigned"` // null when nothing was granted
	SkippedReason        course.State  `json:"skipped_reason,omitempty"`
	Note                 string        `json:"note,omitempty"`
}

// Credentials are what the student signs in with. Password is filled only when this call
// generated it.
type Credentials struct {
	Username           string  `json:"username"`
	Password           *string `json:"password"`
	MustChangePassword bool    `json:"must_change_password"`
	Note               string  `json:"note,omitempty"` // when the account existed
}

// Mail is the block `email` (reference: provisioning#email-status). All of its keys are always there.
type Mail struct {
	Status MailStatus  `json:"status"`
	Type   *email.Type `json:"type"`   // null when none was made
	Detail *string     `json:"detail"` // a short reason for queued, uncertain, suppressed and failed; else null

	record id.Email // the mail that is shown; 0 for none
}

func newMail(r email.Record) Mail {
	m := Mail{Status: MailStatus(r.Status), Type: &r.Type, record: r.ID}
	if r.Detail != "" {
		m.Detail = &r.Detail
	}
	return m
}

// AwaitMail waits until a queued mail is sent or has failed, for the limit at most, and shows its
// status in the answer.
func (o *Service) AwaitMail(ctx context.Context, who org.Principal, a *Answer, limit time.Duration) error {
	if a.Email.Status != MailStatus(email.Queued) {
		return nil
	}
	r, err := o.Watch.Final(ctx, who.Organization.ID, a.Email.record, limit)
	if err == nil && r.ID != 0 {
		a.showMail(newMail(r))
	}
	return err
}

func (a *Answer) showMail(m Mail) {
	a.Email = m
	a.WelcomeEmailSent = m.Status == MailStatus(email.Sent) || m.Status == MailStatus(email.Queued)
}

// MailStatus is one of email.Status or of the two for mails that were never made.
type MailStatus string

// The statuses of mails that were never made.
const (
	MailNotRequested MailStatus = "not_requested"
	MailNotNeeded    MailStatus = "not_needed"
)

// answer shows the finished call.
func (c *call) answer() Answer {
	a := Answer{
		Status: "already_provisioned", UserID: c.account.ID, CreatedUser: c.created,
		Organization: Organization{c.who.Organization.Name, c.who.Organization.Slug},
		Membership: Membership{Membership: wire.Membership{Role: c.member.Role, Status: c.member.Status},
			Created: c.joined == memberCreated, Reactivated: c.joined == memberReactivated},
		Enrollments: c.entries(),
		Warnings:    append([]string{}, c.warnings...),
		Credentials: c.credentials(),
		LoginURL:    c.PublicURL + "/sign-in/",
	}
	if c.block != nil {
		block := *c.block
		block.PlanBlock = block.In(c.cmd.zone())
		a.TargetScorePlan = &block
	}
	a.showMail(c.mail())
	if c.changed() || c.block.Changed() {
		a.Status = "success"
	}
	if c.link.Token != "" {
		url := c.urlOf(c.link)
		a.SetPasswordURL, a.SetPasswordExpires = &url, clock.Stamp(c.link.ExpiresAt, c.cmd.zone())
	}
	return a
}

func (c *call) credentials() Credentials {
	shown := Credentials{Username: c.account.Username, MustChangePassword: c.seen().MustChangePassword, Note: c.note()}
	if c.created && c.cmd.mode() == ModeGenerate {
		shown.Password = &c.details.password
	}
	return shown
}

func (c *call) entries() []Entry {
	entries := make([]Entry, len(c.moves))
	for i, m := range c.moves {
		entries[i] = Entry{Enrollment: wire.NewEnrollment(m.After, c.today), Action: m.Action, AlreadyEnrolled: !m.Granted(), Note: m.Note}
		if m.Granted() {
			entries[i].StarterTestsAssigned = &c.starters[i]
		}
		if m.Action == course.Skipped {
			entries[i].SkippedReason = course.Suspended
		}
	}
	return entries
}

func (o *Service) urlOf(link student.Link) string { return o.PublicURL + "/set-password/" + link.Token }
