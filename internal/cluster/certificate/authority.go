package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

const (
	// authorityKeyFile is the key of the authority, beside its certificate. Nodes do not need it.
	authorityKeyFile = "ca-key.pem"
	// authorityValidity is long, because nodes with another authority cannot join.
	authorityValidity = 10 * 365 * 24 * time.Hour
	// backdating tolerates clocks of hosts that differ.
	backdating = 5 * time.Minute
)

// Authority signs the certificates of a cluster's nodes.
type Authority struct {
	// Cluster is the name of the cluster.
	Cluster string

	certificate *x509.Certificate
	// text is the certificate as PEM.
	text []byte
	key  crypto.Signer
}

// OpenAuthority reads the authority in a directory, or creates it for the cluster if the directory has none. Errors
// are those of files, or wrap ErrName or ErrFile.
func OpenAuthority(directory, cluster string, now time.Time) (*Authority, error) {
	if err := CheckName(cluster); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	file, keyFile := filepath.Join(directory, AuthorityFile), filepath.Join(directory, authorityKeyFile)
	_, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return createAuthority(file, keyFile, cluster, now)
	}
	pair, err := tls.LoadX509KeyPair(file, keyFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFile, file, err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, fmt.Errorf("%w: %s: expected the certificate of an authority", ErrFile, file)
	}
	if name := pair.Leaf.Subject.CommonName; name != cluster {
		return nil, fmt.Errorf("%w: %s is the authority of the cluster %q, expected %q", ErrFile, file, name, cluster)
	}
	return &Authority{Cluster: cluster, certificate: pair.Leaf, key: key,
		text: pemOf("CERTIFICATE", pair.Leaf.Raw)}, nil
}

func createAuthority(file, keyFile, cluster string, now time.Time) (*Authority, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(pkix.Name{CommonName: cluster}, now, authorityValidity)
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, err
	}
	a := &Authority{Cluster: cluster, certificate: certificate, text: pemOf("CERTIFICATE", raw), key: key}
	// The certificate is written last: a directory with a certificate has a key.
	return a, errors.Join(writeKey(keyFile, key), os.WriteFile(file, a.text, 0o644))
}

// Issue writes the files of a node into a directory, which is created: the authority's certificate, and a new key and
// certificate for a node of a region. The region may be empty. Existing files are replaced.
func (a *Authority) Issue(directory, node, region string, now time.Time, validity time.Duration) error {
	if err := CheckName(node); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	subject := pkix.Name{CommonName: node, Organization: []string{a.Cluster}}
	if region != "" {
		if err := CheckName(region); err != nil {
			return fmt.Errorf("region: %w", err)
		}
		subject.OrganizationalUnit = []string{region}
	}
	template, err := newTemplate(subject, now, validity)
	if err != nil {
		return err
	}
	template.DNSNames = []string{node}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(directory, AuthorityFile), a.text, 0o644),
		writeKey(filepath.Join(directory, KeyFile), key),
		os.WriteFile(filepath.Join(directory, NodeFile), pemOf("CERTIFICATE", raw), 0o644),
	)
}

// newTemplate returns a certificate with a random serial number of 128 bits.
func newTemplate(subject pkix.Name, now time.Time, validity time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 128))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: now.Add(-backdating),
		NotAfter: now.Add(validity)}, nil
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(file, pemOf("PRIVATE KEY", raw), 0o600)
}

func pemOf(kind string, raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}
