package email_test

import (
	"mime"
	netmail "net/mail"
	"regexp"
	"strings"
	"testing"

	"github.com/registrar-dev/registrar/internal/domain/email"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/mail/mailtest"
)

// invisible removes what only parts the letters of a name.
var invisible = strings.NewReplacer("\u2060", "", "\u200b", "")

// Names are shown as they are, and nothing in them is a link: neither in the texts, nor in the raw
// headers, where they are encoded (RFC 2047).
// Reference: students#names.
func TestALinkInANameIsNoneInAMail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, link string }{ // link is what must stand nowhere in one piece
		{"Confirm at https://evil.test/x", "https://evil.test"},
		{"Confirm at evil.test now", "evil.test"},
		{"see www.evil.test", "www.evil"},
		{"write to help@evil.test", "help@evil"},
		{"Ana\nX-Evil: header", "\nX-Evil"},
		{"Ana\r\nBcc: spy@evil.test", "spy@evil"},
		{"Ana\u2028evil", "\u2028"},
		{strings.Repeat("a", 61), strings.Repeat("a", 61)},
		{strings.Repeat("a", 61) + " b", strings.Repeat("a", 61)},
		{"//evil/x", "//evil"},
		{"evil。test", "evil。test"},
		{"evil․test", "evil․test"}, // ONE DOT LEADER, which a mail program may read as a dot
		{"help＠evil test", "help＠evil"},
		{"x：／／evil", "：／／evil"},
		{"evil…test", "evil…test"},
	} {
		p := newPost(t, mailtest.Script{})
		who := email.Student{FirstName: c.name, Organization: "Saffron School", LoginURL: "https://saffron.school/sign-in/"}
		plan := email.Preparation{FirstName: c.name, Organization: "Saffron School"}
		for _, content := range []email.Content{email.Welcome{Student: who}, email.Credentials{Student: who}, email.AccessUpdate{Student: who},
			email.PasswordReset{Student: who}, email.TestAssigned{FirstName: c.name, Organization: "Saffron School"},
			email.PlanNotice{Preparation: plan}, email.PlanTestOpen{Preparation: plan, TimeZone: "UTC"}, email.PlanResult{Student: c.name},
			email.PlanAlert{Student: c.name, Reason: email.AlertAtRisk}, email.PlanAlert{Student: c.name, Reason: email.AlertUnfilled}} {
			text := render(t, content, email.Secrets{})
			for _, shown := range []string{text.Plain, text.HTML, text.Subject} {
				check.False(t, "the link in one piece", strings.Contains(shown, c.link), "%s of %q:\n%s", content.Type(), c.name, shown)
			}
			p.queue(email.Message{Organization: p.org, User: p.user, Recipient: "ada@saffron.school", Content: content})
			p.deliver()
			sent := p.server.Messages()
			raw, _, _ := strings.Cut(sent[len(sent)-1], "\r\n\r\n")
			checkHeaders(t, raw, c.name, c.link)
		}
	}
}

var headerLine = regexp.MustCompile(`(?m)^(To|Subject): (.*(?:\n[ \t].*)*)`)

func checkHeaders(t *testing.T, raw, name, link string) {
	t.Helper()
	for _, header := range headerLine.FindAllStringSubmatch(raw, -1) {
		value := strings.TrimSpace(strings.ReplaceAll(header[2], "\r\n", ""))
		check.False(t, "the link in a header", strings.Contains(value, link), "%q: %s", name, header[0])
		if header[1] == "To" && !strings.HasPrefix(value, "<") {
			check.True(t, "an encoded name", strings.HasPrefix(value, "=?utf-8?") || strings.HasPrefix(value, "=?UTF-8?"), "%q: %s", name, header[0])
			list, err := (&netmail.AddressParser{WordDecoder: new(mime.WordDecoder)}).ParseList(value)
			check.NoError(check.Now(t), err, "%s", header[0])
			check.Equal(t, "recipients", len(list), 1, "%s", header[0])
			check.Equal(t, "the name", invisible.Replace(list[0].Name), strings.Join(strings.Fields(name), " "), "%s", header[0])
		}
		decoded, err := new(mime.WordDecoder).DecodeHeader(value)
		check.NoError(t, err, "%s", header[0])
		check.False(t, "the link in a header as it is shown", strings.Contains(decoded, link), "%q: %s", name, decoded)
	}
}

// Usual names are shown untouched.
func TestUsualNamesAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Ana", "Ana Lopez", "Dr. Ana", "O'Neil-Smith", "李小龍", "Zoë", "Ana M.", strings.Repeat("a", 60)} {
		text := render(t, email.AccessUpdate{Student: email.Student{FirstName: name, Organization: "S"}}, email.Secrets{})
		check.True(t, "the greeting", strings.Contains(text.Plain, "Hello "+name+",\n"), "%q:\n%s", name, text.Plain)
	}
}
