package stack

import (
	"errors"
	"path/filepath"
)

// DatabaseTLS makes a private authority in dir with the certificates of a PostgreSQL server and of its
// clients. It returns the server's settings, by which the programs' roles need TLS and a certificate, and
// the programs' environment.
func DatabaseTLS(dir string, u *User) (settings, env []string, err error) {
	a, err := newAuthority(dir, "Registrar database authority")
	if err != nil {
		return nil, nil, err
	}
	err = errors.Join(
		a.write("ca.crt", a.pem),
		a.issue("server", a.serverTemplate("postgres", "localhost", "127.0.0.1")),
		a.issue("client", a.template("registrar")),
		a.write("hba.conf", []byte(`hostnossl all postgres,registrar 127.0.0.1/32 trust
hostssl all all 127.0.0.1/32 trust clientcert=verify-ca
`)),
	)
	for _, name := range []string{"ca.crt", "server.crt", "server.key", "hba.conf"} {
		err = errors.Join(err, u.own(filepath.Join(dir, name)))
	}
	settings = []string{
		"ssl=on",
		"ssl_ca_file=" + a.path("ca.crt"), "ssl_cert_file=" + a.path("server.crt"), "ssl_key_file=" + a.path("server.key"),
		"hba_file=" + a.path("hba.conf"),
	}
	env = []string{"PGSSLMODE=verify-full", "PGSSLROOTCERT=" + a.path("ca.crt"), "PGSSLCERT=" + a.path("client.crt"), "PGSSLKEY=" + a.path("client.key")}
	return settings, env, err
}
