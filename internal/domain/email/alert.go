package email

import (
	"fmt"
	"slices"
	"time"
)

// The mails to owners and admins about something that needs one of them. Each can do without any of them.
const (
	TypeURLSwitchedOff Type = "url_switched_off"
	TypeURLFailing     Type = "url_failing"
	TypeRosterHeld     Type = "roster_held"
)

// Alerts are the types of mails that owners and admins can do without.
func Alerts() []Type { return []Type{TypeURLSwitchedOff, TypeURLFailing, TypeRosterHeld} }

// Optional says whether its recipient may unsubscribe from mails of the type.
func (t Type) Optional() bool { return slices.Contains(Alerts(), t) }

// When says in words when a mail of an optional type is sent.
func (t Type) When() string {
	switch t {
	case TypeURLSwitchedOff:
		return "a webhook URL is switched off"
	case TypeURLFailing:
		return "a webhook URL has been failing for an hour"
	case TypeRosterHeld:
		return "a roster import waits for a decision"
	}
	return ""
}

// Alert tells an owner or admin of something that one of them has to mend.
type Alert struct {
	Of           Type      `json:"of"` // one of Alerts
	FirstName    string    `json:"first_name,omitempty"`
	LastName     string    `json:"last_name,omitempty"`
	Organization string    `json:"organization"` // its display name
	Since        time.Time `json:"since"`
	Page         string    `json:"page"` // of the console, where it is mended

	// Of a webhook URL.
	URL      string `json:"url,omitempty"`
	Cause    string `json:"cause,omitempty"`    // one or two sentences
	Failures int    `json:"failures,omitempty"` // in a row
	Waiting  int    `json:"waiting,omitempty"`  // deliveries; at MostWaiting it may be more

	// Of a roster import.
	Source  string   `json:"source,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

// MostWaiting is where Alert.Waiting stops counting.
const MostWaiting = 100_000

// Type implements Content.
func (a Alert) Type() Type { return a.Of }

func (a Alert) student() Student {
	return Student{FirstName: a.FirstName, LastName: a.LastName, Organization: a.Organization}
}

func (a Alert) view(zone *time.Location) view {
	v := view{FirstName: safeName(a.FirstName), Organization: a.Organization, Initial: initial(a.Organization), Preheader: a.URL, OfSite: true,
		Why: fmt.Sprintf("You get this mail because you are an owner or admin of %s.", a.Organization)}
	switch a.Of {
	case TypeURLSwitchedOff:
		v.Heading = "A webhook URL is switched off"
		v.Text = []string{"Nothing is sent to the URL until one of you turns it on again. " + a.Cause,
			"What it misses is kept meanwhile, and can be sent once the URL is on."}
		v.Facts = []fact{{Label: "URL", Value: a.URL}, {Label: "Since", Value: moment(a.Since, zone)}, {Label: "Waiting", Value: events(a.Waiting)}}
		v.Button = button{a.Page, "Look at the URL"}
	case TypeURLFailing:
		v.Heading = "A webhook URL is failing"
		v.Text = []string{"The URL has accepted no event for more than an hour. " + a.Cause,
			"Each event is tried again for about six hours. After 50 failures in a row the URL is switched off."}
		v.Facts = []fact{{Label: "URL", Value: a.URL}, {Label: "Since", Value: moment(a.Since, zone)},
			{Label: "Failures", Value: fmt.Sprintf("%d in a row", a.Failures)}, {Label: "Waiting", Value: events(a.Waiting)}}
		v.Button = button{a.Page, "Look at the URL"}
	case TypeRosterHeld:
		v.Heading, v.Preheader = "A roster import waits for you", a.Source
		v.Text = []string{"A roster was not imported, because it would change more than is plausible. Nothing has changed yet: look at it, and approve or discard it."}
		v.Facts = []fact{{Label: "Source", Value: a.Source}, {Label: "Since", Value: moment(a.Since, zone)}}
		for _, reason := range a.Reasons {
			v.Facts = append(v.Facts, fact{Label: "Why", Value: reason})
		}
		v.Button = button{a.Page, "Review the import"}
	}
	v.Subject = a.Organization + ": " + lowerFirst(v.Heading)
	return v
}

// events are so many in words.
func events(n int) string {
	switch {
	case n == 1:
		return "1 event"
	case n >= MostWaiting:
		return fmt.Sprintf("%d events or more", n)
	}
	return fmt.Sprintf("%d events", n)
}
