package stack

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Certs is the certificate of the local receiver and the authority that signed it. The authority's
// key is thrown away after its one signature, so trusting it trusts nothing but this receiver.
type Certs struct {
	CAFile string // PEM, for WEBHOOK_CA_FILE and curl --cacert
	CA     *x509.CertPool
	Leaf   tls.Certificate // for 127.0.0.1, ::1 and localhost
}

const (
	certLife   = 90 * 24 * time.Hour
	certMargin = 7 * 24 * time.Hour // renewed when less is left
)

// LoadCerts reads the certificates kept in dir, or makes new ones, for the further addresses and
// host names too, when there are none or they end soon.
func LoadCerts(dir string, further ...string) (Certs, error) {
	certs, err := readCerts(dir)
	if err == nil && time.Until(certs.Leaf.Leaf.NotAfter) > certMargin {
		return certs, nil
	}
	if err := makeCerts(dir, further); err != nil {
		return Certs{}, fmt.Errorf("make certificates: %w", err)
	}
	return readCerts(dir)
}

func certFiles(dir string) (ca, leaf, key string) {
	return filepath.Join(dir, "ca.pem"), filepath.Join(dir, "receiver.pem"), filepath.Join(dir, "receiver-key.pem")
}

func readCerts(dir string) (Certs, error) {
	caFile, leafFile, keyFile := certFiles(dir)
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return Certs{}, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return Certs{}, fmt.Errorf("%s holds no certificate", caFile)
	}
	leaf, err := tls.LoadX509KeyPair(leafFile, keyFile)
	if err != nil {
		return Certs{}, err
	}
	if _, err := leaf.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: "localhost"}); err != nil {
		return Certs{}, err
	}
	return Certs{CAFile: caFile, CA: pool, Leaf: leaf}, nil
}

func makeCerts(dir string, further []string) error {
	a, err := newAuthority(dir, "Registrar local authority")
	if err != nil {
		return err
	}
	names := append([]string{"localhost", "127.0.0.1", "::1"}, further...)
	cert, key, err := a.sign(a.serverTemplate("Registrar local receiver", names...))
	if err != nil {
		return err
	}
	return errors.Join(a.write("ca.pem", a.pem), a.write("receiver.pem", cert), a.write("receiver-key.pem", key))
}
