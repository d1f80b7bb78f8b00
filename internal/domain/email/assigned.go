package email

import (
	"fmt"
	"time"
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

func (a TestAssigned) view() view {
	v := view{FirstName: safeName(a.FirstName), Organization: a.Organization, Initial: initial(a.Organization),
		Subject: a.Organization + ": a test for you", Heading: "A test for you", Preheader: a.Title}
	v.Text = []string{fmt.Sprintf("%s has assigned you a test.", a.Organization)}
	v.Facts = []fact{{Label: "Test", Value: a.Title}, {Label: "Exam", Value: a.Exam}}
	if !a.Due.IsZero() {
		v.Text[0] += " Please begin it before it is due."
		v.Facts = append(v.Facts, fact{Label: "Due", Value: dueIn(a.Due, a.TimeZone)})
	}
	if a.SafeBrowser {
		v.Text = append(v.Text, browserAlone)
	}
	v.Button = button{a.LoginURL, "Sign in and begin"}
	return v
}

// browserAlone is said of tests of a student who needs the secure exam browser.
const browserAlone = "It opens only in the secure exam browser."

// dueIn is an instant in words, in the zone of that name.
func dueIn(at time.Time, name string) string {
	zone, err := time.LoadLocation(name)
	if err != nil {
		zone, name = time.UTC, "UTC"
	}
	return at.In(zone).Format("Monday, 2 January 2006, 15:04") + " (" + name + ")"
}
