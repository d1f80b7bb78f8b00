package email

import (
	"time"

	"github.com/registrar-dev/registrar/internal/kit/lang"
)

// TypeTestAssigned is the mail to a student who was assigned a test by the organization, and
// not by a plan, which has mails of its own.
const TypeTestAssigned Type = "test_assigned"

// TestAssigned tells a student of a test to be taken.
type TestAssigned struct {
	FirstName    string    `json:"first_name"`
	LastName     string    `json:"last_name,omitempty"`
	Organization string    `json:"organization"` // its display name
	Exam         string    `json:"exam"`         // the display name of the test's type
	Title        string    `json:"title"`
	Due          time.Time `json:"due,omitzero"` // zero: at any time
	TimeZone     string    `json:"time_zone"`    // in which Due is shown
	SafeBrowser  bool      `json:"safe_browser,omitempty"`
	LoginURL     string    `json:"login_url"`
}

// Type implements Content.
func (TestAssigned) Type() Type { return TypeTestAssigned }

func (a TestAssigned) student() Student {
	return Student{FirstName: a.FirstName, LastName: a.LastName, Organization: a.Organization}
}

func (a TestAssigned) view(t *lang.Texts) view {
	v := view{FirstName: safeName(a.FirstName), Organization: a.Organization, Initial: initial(a.Organization),
		Subject: t.T("mail.assigned.subject", "Organization", a.Organization), Heading: t.T("mail.assigned.heading"), Preheader: a.Title}
	v.Text = []string{t.T("mail.assigned.text", "Organization", a.Organization)}
	v.Facts = []fact{{Label: t.T("label.test"), Value: a.Title}, {Label: t.T("label.exam"), Value: a.Exam}}
	if !a.Due.IsZero() {
		v.Text[0] += " " + t.T("mail.in_time")
		v.Facts = append(v.Facts, fact{Label: t.T("label.due"), Value: dueIn(t, a.Due, a.TimeZone)})
	}
	if a.SafeBrowser {
		v.Text = append(v.Text, t.T("mail.secure_browser"))
	}
	v.Button = button{a.LoginURL, t.T("mail.begin")}
	return v
}

// dueIn is an instant in words, in the zone of that name.
func dueIn(t *lang.Texts, at time.Time, name string) string {
	zone, err := time.LoadLocation(name)
	if err != nil {
		zone = time.UTC
	}
	return t.Due(at, zone)
}
