package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"go.uber.org/goleak"

	"github.com/registrar-dev/registrar/hack/stack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is what a test's server does at each step; nil steps agree.
type script struct {
	onMail func() error
	onRcpt func(to string) error
	onData func(conn *smtp.Conn, data []byte) error
}

type backend struct {
	script
	conn *smtp.Conn
	auth bool
}

func (b *backend) Reset()        {}
func (b *backend) Logout() error { return nil }

func (b *backend) Mail(string, *smtp.MailOptions) error {
	if b.onMail != nil {
		return b.onMail()
	}
	return nil
}

func (b *backend) Rcpt(to string, _ *smtp.RcptOptions) error {
	if b.onRcpt != nil {
		return b.onRcpt(to)
	}
	return nil
}

func (b *backend) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if b.onData != nil {
		return b.onData(b.conn, data)
	}
	return nil
}

func (b *backend) AuthMechanisms() []string { return []string{sasl.Plain} }

func (b *backend) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "registrar" || password != "s3cret" {
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "wrong password"}
		}
		return nil
	}), nil
}

// start runs a server and gives its host:port.
func start(t *testing.T, s script, configure func(*smtp.Server)) string {
	t.Helper()
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &backend{script: s, conn: c}, nil
	}))
	server.Domain, server.ErrorLog = "localhost", log.New(io.Discard, "", 0)
	if configure != nil {
		configure(server)
	}
	l := listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return l.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func parse(t *testing.T, smtpURL string) *Server {
	t.Helper()
	s, err := ParseServer(smtpURL)
	if err != nil {
		t.Fatal(err)
	}
	s.Times = Times{Connect: 300 * time.Millisecond, Session: 300 * time.Millisecond, Text: 300 * time.Millisecond}
	return s
}

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
	if (got.Result == Accepted) != (got.Detail == "") || len(got.Detail) > 200 || strings.ContainsAny(got.Detail, "\r\n") {
		t.Errorf("detail of %s = %q", got.Result, got.Detail)
	}
	return got, handed
}

func refuse(code int) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 1, 1}, Message: "no such\tuser"}
}

func TestTheOutcomeSaysHowFarTheConversationGot(t *testing.T) {
	t.Parallel()
	hang := func(t *testing.T) chan struct{} {
		c := make(chan struct{})
		t.Cleanup(func() { close(c) })
		return c
	}
	for _, c := range []struct {
		name   string
		script func(t *testing.T) script
		result Result
		handed bool
		detail string
	}{
		{"all is taken", func(*testing.T) script { return script{} }, Accepted, true, ""},
		{"sender refused for now", func(*testing.T) script { return script{onMail: func() error { return refuse(451) }} },
			Temporary, false, "answered 451"},
		{"sender refused for good", func(*testing.T) script { return script{onMail: func() error { return refuse(550) }} },
			Permanent, false, "answered 550"},
		{"recipient refused for now", func(*testing.T) script { return script{onRcpt: func(string) error { return refuse(450) }} },
			Temporary, false, "answered 450"},
		{"recipient refused for good", func(*testing.T) script { return script{onRcpt: func(string) error { return refuse(550) }} },
			Permanent, false, "answered 550 5.1.1 no such user"},
		{"text refused for now", func(*testing.T) script {
			return script{onData: func(*smtp.Conn, []byte) error { return refuse(452) }}
		}, Temporary, true, "answered 452"},
		{"text refused for good", func(*testing.T) script {
			return script{onData: func(*smtp.Conn, []byte) error { return refuse(554) }}
		}, Permanent, true, "answered 554"},
		{"dropped after the text", func(*testing.T) script {
			return script{onData: func(c *smtp.Conn, _ []byte) error { return c.Conn().Close() }}
		}, Uncertain, true, "may have been received"},
		{"silent after the text", func(t *testing.T) script {
			c := hang(t)
			return script{onData: func(*smtp.Conn, []byte) error { <-c; return nil }}
		}, Uncertain, true, "may have been received"},
		{"silent before the text", func(t *testing.T) script {
			c := hang(t)
			return script{onRcpt: func(string) error { <-c; return nil }}
		}, Temporary, false, "did not answer in time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			addr := start(t, c.script(t), nil)
			got, handed := send(t, parse(t, "smtp://"+addr+"?tls=none"))
			if got.Result != c.result || handed != c.handed || !strings.Contains(got.Detail, c.detail) {
				t.Errorf("%+v, handed over %v; want %s %v %q", got, handed, c.result, c.handed, c.detail)
			}
		})
	}
}

func TestAServerThatIsAwayOrDeafIsATemporaryFault(t *testing.T) {
	t.Parallel()
	l := listen(t)
	addr := l.Addr().String()
	s := parse(t, "smtp://"+addr+"?tls=none")
	// The kernel accepts, nobody greets.
	if got, handed := send(t, s); got.Result != Temporary || handed || !strings.Contains(got.Detail, "in time") {
		t.Errorf("deaf: %+v %v", got, handed)
	}
	if err := s.Ping(t.Context()); err == nil {
		t.Error("a deaf server answers the ping")
	}
	_ = l.Close()
	if got, handed := send(t, s); got.Result != Temporary || handed || strings.Contains(got.Detail, "127.0.0.1") {
		t.Errorf("away: %+v %v", got, handed)
	}
}

func TestTheContextEndsASending(t *testing.T) {
	t.Parallel()
	reached, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	addr := start(t, script{onRcpt: func(string) error { close(reached); <-release; return nil }}, nil)
	s := parse(t, "smtp://"+addr+"?tls=none")
	s.Times = Times{time.Hour, time.Hour, time.Hour}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-reached; cancel() }()
	got, err := s.Send(ctx, message(), func(context.Context) error { return nil })
	if err != nil || got.Result != Temporary {
		t.Fatalf("%+v %v", got, err)
	}
}

func TestAFailedHandOverSendsNothing(t *testing.T) {
	t.Parallel()
	addr := start(t, script{onData: func(*smtp.Conn, []byte) error { t.Error("text arrived"); return nil }}, nil)
	lost := errors.New("lost")
	if got, err := parse(t, "smtp://"+addr+"?tls=none").Send(t.Context(), message(), func(context.Context) error { return lost }); !errors.Is(err, lost) {
		t.Fatalf("%+v %v", got, err)
	}
}

func TestAddressesThatAreNoneAreRefusedForGood(t *testing.T) {
	t.Parallel()
	s := parse(t, "smtp://127.0.0.1:1?tls=none")
	for _, address := range []string{"", "ada", "a@b\r\nRCPT TO:<c@d>", "a b@c.d", "<a@b.c>", "a@b.c>", "Ada <a@b.c>"} {
		m := message()
		m.To.Address = address
		if got, err := s.Send(t.Context(), m, nil); err != nil || got.Result != Permanent {
			t.Errorf("%q: %+v %v", address, got, err)
		}
	}
}

func TestEncryptionAndSignIn(t *testing.T) {
	t.Parallel()
	certs, err := stack.LoadCerts(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	withTLS := func(s *smtp.Server) { s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certs.Leaf}} }
	starttls := start(t, script{}, withTLS)
	plain := start(t, script{}, nil)
	insecure := start(t, script{}, func(s *smtp.Server) { s.AllowInsecureAuth = true })
	implicit := startImplicit(t, certs.Leaf)
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
			s.Times = DefaultTimes()
			if !c.untrusted {
				s.tls.RootCAs = certs.CA
			}
			got, _ := send(t, s)
			if got.Result != c.result || !strings.Contains(got.Detail, c.detail) || strings.Contains(got.Detail, "s3cret") {
				t.Errorf("%+v", got)
			}
			if err := s.Ping(t.Context()); err != nil && c.result == Accepted {
				t.Errorf("ping: %v", err)
			}
		})
	}
}

func startImplicit(t *testing.T, leaf tls.Certificate) string {
	t.Helper()
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &backend{conn: c}, nil }))
	server.Domain, server.ErrorLog = "localhost", log.New(io.Discard, "", 0)
	l := listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{leaf}}))
	}()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return l.Addr().String()
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
			if err == nil || strings.Contains(err.Error(), "hush") {
				t.Errorf("%s: %v, %v", in, s, err)
			}
			continue
		}
		if err != nil || s.String() != want {
			t.Errorf("%s: %v, %v; want %s", in, s, err, want)
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
		if err != nil || len(list) != 1 || !strings.HasSuffix(list[0].Address, "@saffron.school") || !strings.Contains(list[0].Name, "Ünï 李") {
			t.Errorf("%s = %v, %v", name, list, err)
		}
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
	if err != nil || subject != oneLine(evil) {
		t.Errorf("subject = %q, %v", subject, err)
	}
}

func TestAMessageCarriesBothTexts(t *testing.T) {
	t.Parallel()
	var got []byte
	addr := start(t, script{onData: func(_ *smtp.Conn, data []byte) error { got = data; return nil }}, nil)
	if out, _ := send(t, parse(t, "smtp://"+addr+"?tls=none")); out.Result != Accepted {
		t.Fatal(out)
	}
	m, err := netmail.ReadMessage(bytes.NewReader(got))
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
		if text := strings.ReplaceAll(string(body), "\r\n", "\n"); err != nil || strings.TrimSpace(text) != strings.TrimSpace(want) {
			t.Errorf("part = %q, %v; want %q", text, err, want)
		}
	}
}
