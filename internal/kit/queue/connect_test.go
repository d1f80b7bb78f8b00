package queue

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/registrar-dev/registrar/internal/kit/check"
)

func TestARedisAddressIsRead(t *testing.T) {
	t.Parallel()
	type want struct {
		hosts                []string
		user, password, name string // name: the primary's
		db                   int
		secure               bool
	}
	for url, want := range map[string]want{
		"redis://host":                 {},
		"redis://user:a,b@host:6380/3": {user: "user", password: "a,b", db: 3},
		"rediss://:p%2Fq@host/0":       {password: "p/q", secure: true},
		"unix:///run/redis.sock?db=2":  {db: 2},
		"redis+sentinel://one:26380,two,[::1]:26381,[::2]/4?master=m":          {hosts: []string{"one:26380", "two:26379", "[::1]:26381", "[::2]:26379"}, name: "m", db: 4},
		"rediss+sentinel://u:p%40q@one,two?master=m&pool_size=9":               {hosts: []string{"one:26379", "two:26379"}, user: "u", password: "p@q", name: "m", secure: true},
		"redis+sentinel://one?master=m&sentinel_username=s&sentinel_password=": {hosts: []string{"one:26379"}, name: "m"},
		"redis+cluster://one,two:7000":                                         {hosts: []string{"one:6379", "two:7000"}},
		"rediss+cluster://:p@10.0.0.1:7000/0?tls_server_name=redis.example":    {hosts: []string{"10.0.0.1:7000"}, password: "p", secure: true},
	} {
		a, err := parse(url)
		if !check.NoError(t, err, "%s", url) {
			continue
		}
		got := want
		got.hosts, got.user, got.password, got.name, got.db, got.secure = a.hosts, a.options.Username, a.options.Password, a.master, a.options.DB, a.options.TLSConfig != nil
		check.Equal(t, "what is read", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want), "%s", url)
	}
}

// An error names the variable and says what to change, and shows nothing of a password.
func TestARedisAddressThatWillNotDo(t *testing.T) {
	t.Parallel()
	for url, fix := range map[string]string{
		"":                                               "redis+sentinel://",
		"user:hush@host":                                 "redis+sentinel://",
		"http://:hush@host":                              "use redis://",
		"redis+proxy://:hush@host":                       "use redis://",
		"redis://user:pass/hush@host:6379/0":             "percent-encode",
		"redis://user:12/hush@host:6379/0":               "percent-encode",
		"redis://user:12?hush@host":                      "percent-encode",
		"redis://user:%hush@host":                        "percent-encode",
		"redis://host/0?hush=1":                          "go-redis's settings",
		"redis://:hush@one,two":                          "several servers",
		"redis://:hush@one/0?master=m":                   "redis+sentinel://",
		"redis+sentinel://:hush@one,two/0":               "?master=NAME",
		"redis+sentinel:///0?master=m":                   "host:26379,host:26379",
		"redis+sentinel://one,,two?master=m":             "host:26379,host:26379",
		"redis+sentinel://u:hu/sh@one?master":            "host:26379",
		"redis+cluster://:hush@one:0":                    "host:6379,host:6379",
		"redis+cluster://:hush@one/2":                    "leave the number out",
		"redis+cluster://:hush@one?master=m":             "redis+sentinel://",
		"redis+cluster://:hush@one?tls_server_name=hush": "rediss",
	} {
		_, err := Connect(url, TLS{})
		if check.True(t, "there is an error", err != nil, "%q", url) {
			check.Contains(t, "the error", err.Error(), "REDIS_URL: ", "%q", url)
			check.Contains(t, "the error", err.Error(), fix, "%q", url)
			check.Lacks(t, "the error", err.Error(), "hush", "%q", url)
		}
	}
}

func TestFilesOfRedisTLSThatWillNotDo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := selfSigned(t, dir, "one")
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		url   string
		files TLS
		fix   string
	}{
		{"redis://host", TLS{CAFile: cert}, "REDIS_CA_FILE: REDIS_URL uses no TLS; begin it with rediss"},
		{"redis+cluster://host", TLS{CertFile: cert}, "REDIS_CERT_FILE: REDIS_URL uses no TLS"},
		{"rediss://host", TLS{CAFile: filepath.Join(dir, "none")}, "REDIS_CA_FILE: "},
		{"rediss://host", TLS{CAFile: empty}, "holds no certificate"},
		{"rediss+cluster://host", TLS{CertFile: cert}, "set both"},
		{"rediss+cluster://host", TLS{CertFile: cert, KeyFile: empty}, "REDIS_CERT_FILE, REDIS_KEY_FILE: "},
		{"rediss+sentinel://host?master=m", TLS{CAFile: cert, CertFile: cert, KeyFile: key}, ""},
	} {
		rdb, err := Connect(c.url, c.files)
		if c.fix != "" {
			if check.True(t, "there is an error", err != nil, "%+v", c) {
				check.Contains(t, "the error", err.Error(), c.fix, "%+v", c)
			}
		} else if check.NoError(t, err, "%+v", c) {
			check.NoError(t, rdb.Close(), "%+v", c)
		}
	}
}

// The server's certificate is checked against the authority that was given, by the name that was given,
// and a client certificate that was renewed is shown from then on.
func TestRedisTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serverCert, serverKey := selfSigned(t, dir, "redis.example")
	clientCert, clientKey := selfSigned(t, dir, "first")
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	shown := make(chan string, 100)
	server := miniredis.NewMiniRedis()
	err = server.StartTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12,
		VerifyConnection: func(s tls.ConnectionState) error { shown <- s.PeerCertificates[0].Subject.CommonName; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	ping := func(url string, files TLS) error {
		rdb, err := Connect(url, files)
		if err != nil {
			return err
		}
		defer func() { _ = rdb.Close() }()
		return Ping(t.Context(), rdb)
	}
	named := "rediss://" + server.Addr() + "?tls_server_name=redis.example"
	files := TLS{CAFile: serverCert, CertFile: clientCert, KeyFile: clientKey}
	check.NoError(t, ping(named, files), "")
	check.Equal(t, "the certificate that is shown", <-shown, "first", "")
	check.True(t, "there is an error", ping("rediss://"+server.Addr(), files) != nil, "by another name")
	check.True(t, "there is an error", ping(named, TLS{CertFile: clientCert, KeyFile: clientKey}) != nil, "by the system's authorities")

	rdb, err := Connect(named, files)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rdb.Close() }()
	renewedCert, renewedKey := selfSigned(t, dir, "renewed")
	if err := errors.Join(os.Rename(renewedKey, clientKey), os.Rename(renewedCert, clientCert)); err != nil {
		t.Fatal(err)
	}
	for len(shown) > 0 {
		<-shown
	}
	check.NoError(t, Ping(t.Context(), rdb), "")
	check.Equal(t, "the certificate that is shown", <-shown, "renewed", "")
}

// selfSigned makes a certificate that is its own authority.
func selfSigned(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	err = errors.Join(os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile
}

// An address of one kind that leads to another says so.
func TestARedisOfAnotherKind(t *testing.T) {
	t.Parallel()
	for answer, fix := range map[string]string{
		"MOVED 866 10.0.0.1:7000":                            "redis+cluster://",
		"ERR This instance has cluster support disabled":     "begin it with redis://",
		"ERR unknown command 'LLEN', with args beginning wi": "redis+sentinel://",
		"LOADING Redis is loading the dataset in memory":     "LOADING",
	} {
		check.Contains(t, "the error", explain(errors.New(answer)).Error(), fix, "%s", answer)
	}
	err := explain(fmt.Errorf("all sentinels are unreachable: %w", errors.Join(redis.Nil, redis.Nil)))
	check.Contains(t, "the error", err.Error(), "correct master", "")
	check.True(t, "it is no missing value", !missing(err), "")
	check.True(t, "there is no error", explain(nil) == nil, "")
}

// What waits for a Redis that answers nothing ends: with its context, and without one.
func TestARedisThatIsFrozenHoldsNobody(t *testing.T) {
	t.Parallel()
	frozen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"redis://%s", "redis+sentinel://%s?master=m", "redis+cluster://%s"} {
		rdb, err := Connect(fmt.Sprintf(url, frozen.Addr()), TLS{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = rdb.Close() })
		began := time.Now()
		err = NewClient(rdb).Enqueue(t.Context(), Item{Queue: Email, Kind: "email.send", ID: "1"})
		check.True(t, "there is an error", err != nil, "%s", url)
		check.True(t, "it comes in time", time.Since(began) < 4*enqueueTimeout, "%s: %v", url, time.Since(began))
	}
	t.Cleanup(func() { _ = frozen.Close() }) // before the clients are closed, which wait for reads under way
}
