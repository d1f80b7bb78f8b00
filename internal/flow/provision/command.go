package provision

import (
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/registrar-dev/registrar/internal/domain/course"
	"github.com/registrar-dev/registrar/internal/domain/org"
	"github.com/registrar-dev/registrar/internal/domain/plan"
	"github.com/registrar-dev/registrar/internal/domain/student"
	"github.com/registrar-dev/registrar/internal/kit/audit"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

// Command is one call of `POST /provision/student/` (reference: provisioning#request). Texts have no
// blanks around them; "", 0 and nil mean not sent.
type Command struct {
	Email        string
	FirstName    string
	LastName     string
	Courses      []string
	CourseIDs    []id.Course
	TenureMonths int
	ExternalRef  string
	Mode         Mode // password_mode; "": ModeSet with a password, else ModeLink
	Username     string
	Password     string
	SendEmail    *bool // send_welcome_email; nil: the organization's default
	ResendEmail  bool
	ExtendAccess bool
	Source       string
	Plan         *plan.Request // target_score_plan; nil: not sent

	// By is the person of the staff who gives the command, and Does what the audit log calls it. The zero Actor: an API
	// key gives it, which leaves no entry there.
	By   audit.Actor
	Does string

	Zone *time.Location // in which the answer's timestamps are written; nil: UTC

	// Decoding holds the faults found in the body before; they are reported with those
	// that are found here.
	Decoding fault.List
}

// maxRef is in characters (reference: limits#fields).
const maxRef = 255

// Allow is Forbidden for a principal who may not provision at all. It needs nothing of the body.
func Allow(who org.Principal) error {
	if !who.Key.May(org.ScopeProvision) {
		return fault.New(fault.Forbidden, "read_only_key", "this API key is read-only; provisioning needs a full-access key")
	}
	if !who.Organization.LanguageTestsEnabled {
		return fault.New(fault.Forbidden, "language_tests_disabled",
			"language tests are not enabled for this organization; ask the platform's administrator to enable them")
	}
	return nil
}

// check finds the faults that show without the database: they last (fault.Lasting).
func (c Command) check() (student.Email, *fault.List) {
	faults := c.Decoding
	// A field that did not decode reads as not sent: it is not reported twice.
	add := func(f error) {
		var e *fault.Error
		if errors.As(f, &e) && !faults.Has(e.Field) {
			_ = faults.Add(fault.Lasting(f))
		}
	}
	var email student.Email
	if c.Email == "" {
		add(fault.Field("email", "missing", "email: required; send the student's email address"))
	} else {
		var err error
		email, err = student.ParseEmail(c.Email)
		add(err)
	}
	if c.FirstName == "" && c.By.Kind == "" { // who is a student already may have none
		add(fault.Field("first_name", "missing", "first_name: required; send the student's first name"))
	}
	add(student.CheckName("first_name", c.FirstName))
	add(student.CheckName("last_name", c.LastName))
	add(checkText("external_ref", c.ExternalRef, maxRef))
	if c.TenureMonths < 0 || c.TenureMonths > course.MaxMonths {
		add(fault.Field("tenure_months", "out_of_range", "tenure_months: send a whole number from 1 to %d", course.MaxMonths))
	}
	if c.ExtendAccess && c.ExternalRef == "" {
		add(fault.Field("external_ref", "missing",
			"external_ref: required with extend_access; send your order or invoice number, so that a repeat does not extend twice"))
	}
	c.checkDetails(email, add)
	return email, &faults
}

func checkText(field, text string, maxChars int) error {
	if n := utf8.RuneCountInString(text); n > maxChars {
		return fault.Field(field, "too_long", "%s: %d characters are too many; send at most %d", field, n, maxChars)
	}
	if strings.IndexFunc(text, unicode.IsControl) >= 0 {
		return fault.Field(field, "invalid", "%s: contains control characters, such as a line break; remove them", field)
	}
	return nil
}

func (c Command) zone() *time.Location {
	if c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

func (c Command) request() course.Request {
	return course.Request{Types: c.Courses, Courses: c.CourseIDs, TenureMonths: c.TenureMonths,
		Extend: c.ExtendAccess, Ref: c.ExternalRef, Source: c.Source}
}
