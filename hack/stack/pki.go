package stack

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// authority signs certificates. Its key lives as long as the process.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(dir, name string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	a := &authority{dir: dir}
	template := a.template(name)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature, nil
	var err error
	a.pem, _, err = a.sign(template)
	return a, err
}

func (a *authority) template(name string, groups ...string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		NotBefore:   time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(certLife),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// sign makes a key and its certificate, both in PEM. The authority's own comes first.
func (a *authority) sign(template *x509.Certificate) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	if a.cert == nil {
		a.cert, a.key = template, private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), nil
}

// pool trusts the authority alone.
func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.pem)
	return pool
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) write(name string, text []byte) error {
	return os.WriteFile(a.path(name), text, 0o600)
}

// serverTemplate is for a server that is called by names and addresses.
func (a *authority) serverTemplate(name string, hosts ...string) *x509.Certificate {
	template := a.template(name)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return template
}

// issue writes name.crt and name.key.
func (a *authority) issue(name string, template *x509.Certificate) error {
	cert, key, err := a.sign(template)
	return errors.Join(err, a.write(name+".crt", cert), a.write(name+".key", key))
}

// signer writes a key pair that only signs: service account tokens.
func (a *authority) signer(name string) error {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		return err
	}
	return errors.Join(
		a.write(name+".key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})),
		a.write(name+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))
}

// kubeconfig writes a kubeconfig of a user, in JSON, which is YAML, and returns its file.
func (a *authority) kubeconfig(server, user string, groups ...string) (string, error) {
	cert, key, err := a.sign(a.template(user, groups...))
	if err != nil {
		return "", err
	}
	type entry map[string]any
	text, err := json.MarshalIndent(entry{
		"apiVersion": "v1", "kind": "Config", "current-context": "registrar",
		"clusters": []entry{{"name": "registrar", "cluster": entry{"server": server, "certificate-authority-data": a.pem}}},
		"users":    []entry{{"name": user, "user": entry{"client-certificate-data": cert, "client-key-data": key}}},
		"contexts": []entry{{"name": "registrar", "context": entry{"cluster": "registrar", "user": user}}},
	}, "", "  ")
	if err != nil {
		return "", err
	}
	file := strings.ReplaceAll(user, ":", "-") + ".kubeconfig" // KUBECONFIG is a list with colons
	return a.path(file), a.write(file, text)
}
