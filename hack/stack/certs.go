package stack

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
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca := certTemplate("Registrar local authority")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return err
	}

	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	leaf := certTemplate("Registrar local receiver")
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	leaf.DNSNames = []string{"localhost"}
	leaf.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	for _, name := range further {
		if ip := net.ParseIP(name); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, name)
		}
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, leafKey.Public(), caKey)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		return err
	}

	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	caFile, leafFile, keyFile := certFiles(dir)
	return errors.Join(
		writePEM(caFile, "CERTIFICATE", caDER, 0o644),
		writePEM(leafFile, "CERTIFICATE", leafDER, 0o644),
		writePEM(keyFile, "PRIVATE KEY", keyDER, 0o600),
	)
}

func certTemplate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(certLife),
	}
}

func writePEM(name, kind string, der []byte, mode os.FileMode) error {
	return os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}
