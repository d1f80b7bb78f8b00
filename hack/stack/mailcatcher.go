package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/emersion/go-smtp"
)

// A MailCatcher is an SMTP server that sends nothing on: every message becomes a file.
type MailCatcher struct {
	Journal[Mail]

	options  MailOptions
	server   *smtp.Server
	listener net.Listener
	count    atomic.Int64
	decide   atomic.Pointer[Decide]
	stopped  chan struct{}
}

// MailOptions say where a catcher listens and what it keeps.
type MailOptions struct {
	Addr   string // host:port
	Dir    string // one .eml a message; "" for none
	Decide Decide // nil: every message is taken
	Forget bool   // keep no journal in memory, for a catcher that runs for days
}

// Mail is a message as it came over the wire, with its envelope.
type Mail struct {
	From string
	To   []string
	Data []byte
}

// Decide says what becomes of a message whose data has been read: nil takes it, a *smtp.SMTPError
// (see Refuse) is the answer instead, ErrDrop takes it but closes the connection without an answer.
type Decide func(Mail) error

// ErrDrop makes the catcher keep the message and hang up before it has said so, which leaves the
// sending side uncertain.
var ErrDrop = errors.New("drop the connection")

// Refuse is an SMTP answer of that code: 4xx for now, 5xx for good.
func Refuse(code int, text string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 0, 0}, Message: text}
}

// StartMailCatcher starts a catcher; its Stop ends it.
func StartMailCatcher(ctx context.Context, o MailOptions) (*MailCatcher, error) {
	if o.Dir != "" {
		if err := os.MkdirAll(o.Dir, 0o755); err != nil {
			return nil, err
		}
	}
	c := &MailCatcher{options: o, stopped: make(chan struct{})}
	c.SetDecide(o.Decide)
	var err error
	if c.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", o.Addr); err != nil {
		return nil, fmt.Errorf("mail catcher: %w", err)
	}
	c.server = smtp.NewServer(smtp.BackendFunc(func(conn *smtp.Conn) (smtp.Session, error) {
		return &mailSession{catcher: c, conn: conn}, nil
	}))
	c.server.Domain = "localhost"
	c.server.MaxMessageBytes = 32 << 20
	c.server.EnableSMTPUTF8 = true
	c.server.ErrorLog = log.New(io.Discard, "", 0) // dropped connections are what some tests are about
	go func() {
		defer close(c.stopped)
		if err := c.server.Serve(c.listener); err != nil && !errors.Is(err, smtp.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "mail catcher:", err)
		}
	}()
	return c, nil
}

// URL is the catcher's address as SMTP_URL wants it: plain, without sign-in.
func (c *MailCatcher) URL() string { return "smtp://" + c.listener.Addr().String() + "?tls=none" }

// SetDecide changes what becomes of messages from now on; nil takes them all.
func (c *MailCatcher) SetDecide(f Decide) {
	if f == nil {
		f = func(Mail) error { return nil }
	}
	c.decide.Store(&f)
}

// Stop ends the catcher with every connection and waits for it.
func (c *MailCatcher) Stop() error {
	err := c.server.Close()
	_ = c.listener.Close() // the server knows it only once it serves
	<-c.stopped
	return err
}

func (c *MailCatcher) take(m Mail) error {
	if err := c.write(m); err != nil {
		return Refuse(451, err.Error())
	}
	if !c.options.Forget {
		c.add(m)
	}
	return nil
}

// write makes the file appear whole: who watches the folder never reads half a message.
func (c *MailCatcher) write(m Mail) error {
	if c.options.Dir == "" {
		return nil
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "Return-Path: <%s>\r\n", m.From)
	for _, to := range m.To {
		fmt.Fprintf(&text, "Delivered-To: %s\r\n", to)
	}
	text.Write(m.Data)
	name := fmt.Sprintf("%s-%06d.eml", time.Now().UTC().Format("20060102T150405.000"), c.count.Add(1))
	partial := filepath.Join(c.options.Dir, "."+name+".partial")
	if err := os.WriteFile(partial, text.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(partial, filepath.Join(c.options.Dir, name))
}

// mailSession is one client's conversation.
type mailSession struct {
	catcher *MailCatcher
	conn    *smtp.Conn
	mail    Mail
}

func (s *mailSession) Reset()        { s.mail = Mail{} }
func (s *mailSession) Logout() error { return nil }

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	s.mail.From = from
	return nil
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mail.To = append(s.mail.To, to)
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m := s.mail
	m.Data = data
	verdict := (*s.catcher.decide.Load())(m)
	if verdict != nil && !errors.Is(verdict, ErrDrop) {
		return verdict
	}
	if err := s.catcher.take(m); err != nil {
		return err
	}
	if verdict != nil {
		return errors.Join(verdict, s.conn.Conn().Close())
	}
	return nil
}
