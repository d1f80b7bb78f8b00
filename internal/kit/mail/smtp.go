package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"time"
)

// Result is what became of a message.
type Result string

// The results.
const (
	Accepted  Result = "accepted"  // the server took it
	Temporary Result = "temporary" // certainly not taken; a later try may do better
	Permanent Result = "permanent" // certainly not taken, and it will not be
	Uncertain Result = "uncertain" // the connection broke between the text's end and the answer
)

// Outcome is a result with its reason in plain words: one line of 200 characters at most,
// that may be shown to the organization.
type Outcome struct {
	Result Result
	Detail string
}

// Times bound one sending.
type Times struct {
	Connect time.Duration // to the server's greeting and through its TLS
	Session time.Duration // up to the moment before the text
	Text    time.Duration // the text and the answer to it
}

// Total is the longest that Send can take.
func (t Times) Total() time.Duration { return t.Connect + t.Session + t.Text }

// defaultTimes leave room for a server that looks the sender up before it answers.
func defaultTimes() Times {
	return Times{Connect: 10 * time.Second, Session: 20 * time.Second, Text: 40 * time.Second}
}

type security string

// How the connection is encrypted.
const (
	securityOffered  security = ""         // STARTTLS when the server offers it
	securityNone     security = "none"     // never
	securityStartTLS security = "starttls" // STARTTLS or nothing
	securityImplicit security = "implicit" // TLS from the first byte
)

// Server is a mail server to send through. It holds no connection and is safe for
// concurrent use.
type Server struct {
	Times Times

	host, address  string
	user, password string
	security       security
	tls            *tls.Config
	helo           string
}

// ParseServer reads an SMTP_URL: smtp://user:password@host:port (port 587 unless given;
// ?tls=none, starttls or implicit) or smtps:// (port 465). Its errors never show the
// password.
func ParseServer(smtpURL string) (*Server, error) {
	u, err := url.Parse(smtpURL)
	if err != nil {
		return nil, errors.New("SMTP_URL is no URL; percent-encode special characters of the user name and password")
	}
	s := &Server{Times: defaultTimes(), host: u.Hostname(), user: u.User.Username(), helo: heloName(),
		security: security(u.Query().Get("tls"))}
	s.password, _ = u.User.Password()
	s.tls = &tls.Config{ServerName: s.host, MinVersion: tls.VersionTLS12}
	port := "587"
	switch {
	case u.Scheme == "smtps" && s.security == "":
		s.security, port = securityImplicit, "465"
	case u.Scheme == "smtps" && s.security == securityImplicit:
		port = "465"
	case u.Scheme != "smtp":
		return nil, fmt.Errorf("SMTP_URL: the scheme is smtp:// or smtps://, not %q", u.Scheme)
	}
	switch s.security {
	case securityOffered, securityNone, securityStartTLS, securityImplicit:
	default:
		return nil, fmt.Errorf("SMTP_URL: tls is none, starttls or implicit, not %q", s.security)
	}
	if s.host == "" {
		return nil, errors.New("SMTP_URL: the host is missing")
	}
	if u.Port() != "" {
		port = u.Port()
	}
	s.address = net.JoinHostPort(s.host, port)
	return s, nil
}

// String is the address without the password.
func (s *Server) String() string { return s.address }

func heloName() string {
	name, err := os.Hostname()
	if err != nil || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "localhost"
	}
	return name
}

// Ping asks for the server's greeting.
func (s *Server) Ping(ctx context.Context) error {
	c, err := s.connect(ctx)
	if err != nil {
		return errors.New(s.describe(err))
	}
	defer func() { _ = c.close() }()
	return c.Quit()
}

// Send hands the message over. It calls handOver when the server has accepted sender and
// recipient, just before it sends the text: from then on the server may have taken the message
// although Send cannot know it. When handOver fails, Send stops and returns its error;
// otherwise its error is nil and the outcome says everything.
//
// A refusal before the server knows the recipient is temporary whatever its code: a wrong
// password is our mistake and no reason to give up a student's mail.
func (s *Server) Send(ctx context.Context, m Message, handOver func(context.Context) error) (Outcome, error) {
	if !valid(m.To.Address) {
		return Outcome{Permanent, "the address is not one that mail can be sent to"}, nil
	}
	text, err := compose(m)
	if err != nil {
		return Outcome{}, err
	}
	c, err := s.connect(ctx)
	if err != nil {
		return Outcome{Temporary, s.describe(err)}, nil
	}
	defer func() { _ = c.close() }()
	c.extend(s.Times.Session)
	if err := s.signIn(c); err != nil {
		return Outcome{Temporary, s.describe(err)}, nil
	}
	c.SkipSMTPUTF8(ascii(m.From.Address) && ascii(m.To.Address))
	if err := c.Mail("<" + m.From.Address + ">"); err != nil {
		return s.refused(err), nil
	}
	if err := c.Rcpt("<" + m.To.Address + ">"); err != nil {
		return s.refused(err), nil
	}
	if err := handOver(ctx); err != nil {
		return Outcome{}, err
	}
	c.extend(s.Times.Text)
	return s.sendText(c, text), nil
}

func (s *Server) sendText(c *connection, text []byte) Outcome {
	w, err := c.Data()
	if err != nil {
		return s.refused(err)
	}
	if _, err := w.Write(text); err != nil {
		// The end mark was not written, so the server has no whole message to take.
		return Outcome{Temporary, s.describe(err)}
	}
	err = w.Close()
	var answer *textproto.Error
	switch {
	case err == nil:
		c.extend(time.Second)
		_ = c.Quit() // the message is the server's whatever this says
		return Outcome{Result: Accepted}
	case errors.As(err, &answer):
		return s.refused(err)
	}
	return Outcome{Uncertain, "the connection broke before the mail server confirmed the message; it may have been received"}
}

// refused reads a refusal: 5xx is for good, 4xx and a lost connection for now.
func (s *Server) refused(err error) Outcome {
	var answer *textproto.Error
	if errors.As(err, &answer) && answer.Code >= 500 {
		return Outcome{Permanent, s.describe(err)}
	}
	return Outcome{Temporary, s.describe(err)}
}

// describe names the cause without addresses of ours.
func (s *Server) describe(err error) string {
	var answer *textproto.Error
	var network net.Error
	text := "the mail server could not be reached"
	switch {
	case errors.As(err, &answer):
		text = fmt.Sprintf("the mail server answered %d %s", answer.Code, answer.Msg)
	case errors.As(err, new(*tls.CertificateVerificationError)):
		text = "the mail server's certificate was not accepted"
	case errors.Is(err, errSetUp):
		text = err.Error()
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		text = "the mail server did not answer in time"
	}
	if text = OneLine(text); len(text) > 200 {
		text = strings.ToValidUTF8(text[:197], "") + "..."
	}
	return text
}

// valid says whether the address can stand in an SMTP command.
func valid(address string) bool {
	a, err := netmail.ParseAddress("<" + address + ">")
	return err == nil && a.Address == address && !strings.ContainsFunc(address, func(r rune) bool {
		return r <= ' ' || r == '<' || r == '>' || r == 0x7f
	})
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > 0x7e })
}
