package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	netmail "net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/mail/mailtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t *testing.T, smtpURL string) *Server {
	t.Helper()
	s, err := ParseServer(smtpURL)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// moment is how long a test waits for a server that says nothing.
const moment = 300 * time.Millisecond

func message() Message {
	return Message{
		From:    netmail.Address{Name: "Saffron School", Address: "no-reply@saffron.school"},
		To:      netmail.Address{Name: "Ada Lovelace", Address: "ada@saffron.school"},
		Subject: "Welcome", Text: "Hello\n\n.\n.. dots\n", HTML: "<p>Hello</p>", ID: "1234@registrar", Date: time.Unix(1_800_000_000, 0).UTC(),
	}
}

// send returns the outcome and whether the message was handed over.
func send(t *testing.T, s *Server) (Outcome, bool) {
	t.Helper()
	handed := false
	got, err := s.Send(t.Context(), message(), func(context.Context) error { handed = true; return nil })
	if err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "there is a detail", got.Detail != "", got.Result != Accepted, "of %s: %q", got.Result, got.Detail)
	check.True(t, "the detail has at most 200 bytes", len(got.Detail) <= 200, "%d of %s: %q", len(got.Detail), got.Result, got.Detail)
	check.False(t, "the detail has line breaks", strings.ContainsAny(got.Detail, "\r\n"), "of %s: %q", got.Result, got.Detail)
	return got, handed
}

func refuse(code int) error { return mailtest.Refuse(code, "no such\tuser") }

func TestTheOutcomeSaysHowFarTheConversationGot(t *testing.T) {
	t.Parallel()
	hang := func(t *testing.T) chan struct{} {
		c := make(chan struct{})
		t.Cleanup(func() { close(c) })
		return c
	}
	for _, c := range []struct {
		name   string
		script func(t *testing.T) mailtest.Script
		result Result
		handed bool
		detail string
	}{
		{"all is taken", func(*testing.T) mailtest.Script { return mailtest.Script{} }, Accepted, true, ""},
		{"sender refused for now", func(*testing.T) mailtest.Script { return mailtest.Script{OnMail: func() error { return refuse(451) }} },
			Temporary, false, "answered 451"},
		{"sender refused for good", func(*testing.T) mailtest.Script { return mailtest.Script{OnMail: func() error { return refuse(550) }} },
			Permanent, false, "answered 550"},
		{"recipient refused for now", func(*testing.T) mailtest.Script {
			return mailtest.Script{OnRcpt: func(string) error { return refuse(450) }}
		},
			Temporary, false, "answered 450"},
		{"recipient refused for good", func(*testing.T) mailtest.Script {
			return mailtest.Script{OnRcpt: func(string) error { return refuse(550) }}
		},
			Permanent, false, "answered 550 5.1.1 no such user"},
		{"text refused for now", func(*testing.T) mailtest.Script {
			return mailtest.Script{OnData: func(string) error { return refuse(452) }}
		}, Temporary, true, "answered 452"},
		{"text refused for good", func(*testing.T) mailtest.Script {
			return mailtest.Script{OnData: func(string) error { return refuse(554) }}
		}, Permanent, true, "answered 554"},
		{"dropped after the text", func(*testing.T) mailtest.Script {
			return mailtest.Script{OnData: func(string) error { return mailtest.ErrDrop }}
		}, Uncertain, true, "may have been received"},
		{"silent after the text", func(t *testing.T) mailtest.Script {
			c := hang(t)
			return mailtest.Script{OnData: func(string) error { <-c; return nil }}
		}, Uncertain, true, "may have been received"},
		{"silent before the text", func(t *testing.T) mailtest.Script {
			c := hang(t)
			return mailtest.Script{OnRcpt: func(string) error { <-c; return nil }}
		}, Temporary, false, "did not answer in time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := mailtest.Start(t, c.script(t), mailtest.Options{})
			s := parse(t, server.URL())
			switch c.name {
			case "silent before the text":
				s.Times.Session = moment
			case "silent after the text":
				s.Times.Text = 5 * time.Second // in which the server first asks for it
			}
			got, handed := send(t, s)
			if check.Equal(t, "got.Result", got.Result, c.result, "%+v, handed over %v; want %s %v %q", got, handed, c.result, c.handed, c.detail) &&
				check.Equal(t, "handed", handed, c.handed, "%+v, handed over %v; want %s %v %q", got, handed, c.result, c.handed, c.detail) {
				check.Contains(t, "detail", got.Detail, c.detail, "%+v, handed over %v; want %s %v %q", got, handed, c.result, c.handed, c.detail)
			}
		})
	}
}

func TestAServerThatIsAwayOrDeafIsATemporaryFault(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	s := parse(t, "smtp://"+addr+"?tls=none")
	s.Times.Connect = moment
	// The kernel accepts, nobody greets.
	if got, handed := send(t, s); check.Equal(t, "got.Result", got.Result, Temporary, "deaf: %+v %v", got, handed) &&
		check.False(t, "handed", handed, "deaf: %+v %v", got, handed) {
		check.Contains(t, "detail", got.Detail, "in time", "deaf: %+v %v", got, handed)
	}
	if err := s.Ping(t.Context()); err == nil {
		t.Error("a deaf server answers the ping")
	}
	_ = l.Close()
	if got, handed := send(t, s); check.Equal(t, "got.Result", got.Result, Temporary, "away: %+v %v", got, handed) &&
		check.False(t, "handed", handed, "away: %+v %v", got, handed) {
		check.Lacks(t, "detail", got.Detail, "127.0.0.1", "away: %+v %v", got, handed)
	}
}

func TestTheContextEndsASending(t *testing.T) {
	t.Parallel()
	reached, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	server := mailtest.Start(t, mailtest.Script{OnRcpt: func(string) error { close(reached); <-release; return nil }}, mailtest.Options{})
	s := parse(t, server.URL())
	s.Times = Times{time.Hour, time.Hour, time.Hour}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	got, err := s.Send(ctx, message(), func(context.Context) error { return nil })
	check.NoError(check.Now(t), err, "%+v %v", got, err)
	check.Equal(check.Now(t), "got.Result", got.Result, Temporary, "%+v %v", got, err)
}

func TestAFailedHandOverSendsNothing(t *testing.T) {
	t.Parallel()
	server := mailtest.Start(t, mailtest.Script{OnData: func(string) error { t.Error("text arrived"); return nil }}, mailtest.Options{})
	lost := errors.New("lost")
	if got, err := parse(t, server.URL()).Send(t.Context(), message(), func(context.Context) error { return lost }); !errors.Is(err, lost) {
		t.Fatalf("%+v %v", got, err)
	}
}

func TestAddressesThatAreNoneAreRefusedForGood(t *testing.T) {
	t.Parallel()
	s := parse(t, "smtp://127.0.0.1:1?tls=none")
	for _, address := range []string{"", "ada", "a@b\r\nRCPT TO:<c@d>", "a b@c.d", "<a@b.c>", "a@b.c>", "Ada <a@b.c>"} {
		m := message()
		m.To.Address = address
		if got, err := s.Send(t.Context(), m, nil); check.NoError(t, err, "%q: %+v %v", address, got, err) {
			check.Equal(t, "got.Result", got.Result, Permanent, "%q: %+v %v", address, got, err)
		}
	}
}

func TestEncryptionAndSignIn(t *testing.T) {
	t.Parallel()
	// The HTTP test server's certificate is for 127.0.0.1 too.
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	config, trusted := &tls.Config{Certificates: web.TLS.Certificates}, x509.NewCertPool()
	trusted.AddCert(web.Certificate())
	starttls := mailtest.Start(t, mailtest.Script{}, mailtest.Options{StartTLS: config}).Addr
	plain := mailtest.Start(t, mailtest.Script{}, mailtest.Options{}).Addr
	insecure := mailtest.Start(t, mailtest.Script{}, mailtest.Options{InsecureAuth: true}).Addr
	implicit := mailtest.Start(t, mailtest.Script{}, mailtest.Options{ImplicitTLS: config}).Addr
	for _, c := range []struct {
		name, url string
		untrusted bool
		result    Result
		detail    string
	}{
		{"offered", "smtp://registrar:s3cret@" + starttls, false, Accepted, ""},
		{"required", "smtp://registrar:s3cret@" + starttls + "?tls=starttls", false, Accepted, ""},
		{"implicit", "smtps://registrar:s3cret@" + implicit, false, Accepted, ""},
		{"implicit by option", "smtp://" + implicit + "?tls=implicit", false, Accepted, ""},
		{"not offered", "smtp://" + plain, false, Accepted, ""},
		{"required, not offered", "smtp://" + plain + "?tls=starttls", false, Temporary, "STARTTLS is required"},
		{"unknown authority", "smtp://" + starttls, true, Temporary, "certificate was not accepted"},
		{"wrong password", "smtp://registrar:wrong@" + starttls, false, Temporary, "answered 535"},
		{"no sign-in offered", "smtp://registrar:s3cret@" + plain, false, Temporary, "no way to sign in"},
		{"trusted network", "smtp://registrar:s3cret@" + insecure + "?tls=none", false, Accepted, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parse(t, c.url)
			if !c.untrusted {
				s.tls.RootCAs = trusted
			}
			got, _ := send(t, s)
			check.Equal(t, "result", got.Result, c.result, "%+v", got)
			check.Contains(t, "detail", got.Detail, c.detail, "%+v", got)
			check.Lacks(t, "detail", got.Detail, "s3cret", "%+v", got)
			err := s.Ping(t.Context())
			if c.result == Accepted {
				check.NoError(t, err, "ping")
			}
		})
	}
}

// The chart's caBundle names authorities by SSL_CERT_DIR, which a process reads once: each case is a process.
func TestAnAuthorityOfTheEnvironmentIsTrusted(t *testing.T) {
	t.Parallel()
	const asked = "MAIL_TEST_SERVER"
	if server := os.Getenv(asked); server != "" {
		check.NoError(t, parse(t, server).Ping(t.Context()), "ping")
		return
	}
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	server := mailtest.Start(t, mailtest.Script{}, mailtest.Options{StartTLS: &tls.Config{Certificates: web.TLS.Certificates}}).Addr
	ping := func(authorities string) (string, error) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), asked+"=smtp://"+server+"?tls=starttls", "SSL_CERT_DIR="+authorities)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := ping(t.TempDir())
	check.True(t, "an unknown authority is refused", err != nil, "%s", out)
	check.Contains(t, "the refusal", out, "certificate was not accepted", "")
	known := t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	check.NoError(check.Now(t), os.WriteFile(filepath.Join(known, "ca.crt"), authority, 0o600), "")
	out, err = ping(known)
	check.NoError(t, err, "%s", out)
}

func TestParseServer(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"smtp://mail.school":                            "mail.school:587",
		"smtps://mail.school":                           "mail.school:465",
		"smtp://u:p@mail.school:2525?tls=none":          "mail.school:2525",
		"smtp://[::1]:25?tls=starttls":                  "[::1]:25",
		"http://mail.school":                            "",
		"smtp://":                                       "",
		"mail.school:25":                                "",
		"smtp://mail.school?tls=maybe":                  "",
		"smtp://user:hush%@mail.school":                 "",
		"smtp://user:hush@mail.school:notaport/?tls=no": "",
	} {
		s, err := ParseServer(in)
		if want == "" {
			if check.True(t, "there is an error", err != nil, "%s: %v, %v", in, s, err) {
				check.Lacks(t, "the error", err.Error(), "hush", "%s: %v, %v", in, s, err)
			}
			continue
		}
		if check.NoError(t, err, "%s: %v, %v; want %s", in, s, err, want) {
			check.Equal(t, "the server", s.String(), want, "%s: %v, %v; want %s", in, s, err, want)
		}
	}
}

func TestNamesCannotForgeHeaders(t *testing.T) {
	t.Parallel()
	const evil = "Ada\r\nBcc: spy@saffron.school\r\n\r\nbody \"quoted\" <x@y.z>, ; \u2028 \u0000 Ünï 李"
	m := message()
	m.From.Name, m.To.Name, m.Subject, m.ID = evil, evil, evil, "1\r\nBcc: spy@saffron.school"
	raw, err := compose(m)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := netmail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	for name := range parsed.Header {
		switch name {
		case "Date", "Mime-Version", "Message-Id", "Subject", "User-Agent", "X-Mailer", "Auto-Submitted",
			"X-Auto-Response-Suppress", "From", "To", "Content-Type":
		default:
			t.Errorf("header %s: %q", name, parsed.Header[name])
		}
	}
	for _, name := range []string{"From", "To"} {
		list, err := parsed.Header.AddressList(name)
		if check.NoError(t, err, "%s = %v, %v", name, list, err) &&
			check.Equal(t, "number of addresses", len(list), 1, "%s = %v, %v", name, list, err) &&
			check.True(t, "the address is of the school", strings.HasSuffix(list[0].Address, "@saffron.school"), "%s = %v, %v", name, list, err) {
			check.Contains(t, "the first address's name", list[0].Name, "Ünï 李", "%s = %v, %v", name, list, err)
		}
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
	if check.NoError(t, err, "subject = %q, %v", subject, err) {
		check.Equal(t, "subject", subject, OneLine(evil), "subject = %q, %v", subject, err)
	}
}

func TestAMessageCarriesBothTexts(t *testing.T) {
	t.Parallel()
	server := mailtest.Start(t, mailtest.Script{}, mailtest.Options{})
	if out, _ := send(t, parse(t, server.URL())); out.Result != Accepted {
		t.Fatal(out)
	}
	m, err := netmail.ReadMessage(strings.NewReader(server.Messages()[0]))
	if err != nil {
		t.Fatal(err)
	}
	if id := m.Header.Get("Message-Id"); id != "<1234@registrar>" {
		t.Errorf("Message-ID = %s", id)
	}
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for _, want := range []string{message().Text, message().HTML} {
		p, err := parts.NextRawPart()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(p))
		if text := strings.ReplaceAll(string(body), "\r\n", "\n"); check.NoError(t, err, "part = %q, %v; want %q", text, err, want) {
			check.Equal(t, "the text", strings.TrimSpace(text), strings.TrimSpace(want), "part = %q, %v; want %q", text, err, want)
		}
	}
}
