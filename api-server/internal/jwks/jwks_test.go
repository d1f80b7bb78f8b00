package jwks

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/registrar-dev/registrar/internal/domain/lms"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/egress"
	"github.com/registrar-dev/registrar/internal/kit/fault"
	"github.com/registrar-dev/registrar/internal/kit/id"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// What an address that a customer chose may answer, and what is said about it.
func TestSetsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	check.NoError(check.Now(t), err, "a key")
	good, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: k.Public(), KeyID: "k1"}}})
	check.NoError(check.Now(t), err, "a set")
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { t.Error("a redirect was followed") }))
	t.Cleanup(elsewhere.Close)
	local := egress.New(egress.Config{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		policy *egress.Policy
		want   string
	}{
		"no page":        {http.NotFound, local, "it answers 404"},
		"a page":         {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, local, "no JSON Web Key Set"},
		"no keys":        {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"keys": []}`)) }, local, "no RSA key"},
		"a redirect":     {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, local, "it redirects"},
		"too much":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(append(good, make([]byte, 256<<10)...)) }, local, "larger than 256 KiB"},
		"this machine":   {func(http.ResponseWriter, *http.Request) { t.Error("a private address was called") }, egress.New(egress.Config{AllowHTTP: true}), "not a public address"},
		"without TLS":    {func(http.ResponseWriter, *http.Request) { t.Error("an address without TLS was called") }, egress.New(egress.Config{}), "only https"},
		"a header of MB": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }, local, "it cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.answer)
			defer server.Close()
			s := New(c.policy, func() time.Time { return noon })
			_, err := s.Read(t.Context(), 1, lms.Registration{KeysURL: server.URL}, "x.y.z")
			check.True(check.Now(t), "it is a fault of the LMS's", fault.Has(err, away), "%v", err)
			check.Contains(t, "the fault", err.Error(), c.want, "")
		})
	}
}

// Private addresses are never called, however they are written.
func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	s := New(egress.New(egress.Config{AllowHTTP: true}), func() time.Time { return noon })
	for _, address := range []string{"https://169.254.169.254/", "https://[::ffff:127.0.0.1]/", "http://2130706433/"} {
		_, err := s.Read(t.Context(), 1, lms.Registration{KeysURL: address}, "x.y.z")
		check.True(t, "it is refused", fault.Has(err, away), "%s: %v", address, err)
	}
}

// What one organization's LMS does to its set is not felt by another organization, and no more sets are kept than may be.
func TestSetsAreKeptApart(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { calls.Add(1); http.NotFound(w, r) }))
	t.Cleanup(server.Close)
	now := noon
	s := New(egress.New(egress.Config{AllowHTTP: true, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), func() time.Time { return now })
	read := func(o id.Organization) {
		t.Helper()
		_, err := s.Read(t.Context(), o, lms.Registration{KeysURL: server.URL}, "x.y.z")
		check.True(t, "it fails", fault.Has(err, away), "%v", err)
	}
	for range 3 {
		read(1)
		read(2)
	}
	check.Equal(t, "calls", calls.Load(), 2, "one an organization within 10 seconds")
	now = now.Add(11 * time.Second)
	read(1)
	check.Equal(t, "calls", calls.Load(), 3, "and then again")
	for o := range id.Organization(1500) {
		s.at(where{o, "https://lms.school/keys"})
	}
	check.Equal(t, "sets that are kept", len(s.kept), maxKept, "")
}
