package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

// errSetUp marks errors in the server's settings, as opposed to its state.
var errSetUp = errors.New("the mail server's settings do not fit")

// connection is a client whose every wait has an end: the deadline of the step, and the
// context's.
type connection struct {
	*smtp.Client
	raw    net.Conn
	ctx    context.Context // the conversation lives inside one call
	unhook func() bool
}

// extend gives the next steps that much time, and no more than the context has.
func (c *connection) extend(d time.Duration) {
	at := time.Now().Add(d)
	if end, ok := c.ctx.Deadline(); ok && end.Before(at) {
		at = end
	}
	_ = c.raw.SetDeadline(at) // fails on a closed connection alone, as the next step will
	if c.ctx.Err() != nil {
		c.interrupt()
	}
}

func (c *connection) interrupt() { _ = c.raw.SetDeadline(time.Unix(1, 0)) }

func (c *connection) close() error {
	c.unhook()
	return c.raw.Close()
}

// connect dials, reads the greeting and sets up TLS as the settings say.
func (s *Server) connect(ctx context.Context) (*connection, error) {
	dialer := net.Dialer{Timeout: s.Times.Connect}
	raw, err := dialer.DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	c := &connection{raw: raw, ctx: ctx}
	c.unhook = context.AfterFunc(ctx, c.interrupt)
	c.extend(s.Times.Connect)
	if err := s.greet(c); err != nil {
		_ = c.close()
		return nil, err
	}
	return c, nil
}

func (s *Server) greet(c *connection) error {
	conn := c.raw
	if s.security == securityImplicit {
		conn = tls.Client(conn, s.tls)
	}
	var err error
	if c.Client, err = smtp.NewClient(conn, s.host); err != nil {
		return err
	}
	if err := c.Hello(s.helo); err != nil {
		return err
	}
	if s.security == securityImplicit || s.security == securityNone {
		return nil
	}
	if offered, _ := c.Extension("STARTTLS"); offered {
		return c.StartTLS(s.tls)
	}
	if s.security == securityStartTLS {
		return fmt.Errorf("%w: STARTTLS is required and not offered", errSetUp)
	}
	return nil
}

// signIn does nothing without a user name. It sends the password only over TLS, unless tls=none
// says that the network is trusted.
func (s *Server) signIn(c *connection) error {
	if s.user == "" {
		return nil
	}
	_, list := c.Extension("AUTH")
	offered := strings.Fields(strings.ToUpper(list))
	plainToo := s.security == securityNone
	var auth smtp.Auth
	switch {
	case slices.Contains(offered, "SCRAM-SHA-256"):
		auth = smtp.ScramSHA256Auth(s.user, s.password)
	case slices.Contains(offered, "PLAIN"):
		auth = smtp.PlainAuth("", s.user, s.password, s.host, plainToo)
	case slices.Contains(offered, "LOGIN"):
		auth = smtp.LoginAuth(s.user, s.password, s.host, plainToo)
	default:
		return fmt.Errorf("%w: it offers no way to sign in that we know", errSetUp)
	}
	err := c.Auth(auth)
	if errors.Is(err, smtp.ErrUnencrypted) {
		return fmt.Errorf("%w: the connection is not encrypted, so the password was not sent", errSetUp)
	}
	return err
}
