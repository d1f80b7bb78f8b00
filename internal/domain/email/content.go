package email

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// Type names what a mail is about; email.type on the wire.
type Type string

// The onboarding mails.
const (
	TypeWelcome      Type = "welcome"       // set-password button
	TypeCredentials  Type = "credentials"   // username and password
	TypeAccessUpdate Type = "access_update" // to a student who signs in already
)

// onboards says whether an address gets a share of such mails alone.
func (t Type) onboards() bool {
	return t == TypeWelcome || t == TypeCredentials || t == TypeAccessUpdate
}

// TypePasswordReset is the mail to who asked for a new password.
const TypePasswordReset Type = "password_reset"

// Content is what one type's template needs, without what is secret.
type Content interface{ Type() Type }

// Student is what every onboarding mail speaks of.
type Student struct {
	FirstName    string   `json:"first_name"`
	LastName     string   `json:"last_name,omitempty"`
	Organization string   `json:"organization"` // its display name
	Username     string   `json:"username"`
	LoginURL     string   `json:"login_url"`
	Courses      []Course `json:"courses,omitempty"` // what the call granted, extended or renewed
}

func (s Student) student() Student { return s }

// Course is one course that the mail announces.
type Course struct {
	Name      string     `json:"name"`
	StartDate clock.Date `json:"start_date"` // shown when it is in the future
	EndDate   clock.Date `json:"end_date"`   // the last day of access
}

// Welcome needs Secrets.SetPasswordURL.
type Welcome struct {
	Student
	LinkExpires time.Time `json:"link_expires"`
}

// Credentials needs Secrets.Password and, as the other way in, may carry
// Secrets.SetPasswordURL.
type Credentials struct {
	Student
	MustChangePassword bool `json:"must_change_password"`
}

// AccessUpdate carries Secrets.SetPasswordURL for a student who has no password that opens what the
// organization shows.
type AccessUpdate struct {
	Student
	LinkExpires time.Time `json:"link_expires,omitzero"`
}

// PasswordReset needs Secrets.SetPasswordURL. Student.Organization is whom the mail comes
// from: the site, for who belongs to no organization or to several.
type PasswordReset struct {
	Student
	LinkExpires time.Time `json:"link_expires"`
	OfSite      bool      `json:"of_site,omitempty"`
}

// Type implements Content.
func (PasswordReset) Type() Type { return TypePasswordReset }

// Type implements Content.
func (Welcome) Type() Type { return TypeWelcome }

// Type implements Content.
func (Credentials) Type() Type { return TypeCredentials }

// Type implements Content.
func (AccessUpdate) Type() Type { return TypeAccessUpdate }

func decodeContent(t Type, params []byte) (Content, error) {
	switch t {
	case TypeWelcome:
		return decodeAs[Welcome](params)
	case TypeCredentials:
		return decodeAs[Credentials](params)
	case TypeAccessUpdate:
		return decodeAs[AccessUpdate](params)
	case TypePasswordReset:
		return decodeAs[PasswordReset](params)
	case TypeStaffInvitation:
		return decodeAs[StaffInvitation](params)
	case TypeSecurityNotice:
		return decodeAs[SecurityNotice](params)
	case TypeTestAssigned:
		return decodeAs[TestAssigned](params)
	case TypePlanNotice:
		return decodeAs[PlanNotice](params)
	case TypePlanTestOpen:
		return decodeAs[PlanTestOpen](params)
	case TypePlanUpdate:
		return decodeAs[PlanUpdate](params)
	case TypePlanResult, TypePlanSummary:
		return decodeAs[PlanResult](params)
	case TypePlanAlert:
		return decodeAs[PlanAlert](params)
	case TypeURLSwitchedOff, TypeURLFailing, TypeRosterHeld:
		return decodeAs[Alert](params)
	}
	return nil, fmt.Errorf("there is no mail of type %q", t)
}

func decodeAs[C Content](params []byte) (Content, error) {
	var c C
	err := json.Unmarshal(params, &c)
	return c, err
}

// Secrets are stored encrypted and removed once the mail's status is final. Neither
// printing nor logging nor encoding shows them.
type Secrets struct {
	Password       string
	SetPasswordURL string // carries the one-time token
}

// opened is Secrets in the form that is sealed.
type opened struct {
	Password       string `json:"password,omitempty"`
	SetPasswordURL string `json:"set_password_url,omitempty"`
}

func (s Secrets) open() opened { return opened(s) }

const redacted = "[secrets]"

// String hides them from fmt.
func (Secrets) String() string { return redacted }

// GoString hides them from fmt's %#v.
func (Secrets) GoString() string { return redacted }

// LogValue hides them from slog.
func (Secrets) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON refuses: secrets are only ever encoded to be sealed.
func (Secrets) MarshalJSON() ([]byte, error) {
	return nil, errors.New("email: secrets are not encoded in the clear")
}
