package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
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
	// secret is the content of SecretFile.
	secret []byte
}

// OpenAuthority reads the authority in a directory, or creates it for the cluster if the directory has none. Errors
// are those of files, or wrap ErrName or ErrFile.
func OpenAuthority(directory, cluster string, now time.Time) (*Authority, error) {
	if err := CheckName(cluster); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	file, keyFile := filepath.Join(directory, AuthorityFile), filepath.Join(directory, authorityKeyFile)
	secret, err := openSecret(directory)
	if err != nil {
		return nil, err
	}
	_, err = os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return createAuthority(file, keyFile, cluster, secret, now)
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
		text: pemOf("CERTIFICATE", pair.Leaf.Raw), secret: secret}, nil
}

// openSecret returns the content of the file with the secret of the cluster, which is created if the directory has
// none.
func openSecret(directory string) ([]byte, error) {
	file := filepath.Join(directory, SecretFile)
	text, err := os.ReadFile(file)
	if err == nil {
		_, err = parseSecret(file, text)
		return text, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	secret := make([]byte, SecretBytes)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	text = append(hex.AppendEncode(nil, secret), '\n')
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	return text, replaceFile(file, text, 0o600)
}

func createAuthority(file, keyFile, cluster string, secret []byte, now time.Time) (*Authority, error) {
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
	keyText, err := textOfKey(key)
	if err != nil {
		return nil, err
	}
	a := &Authority{
		Cluster: cluster, certificate: certificate, text: pemOf("CERTIFICATE", raw), key: key, secret: secret,
	}
	// The certificate is written last: a directory with a certificate has a key.
	if err := replaceFile(keyFile, keyText, 0o600); err != nil {
		return nil, err
	}
	return a, replaceFile(file, a.text, 0o644)
}

// Issue writes the files of a node into a directory, which is created: the authority's certificate, the secret of the
// cluster, and a new key and certificate for a node of a region. The region may be empty. Existing files are replaced,
// each at once.
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
	keyText, err := textOfKey(key)
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name string
		text []byte
		mode os.FileMode
	}{
		{AuthorityFile, a.text, 0o644}, {SecretFile, a.secret, 0o600}, {KeyFile, keyText, 0o600},
		{NodeFile, pemOf("CERTIFICATE", raw), 0o644},
	} {
		if err := replaceFile(filepath.Join(directory, file.name), file.text, file.mode); err != nil {
			return err
		}
	}
	return nil
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

// replaceFile writes a file under another name and renames the file, so that a reader finds the former content or the
// new one.
func replaceFile(name string, text []byte, mode os.FileMode) error {
	next := name + ".new"
	// A file that a crash has left behind may have another mode.
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(next, text, mode); err != nil {
		return err
	}
	return os.Rename(next, name)
}

func textOfKey(key *ecdsa.PrivateKey) ([]byte, error) {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pemOf("PRIVATE KEY", raw), nil
}

func pemOf(kind string, raw []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
}
