package email

import (
	"embed"
	"fmt"
	htmltemplate "html/template"
	"strings"
	texttemplate "text/template"
	"time"
	"unicode"

	"github.com/registrar-dev/registrar/internal/kit/clock"
	"github.com/registrar-dev/registrar/internal/kit/mail"
)

// Text is a rendered mail.
type Text struct {
	Subject string
	Plain   string
	HTML    string
}

//go:embed templates/*.tmpl
var files embed.FS

type templates struct {
	html  *htmltemplate.Template
	plain *texttemplate.Template
}

// parsed holds one set a type, each with the layout of its own.
var parsed = map[Type]templates{
	TypeWelcome:      parse(TypeWelcome),
	TypeCredentials:  parse(TypeCredentials),
	TypeAccessUpdate: parse(TypeAccessUpdate),

	TypePasswordReset: parse(TypePasswordReset),

	TypeSecurityNotice: planTemplates, TypeStaffInvitation: planTemplates,

	TypeTestAssigned: planTemplates,
	TypePlanNotice:   planTemplates, TypePlanTestOpen: planTemplates, TypePlanResult: planTemplates,
	TypePlanSummary: planTemplates, TypePlanAlert: planTemplates, TypePlanUpdate: planTemplates,

	TypeURLSwitchedOff: planTemplates, TypeURLFailing: planTemplates, TypeRosterHeld: planTemplates,
}

// planTemplates are shared by the mails of test plans, of single tests, of notices and of alerts, which differ in their words alone.
var planTemplates = parse("plan")

func parse(t Type) templates {
	functions := map[string]any{"button": newButton, "fact": newFact, "line": line}
	html, plain := "layout.html.tmpl", "layout.text.tmpl"
	return templates{
		html: htmltemplate.Must(htmltemplate.New(html).Funcs(functions).
			ParseFS(files, "templates/"+html, "templates/"+string(t)+".html.tmpl")),
		plain: texttemplate.Must(texttemplate.New(plain).Funcs(functions).
			ParseFS(files, "templates/"+plain, "templates/"+string(t)+".text.tmpl")),
	}
}

// view is what the templates see.
type view struct {
	Subject, Heading, Preheader      string
	Initial, FirstName, Organization string
	Logo                             string // an address; "": the initial stands for it
	Username, LoginURL               string
	Courses                          []courseView
	Password, SetPasswordURL         string
	LinkExpires                      string
	MustChangePassword               bool

	// Of the mails that are words and facts alone.
	Text   []string
	Facts  []fact
	Button button
	Why    string // why one gets the mail; "": because of one's access
	OfSite bool   // nobody is one's contact: Organization is the site, or one runs it oneself

	Unsubscribe string // an address; "": such mails cannot be ended
	When        string // what mails of the type are about
}

type courseView struct{ Name, Access string }

type button struct{ URL, Label string }

func newButton(url, label string) button { return button{url, label} }

type fact struct {
	Label, Value string
	Ruled        bool // a line above it
	Code         bool // to be typed exactly as it stands
}

func newFact(label, value string, ruled, code bool) fact { return fact{label, value, ruled, code} }

// Links are addresses that a mail has whatever it is about, "" for none.
type Links struct {
	Logo        string // the organization's
	Unsubscribe string // ends mails of the type
}

// Render writes a mail as of now, with dates and times in zone.
func Render(c Content, s Secrets, l Links, now time.Time, zone *time.Location) (Text, error) {
	v, err := newView(c, s, now, zone)
	if err != nil {
		return Text{}, err
	}
	v.Password, v.SetPasswordURL = s.Password, s.SetPasswordURL
	v.Logo, v.Unsubscribe, v.When = l.Logo, l.Unsubscribe, c.Type().When()
	var html, plain strings.Builder
	set := parsed[c.Type()]
	if err := set.html.Execute(&html, v); err != nil {
		return Text{}, fmt.Errorf("render %s: %w", c.Type(), err)
	}
	if err := set.plain.Execute(&plain, v); err != nil {
		return Text{}, fmt.Errorf("render %s: %w", c.Type(), err)
	}
	return Text{Subject: v.Subject, Plain: plain.String(), HTML: html.String()}, nil
}

func newView(c Content, s Secrets, now time.Time, zone *time.Location) (view, error) {
	today := clock.DateIn(now, zone)
	switch c := c.(type) {
	case Welcome:
		v := c.view(today)
		v.LinkExpires = moment(c.LinkExpires, zone)
		v.Heading, v.Subject = "Welcome to "+v.Organization, "Welcome to "+v.Organization+": set your password"
		v.Preheader = "Set your password to start."
		return v, nil
	case Credentials:
		v := c.view(today)
		v.MustChangePassword = c.MustChangePassword
		v.Heading, v.Subject = "Your sign-in details", "Your sign-in details for "+v.Organization
		v.Preheader = "Your username and password."
		return v, nil
	case AccessUpdate:
		v := c.view(today)
		v.LinkExpires = moment(c.LinkExpires, zone)
		v.Heading, v.Subject = "Your access to "+v.Organization, "Your access to "+v.Organization
		v.Preheader = "Sign in with the account that you have."
		return v, nil
	case PasswordReset:
		v := c.view(today)
		v.LinkExpires, v.OfSite = moment(c.LinkExpires, zone), c.OfSite
		v.Heading, v.Subject = "Set a new password", v.Organization+": set a new password"
		v.Preheader = "The link that was asked for."
		v.Why = "You get this mail because somebody asked for a new password with this address."
		return v, nil
	case StaffInvitation:
		return c.view(s, zone), nil
	case interface{ view(*time.Location) view }:
		return c.view(zone), nil
	case interface{ view() view }:
		return c.view(), nil
	}
	return view{}, fmt.Errorf("there is no mail of type %q", c.Type())
}

func (s Student) view(today clock.Date) view {
	v := view{FirstName: safeName(s.FirstName), Organization: s.Organization, Initial: initial(s.Organization), Username: s.Username, LoginURL: s.LoginURL}
	for _, c := range s.Courses {
		access := "Access until " + day(c.EndDate)
		if c.StartDate.After(today) {
			access = "Access from " + day(c.StartDate) + " until " + day(c.EndDate)
		}
		v.Courses = append(v.Courses, courseView{c.Name, access})
	}
	return v
}

func moment(t time.Time, zone *time.Location) string {
	return t.In(zone).Format("2 January 2006, 15:04 MST")
}

func day(d clock.Date) string { return d.Time().Format("2 January 2006") }

// initial is the first letter or digit of a name.
func initial(name string) string {
	for _, r := range name {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return string(unicode.ToUpper(r))
		}
	}
	return ""
}

// lowerFirst is a heading as it goes on behind a colon.
func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// line keeps a value from breaking the lines of a plain text.
func line(s string) string {
	return mail.OneLine(strings.ToValidUTF8(s, "\uFFFD"))
}
