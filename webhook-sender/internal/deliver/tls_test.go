package deliver_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
	"github.com/registrar-dev/registrar/internal/kit/check"
)

// authority is a certificate authority that the sender trusts.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t), file: filepath.Join(t.TempDir(), "ca.pem")}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign makes a certificate for 127.0.0.1, changed as the test wants.
func (a *authority) sign(t *testing.T, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestEveryTLSMistakeIsNamedAndExplained(t *testing.T) {
	t.Parallel()
	trusted, stranger := newAuthority(t), newAuthority(t)
	good := func(*x509.Certificate) {}
	for name, c := range map[string]struct {
		config         *tls.Config
		cause, explain string
	}{
		"expired": {&tls.Config{Certificates: []tls.Certificate{trusted.sign(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) })}},
			"tls_expired", "expired; renew it"},
		"for another host": {&tls.Config{Certificates: []tls.Certificate{trusted.sign(t, func(c *x509.Certificate) {
			c.IPAddresses, c.DNSNames = nil, []string{"hooks.north-institute.org"}
		})}}, "tls_wrong_host", "for another host name"},
		"of an unknown authority": {&tls.Config{Certificates: []tls.Certificate{stranger.sign(t, good)}}, "tls_unknown_issuer", "not signed by a known authority"},
		"TLS 1.1 only": {&tls.Config{Certificates: []tls.Certificate{trusted.sign(t, good)}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
			"tls_version", "TLS 1.2 or later"},
		"a client certificate is asked for": {&tls.Config{Certificates: []tls.Certificate{trusted.sign(t, good)}, ClientAuth: tls.RequireAnyClientCert},
			"tls_failed", "TLS handshake"},
		"in order": {&tls.Config{Certificates: []tls.Certificate{trusted.sign(t, good)}}, "ok", "accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var in inbox
			server := httptest.NewUnstartedServer(&in)
			server.TLS = c.config
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			server.StartTLS()
			defer server.Close()
			h := newHouse(t, trusting(t, trusted.file))
			h.addURL(t, server.URL)
			h.record(t, 1)
			h.handle(t, h.lease(t, time.Second))
			a := h.firstAttempt(t)
			check.Equal(t, "cause", a.cause, c.cause, "recorded %+v", a)
			check.Equal(t, "it is delivered", a.outcome == "delivered", c.cause == "ok", "recorded %+v", a)
			sentence := webhook.Explain(a.cause)
			check.Contains(t, "the explanation", sentence, c.explain, "%s", a.cause)
			check.Lacks(t, "the explanation", sentence, ". ", "one sentence of %s", a.cause)
			check.True(t, "the explanation ends with a full stop", strings.HasSuffix(sentence, "."), "%q", sentence)
			if c.cause != "ok" {
				check.Equal(t, "number of requests", len(in.requests), 0, "%s", a.cause)
			}
		})
	}
}
