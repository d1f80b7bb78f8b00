package email

import (
	"fmt"
	"time"
)

// TypeStaffInvitation is the mail to somebody who was made staff.
const TypeStaffInvitation Type = "staff_invitation"

// StaffInvitation carries Secrets.SetPasswordURL for who has no password that opens the console.
type StaffInvitation struct {
	FirstName    string    `json:"first_name"`
	LastName     string    `json:"last_name,omitempty"`
	Organization string    `json:"organization"` // its display name
	Role         string    `json:"role"`
	By           string    `json:"by"`
	LoginURL     string    `json:"login_url"`
	LinkExpires  time.Time `json:"link_expires,omitzero"`
}

// Type implements Content.
func (StaffInvitation) Type() Type { return TypeStaffInvitation }

func (i StaffInvitation) student() Student {
	return Student{FirstName: i.FirstName, LastName: i.LastName, Organization: i.Organization}
}

func (i StaffInvitation) view(s Secrets, zone *time.Location) view {
	v := view{FirstName: safeName(i.FirstName), Organization: i.Organization, Initial: initial(i.Organization),
		Subject: i.Organization + ": you are on the staff", Heading: "You are on the staff of " + i.Organization, Preheader: "Sign in to the console.",
		Button: button{i.LoginURL, "Open the console"}, Why: fmt.Sprintf("You get this mail because %s made you part of its staff.", i.Organization)}
	v.Text = []string{fmt.Sprintf("%s has made you part of its staff. In the console you look after what is yours to look after.", i.Organization)}
	v.Facts = []fact{{Label: "Role", Value: i.Role}, {Label: "Invited by", Value: safeName(i.By)}}
	if s.SetPasswordURL != "" {
		v.Text = append(v.Text, "The button leads to a page where you choose a password. It works once, until "+moment(i.LinkExpires, zone)+". It is yours alone: please do not forward this mail.")
		v.Button = button{s.SetPasswordURL, "Choose a password"}
	} else {
		v.Text = append(v.Text, "Sign in with the account that you have.")
	}
	return v
}
