package email

import (
	"fmt"
	"time"
)

// TypeSecurityNotice is the mail to staff about what was done to their account or their organization's keys.
const TypeSecurityNotice Type = "security_notice"

// Notice is what a SecurityNotice is about.
type Notice string

// The notices.
const (
	NoticeNewDevice       Notice = "new_device"       // a sign-in from a browser that was not known
	NoticePasswordChanged Notice = "password_changed" // of the account
	NoticeFactorAdded     Notice = "factor_added"     // Subject: what it is and its name
	NoticeFactorRemoved   Notice = "factor_removed"   // likewise
	NoticeCodesTried      Notice = "codes_tried"      // more wrong codes than are taken, after the password
	NoticeKeyCreated      Notice = "key_created"      // of Organization; Subject: the key's name
)

// SecurityNotice has no names of the person in it: the account may belong to several organizations.
type SecurityNotice struct {
	Notice       Notice    `json:"notice"`
	Site         string    `json:"site"`                   // its host
	Account      string    `json:"account"`                // the address that the account signs in with
	Organization string    `json:"organization,omitempty"` // the display name, of NoticeKeyCreated
	Subject      string    `json:"subject,omitempty"`
	By           string    `json:"by,omitempty"` // who did it, where that is not the addressee
	At           time.Time `json:"at"`
	Browser      string    `json:"browser,omitempty"` // in plain words
	From         string    `json:"from,omitempty"`    // the client's address, or its network
	URL          string    `json:"url"`               // where to look after it
}

// Type implements Content.
func (SecurityNotice) Type() Type { return TypeSecurityNotice }

func (n SecurityNotice) student() Student { return Student{Organization: n.Site} }

func (n SecurityNotice) view(zone *time.Location) view {
	v := view{Organization: n.Site, Initial: initial(n.Site), OfSite: true, Button: button{n.URL, "Look at your account"},
		Why: "You get this mail because you are on the staff of an institute at " + n.Site + "."}
	yours := "If it was you, there is nothing to do. If it was not, change your password at once, sign out everywhere else, and tell an owner of your institute."
	switch n.Notice {
	case NoticeNewDevice:
		v.Heading, v.Text = "A sign-in from a new browser", []string{"Somebody, probably you, signed in to the account " + n.Account + " from a browser that was not known.", yours}
	case NoticePasswordChanged:
		v.Heading, v.Text = "Your password was changed", []string{"The password of the account " + n.Account + " was changed.", yours}
	case NoticeFactorAdded:
		v.Heading, v.Text = "A way to sign in was added", []string{"The account " + n.Account + " has a new way to sign in, or to confirm that it is you.", yours}
	case NoticeFactorRemoved:
		v.Heading, v.Text = "A way to sign in was removed", []string{"The account " + n.Account + " lost a way to sign in, or to confirm that it is you.", yours}
	case NoticeCodesTried:
		v.Heading, v.Text = "Somebody tried codes", []string{"Somebody typed many wrong codes for the account " + n.Account + ", and knows its password. For some minutes no code is taken.",
			"If it was not you, change your password at once, and tell an owner of your institute."}
	case NoticeKeyCreated:
		v.Heading, v.Text = "An API key was created", []string{fmt.Sprintf("%s has a new API key.", n.Organization),
			"If nobody of you meant to create it, revoke it at once."}
		v.Button.Label = "Look at the keys"
	}
	v.Subject, v.Preheader = n.Site+": "+lowerFirst(v.Heading), n.Account
	for _, f := range []fact{{Label: "Institute", Value: n.Organization}, {Label: "What", Value: safeName(n.Subject)}, {Label: "By", Value: safeName(n.By)},
		{Label: "When", Value: moment(n.At, zone)}, {Label: "Browser", Value: n.Browser}, {Label: "From", Value: n.From}} {
		if f.Value != "" {
			v.Facts = append(v.Facts, f)
		}
	}
	return v
}
