// Package mailtest runs a real SMTP server for a test, that misbehaves as its script says.
package mailtest

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// The user and password that a server takes.
const (
	knownUser     = "registrar"
	knownPassword = "s3cret"
)

// Script is what a server does at each step; nil steps agree. An error of Refuse is
// answered, ErrDrop hangs up without an answer.
type Script struct {
	OnMail func() error
	OnRcpt func(to string) error
	OnData func(text string) error
}

// ErrDrop closes the connection instead of answering.
var ErrDrop = errors.New("drop the connection")

// Refuse is an SMTP answer of that code.
func Refuse(code int, text string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 1, 1}, Message: text}
}

// Options are what a server offers.
type Options struct {
	StartTLS     *tls.Config // offered when it is set
	ImplicitTLS  *tls.Config // TLS from the first byte
	InsecureAuth bool        // sign-in without TLS
}

// Server is a running server.
type Server struct {
	Addr string // host:port

	mu     sync.Mutex
	script Script
	taken  []string
}

// Start runs a server until the test ends.
func Start(t testing.TB, script Script, o Options) *Server {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.WithoutCancel(t.Context()), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Addr: l.Addr().String(), script: script}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{server: s, conn: c}, nil
	}))
	server.Domain, server.ErrorLog = "localhost", log.New(io.Discard, "", 0)
	server.TLSConfig, server.AllowInsecureAuth = o.StartTLS, o.InsecureAuth
	if o.ImplicitTLS != nil {
		l = tls.NewListener(l, o.ImplicitTLS)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		_ = l.Close() // the server knows it only once Serve has begun, which a short test does not wait for
		<-done
	})
	return s
}

// URL is the server's SMTP_URL without TLS or sign-in.
func (s *Server) URL() string { return "smtp://" + s.Addr + "?tls=none" }

// Play changes what the server does from the next step on.
func (s *Server) Play(script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

// Messages are the texts that arrived whole and were not refused, dropped ones included.
func (s *Server) Messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.taken...)
}

func (s *Server) now() Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.script
}

type session struct {
	server *Server
	conn   *smtp.Conn
}

func (b *session) Reset()        {}
func (b *session) Logout() error { return nil }

func (b *session) Mail(string, *smtp.MailOptions) error {
	if step := b.server.now().OnMail; step != nil {
		return b.answer(step())
	}
	return nil
}

func (b *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if step := b.server.now().OnRcpt; step != nil {
		return b.answer(step(to))
	}
	return nil
}

func (b *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if step := b.server.now().OnData; step != nil {
		err = step(string(data))
	}
	if err == nil || errors.Is(err, ErrDrop) {
		b.server.mu.Lock()
		b.server.taken = append(b.server.taken, string(data))
		b.server.mu.Unlock()
	}
	return b.answer(err)
}

func (b *session) answer(err error) error {
	if errors.Is(err, ErrDrop) {
		return errors.Join(err, b.conn.Conn().Close())
	}
	return err
}

func (b *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (b *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != knownUser || password != knownPassword {
			return Refuse(535, "wrong password")
		}
		return nil
	}), nil
}
