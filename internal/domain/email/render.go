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
	"github.com/registrar-dev/registrar/internal/kit/lang"
	"github.com/registrar-dev/registrar/internal/kit/mail"
)

// Text is a rendered mail.
type Text struct {
	Subject string
	Plain   string
	HTML    string

	Language string // its code
}

//go:embed templates/*.tmpl
var files embed.FS

type templates struct {
	html  *htmltemplate.Template
	plain *texttemplate.Template
}

// parsed holds the sets of each language, one a type with the layout of its own. Mails to staff are in English alone.
var parsed = func() map[string]map[Type]templates {
	all := map[string]map[Type]templates{}
	for _, t := range lang.All() {
		all[t.Code()] = parseIn(t)
	}
	return all
}()

func parseIn(t *lang.Texts) map[Type]templates {
	facts := parse("plan", t) // shared by the mails that differ in their words alone
	return map[Type]templates{
		TypeWelcome:      parse(TypeWelcome, t),
		TypeCredentials:  parse(TypeCredentials, t),
		TypeAccessUpdate: parse(TypeAccessUpdate, t),

		TypePasswordReset: parse(TypePasswordReset, t),

		TypeSecurityNotice: facts, TypeStaffInvitation: facts,

		TypeTestAssigned: facts,
		TypePlanNotice:   facts, TypePlanTestOpen: facts, TypePlanResult: facts,
		TypePlanSummary: facts, TypePlanAlert: facts, TypePlanUpdate: facts,

		TypeURLSwitchedOff: facts, TypeURLFailing: facts, TypeRosterHeld: facts,
	}
}

// ToStudents says whether mails of the type are in the student's own language.
func (t Type) ToStudents() bool {
	switch t {
	case TypeWelcome, TypeCredentials, TypeAccessUpdate, TypePasswordReset, TypeTestAssigned, TypePlanNotice, TypePlanTestOpen, TypePlanUpdate:
		return true
	}
	return false
}

func parse(of Type, t *lang.Texts) templates {
	functions := map[string]any{"button": newButton, "fact": newFact, "line": line, "t": t.T, "n": t.N, "th": t.H,
		"code": t.Code, "dir": t.Dir, "rtl": t.RightToLeft, "label": func(key string) string { return label(t.T(key)) },
		"bold": markup("bold"), "ink": markup("ink"), "page": markup("page"), "open": markup("open")}
	html, plain := "layout.html.tmpl", "layout.text.tmpl"
	return templates{
		html: htmltemplate.Must(htmltemplate.New(html).Funcs(functions).
			ParseFS(files, "templates/"+html, "templates/"+string(of)+".html.tmpl")),
		plain: texttemplate.Must(texttemplate.New(plain).Funcs(functions).
			ParseFS(files, "templates/"+plain, "templates/"+string(of)+".text.tmpl")),
	}
}

// marks are what may stand within a text: a value that matters, and links.
var marks = htmltemplate.Must(htmltemplate.New("marks").Parse(`{{define "bold"}}<strong style="color:#16202f; overflow-wrap:anywhere;">{{.}}</strong>{{end}}
{{define "ink"}}<strong class="ink" style="color:#16202f; overflow-wrap:anywhere;">{{.}}</strong>{{end}}
{{define "page"}}<a href="{{.}}" target="_blank" style="overflow-wrap:anywhere;">{{.}}</a>{{end}}
{{define "open"}}<a href="{{.}}" target="_blank">{{end}}`))

func markup(name string) func(string) (htmltemplate.HTML, error) {
	return func(value string) (htmltemplate.HTML, error) {
		var text strings.Builder
		err := marks.ExecuteTemplate(&text, name, value)
		return htmltemplate.HTML(text.String()), err //nolint:gosec // of a template
	}
}

// label stands before a value, under others of its kind.
func label(text string) string { return fmt.Sprintf("%-9s", text+":") }

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

// Render writes a mail as of now, with dates and times in zone. A mail to a student is in the language of t.
func Render(c Content, s Secrets, l Links, t *lang.Texts, now time.Time, zone *time.Location) (Text, error) {
	if !c.Type().ToStudents() {
		t = lang.Of(lang.English)
	}
	v, err := newView(c, s, t, now, zone)
	if err != nil {
		return Text{}, err
	}
	v.Password, v.SetPasswordURL = s.Password, s.SetPasswordURL
	v.Logo, v.Unsubscribe, v.When = l.Logo, l.Unsubscribe, c.Type().When()
	var html, plain strings.Builder
	set := parsed[t.Code()][c.Type()]
	if err := set.html.Execute(&html, v); err != nil {
		return Text{}, fmt.Errorf("render %s: %w", c.Type(), err)
	}
	if err := set.plain.Execute(&plain, v); err != nil {
		return Text{}, fmt.Errorf("render %s: %w", c.Type(), err)
	}
	return Text{Subject: v.Subject, Plain: plain.String(), HTML: html.String(), Language: t.Code()}, nil
}

func newView(c Content, s Secrets, t *lang.Texts, now time.Time, zone *time.Location) (view, error) {
	today := clock.DateIn(now, zone)
	switch c := c.(type) {
	case Welcome:
		v := c.view(t, today)
		v.LinkExpires = t.Moment(c.LinkExpires, zone)
		v.Heading, v.Subject = t.T("mail.welcome.heading", "Organization", v.Organization), t.T("mail.welcome.subject", "Organization", v.Organization)
		v.Preheader = t.T("mail.welcome.preheader")
		return v, nil
	case Credentials:
		v := c.view(t, today)
		v.MustChangePassword = c.MustChangePassword
		v.Heading, v.Subject = t.T("mail.credentials.heading"), t.T("mail.credentials.subject", "Organization", v.Organization)
		v.Preheader = t.T("mail.credentials.preheader")
		return v, nil
	case AccessUpdate:
		v := c.view(t, today)
		v.LinkExpires = t.Moment(c.LinkExpires, zone)
		v.Heading = t.T("mail.access.subject", "Organization", v.Organization)
		v.Subject = v.Heading
		v.Preheader = t.T("mail.access.sign_in")
		return v, nil
	case PasswordReset:
		v := c.view(t, today)
		v.LinkExpires, v.OfSite = t.Moment(c.LinkExpires, zone), c.OfSite
		v.Heading, v.Subject = t.T("mail.reset.heading"), t.T("mail.reset.subject", "Organization", v.Organization)
		v.Preheader = t.T("mail.reset.preheader")
		v.Why = t.T("mail.reset.why")
		return v, nil
	case StaffInvitation:
		return c.view(s, zone), nil
	case interface{ view(*lang.Texts) view }:
		return c.view(t), nil
	case interface{ view(*time.Location) view }:
		return c.view(zone), nil
	case interface{ view() view }:
		return c.view(), nil
	}
	return view{}, fmt.Errorf("there is no mail of type %q", c.Type())
}

func (s Student) view(t *lang.Texts, today clock.Date) view {
	v := view{FirstName: safeName(s.FirstName), Organization: s.Organization, Initial: initial(s.Organization), Username: s.Username, LoginURL: s.LoginURL}
	for _, c := range s.Courses {
		access := t.T("access.until", "End", t.Day(c.EndDate))
		if c.StartDate.After(today) {
			access = t.T("access.between", "Start", t.Day(c.StartDate), "End", t.Day(c.EndDate))
		}
		v.Courses = append(v.Courses, courseView{c.Name, access})
	}
	return v
}

func moment(t time.Time, zone *time.Location) string {
	return t.In(zone).Format("2 January 2006, 15:04 MST")
}

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
