// Package mail composes a message, hands it to a mail server over SMTP, and reports the
// result: taken, refused for now, refused for good, or unknown.
package mail

import (
	"bytes"
	"fmt"
	netmail "net/mail"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"
)

// Message is a mail to one person, in text and HTML.
type Message struct {
	From    netmail.Address
	To      netmail.Address
	Subject string
	Text    string
	HTML    string
	// ID is the Message-ID without its brackets. A message that is sent twice by accident has
	// the same, so that the receiving side can drop one.
	ID   string
	Date time.Time
	// Language is the code of the language that the message is in (RFC 3282); "" says nothing of it.
	Language string
	// Unsubscribe is an https address at which a POST ends mails like this one (RFC 8058); "" for none.
	Unsubscribe string
}

// compose writes the message in its wire format. No name or subject can begin a header line
// of its own, whatever it holds.
func compose(m Message) ([]byte, error) {
	msg := gomail.NewMsg(gomail.WithCharset(gomail.CharsetUTF8), gomail.WithEncoding(gomail.EncodingQP))
	msg.FromMailAddress(&netmail.Address{Name: OneLine(m.From.Name), Address: m.From.Address})
	msg.ToMailAddress(&netmail.Address{Name: OneLine(m.To.Name), Address: m.To.Address})
	msg.Subject(OneLine(m.Subject))
	msg.SetMessageIDWithValue(OneLine(m.ID))
	msg.SetDateWithValue(m.Date)
	msg.SetUserAgent("Registrar")
	// Out-of-office assistants must not answer.
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetGenHeader("X-Auto-Response-Suppress", "All")
	if m.Language != "" {
		msg.SetGenHeader(gomail.HeaderContentLang, OneLine(m.Language))
	}
	if m.Unsubscribe != "" {
		msg.SetGenHeader(gomail.HeaderListUnsubscribe, "<"+OneLine(m.Unsubscribe)+">")
		msg.SetGenHeader(gomail.HeaderListUnsubscribePost, "List-Unsubscribe=One-Click")
	}
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	msg.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	var out bytes.Buffer
	if _, err := msg.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("compose mail: %w", err)
	}
	return out.Bytes(), nil
}

// OneLine replaces every run of control characters and spaces by one space.
func OneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
	}), " ")
}

// ParseAddress reads "a@b.c" or "Name <a@b.c>".
func ParseAddress(s string) (netmail.Address, error) {
	a, err := netmail.ParseAddress(s)
	if err != nil {
		return netmail.Address{}, fmt.Errorf("%q is no mail address of the form name@domain or Name <name@domain>", s)
	}
	return *a, nil
}
