package deliver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/egress"
)

// addressNotPublic is the cause of an attempt that the policy did not allow.
const addressNotPublic = "address_not_public"

// causeOf names the reason why an attempt got no complete response; webhook.Explain has a
// sentence for each. The order matters: a deadline also appears as many other errors.
func causeOf(ctx context.Context, err error, t *trace, status int) string {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, egress.ErrRefused):
		return addressNotPublic
	case errors.Is(err, egress.ErrProxyAway):
		return webhook.ProxyAway
	case errors.Is(err, egress.ErrProxyRefused):
		return "proxy_refused"
	case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
		return t.stalled(status)
	}
	if cause := tlsCause(err); cause != "" {
		return cause
	}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "dns_not_found"
	case errors.As(err, &dns):
		return "dns_failed"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection_refused"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "unreachable"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "response_incomplete"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF):
		return "connection_reset"
	case errors.As(err, &timeout) && timeout.Timeout():
		return t.stalled(status)
	case strings.Contains(err.Error(), "malformed HTTP"), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return "bad_response" // net/http has no type for these
	}
	return "connection_failed"
}

func tlsCause(err error) string {
	var (
		invalid x509.CertificateInvalidError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		verify  *tls.CertificateVerificationError
		alert   tls.AlertError
		record  tls.RecordHeaderError
		network *net.OpError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "tls_expired"
	case errors.As(err, &unknown):
		return "tls_unknown_issuer"
	case errors.As(err, &host):
		return "tls_wrong_host"
	case strings.Contains(err.Error(), "protocol version"): // an alert of the receiver, which has no type
		return "tls_version"
	case errors.As(err, &verify), errors.As(err, &alert), errors.As(err, &record),
		errors.As(err, &network) && (network.Op == "remote error" || network.Op == "local error"):
		return "tls_failed"
	}
	return ""
}

// detail is the error's text for the receiver's people. It has no URL, which they know, and no
// addresses, which would reveal our network, its resolver and what names resolve to there. The
// log has the whole text.
func detail(err error) string {
	text := withoutAddress(err).Error()
	return text[:min(len(text), 500)]
}

func withoutAddress(err error) error {
	var dns *net.DNSError
	var network *net.OpError
	switch {
	case errors.Is(err, egress.ErrRefused):
		return egress.ErrRefused
	case errors.Is(err, egress.ErrProxyAway):
		return egress.ErrProxyAway
	case errors.As(err, &dns) && dns.IsNotFound:
		return errors.New("no such host")
	case errors.As(err, &dns) && dns.IsTimeout:
		return errors.New("the lookup timed out")
	case errors.As(err, &dns):
		return errors.New("the lookup failed")
	case errors.As(err, &network) && network.Net != "": // crypto/tls's have no addresses
		return network.Err
	}
	return withoutURL(err)
}

// withoutURL removes the URL, which may hold a secret of the receiver's; the delivery's page
// shows it anyway.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
