package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// Node is the certificate of this node, and verifies those of others. Node also has the secret of the cluster. The
// methods are safe for concurrent use.
type Node struct {
	// Name, Cluster and Region are those of the certificate. Region may be empty.
	Name, Cluster, Region string

	directory string
	current   atomic.Pointer[contents]
	refused   atomic.Uint64
}

// contents are the contents of a node's files.
type contents struct {
	certificate *tls.Certificate
	authorities *x509.CertPool
	secret      []byte
}

// Load reads the files of a node: AuthorityFile, NodeFile, KeyFile and SecretFile in a directory. Errors wrap ErrFile.
func Load(directory string) (*Node, error) {
	n := &Node{directory: directory}
	c, err := n.read()
	if err != nil {
		return nil, err
	}
	n.Name, n.Cluster, n.Region = namesIn(c.certificate.Leaf)
	n.current.Store(c)
	return n, nil
}

// Files returns the paths of the node's files.
func (n *Node) Files() []string {
	return []string{filepath.Join(n.directory, AuthorityFile), filepath.Join(n.directory, NodeFile),
		filepath.Join(n.directory, KeyFile), filepath.Join(n.directory, SecretFile)}
}

// Reload reads the files again. If they are invalid, or belong to another node, the former ones remain. Errors wrap
// ErrFile.
func (n *Node) Reload() error {
	c, err := n.read()
	if err != nil {
		return err
	}
	if name, cluster, region := namesIn(c.certificate.Leaf); name != n.Name || cluster != n.Cluster ||
		region != n.Region {
		return fmt.Errorf("%w: %s is the certificate of the node %q of the cluster %q in the region %q, expected "+
			"%q, %q and %q: a running node keeps its names", ErrFile, n.Files()[1], name, cluster, region,
			n.Name, n.Cluster, n.Region)
	}
	n.current.Store(c)
	return nil
}

func (n *Node) read() (*contents, error) {
	files := n.Files()
	text, err := os.ReadFile(files[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	c := &contents{authorities: x509.NewCertPool()}
	if !c.authorities.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%w: %s: expected PEM certificates", ErrFile, files[0])
	}
	pair, err := tls.LoadX509KeyPair(files[1], files[2])
	if err != nil {
		return nil, fmt.Errorf("%w: %s and %s: %w", ErrFile, files[1], files[2], err)
	}
	c.certificate = &pair
	if text, err = os.ReadFile(files[3]); err != nil {
		return nil, fmt.Errorf("%w: %w: volsfu cluster certificate makes the file, the same for all nodes", ErrFile,
			err)
	}
	if c.secret, err = parseSecret(files[3], text); err != nil {
		return nil, err
	}
	name, cluster, region := namesIn(pair.Leaf)
	for _, text := range []string{name, cluster} {
		if err := CheckName(text); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrFile, files[1], err)
		}
	}
	if region != "" {
		if err := CheckName(region); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrFile, files[1], err)
		}
	}
	return c, nil
}

// parseSecret returns the secret in a file.
func parseSecret(file string, text []byte) ([]byte, error) {
	secret, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(secret) != SecretBytes {
		return nil, fmt.Errorf("%w: %s: expected %d hexadecimal digits", ErrFile, file, 2*SecretBytes)
	}
	return secret, nil
}

// namesIn returns the names in the certificate of a node, empty if there are none.
func namesIn(c *x509.Certificate) (node, cluster, region string) {
	if len(c.DNSNames) > 0 {
		node = c.DNSNames[0]
	}
	if len(c.Subject.Organization) > 0 {
		cluster = c.Subject.Organization[0]
	}
	if len(c.Subject.OrganizationalUnit) > 0 {
		region = c.Subject.OrganizationalUnit[0]
	}
	return node, cluster, region
}

// Certificate returns the certificate of this node. The caller must not change it.
func (n *Node) Certificate() *tls.Certificate { return n.current.Load().certificate }

// Authorities returns the certificates that nodes of the cluster are signed with. The caller must not change them.
func (n *Node) Authorities() *x509.CertPool { return n.current.Load().authorities }

// Secret returns the secret of the cluster. The caller must not change it.
func (n *Node) Secret() []byte { return n.current.Load().secret }

// Refused returns the number of refused certificates of peers.
func (n *Node) Refused() uint64 { return n.refused.Load() }

// Verify verifies the certificate of a peer, in the form of tls.Config.VerifyPeerCertificate, and returns the name of
// the peer's node. Errors wrap ErrRefused and are counted.
func (n *Node) Verify(raw [][]byte) (name string, err error) {
	chain := make([]*x509.Certificate, 0, len(raw))
	for _, r := range raw {
		c, err := x509.ParseCertificate(r)
		if err != nil {
			n.refused.Add(1)
			return "", fmt.Errorf("%w: %w", ErrRefused, err)
		}
		chain = append(chain, c)
	}
	return n.verify(chain)
}

func (n *Node) verify(chain []*x509.Certificate) (name string, err error) {
	if name, err = n.check(chain); err != nil {
		n.refused.Add(1)
		return "", fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return name, nil
}

func (n *Node) check(chain []*x509.Certificate) (string, error) {
	if len(chain) == 0 {
		return "", fmt.Errorf("the peer sent none, expected one of the cluster %q", n.Cluster)
	}
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	options := x509.VerifyOptions{Roots: n.Authorities(), Intermediates: intermediates,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if _, err := chain[0].Verify(options); err != nil {
		return "", err
	}
	name, cluster, _ := namesIn(chain[0])
	if cluster != n.Cluster {
		return "", fmt.Errorf("the cluster is %q, expected %q", cluster, n.Cluster)
	}
	return name, CheckName(name)
}

// TLSTo returns the configuration of a client for connections to a node. The certificate of the other side has to be
// that of the node.
func (n *Node) TLSTo(node string) *tls.Config {
	config := n.TLS()
	config.VerifyConnection = func(state tls.ConnectionState) error {
		name, err := n.verify(state.PeerCertificates)
		if err == nil && name != node {
			n.refused.Add(1)
			err = fmt.Errorf("%w: the certificate is that of node %q, expected %q", ErrRefused, name, node)
		}
		return err
	}
	return config
}

// TLS returns a configuration for both sides of a connection between nodes. Each side has to have a certificate of the
// cluster's authority. Host names are not checked: the authority signs certificates of nodes only.
func (n *Node) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return n.Certificate(), nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return n.Certificate(), nil
		},
		ClientAuth: tls.RequireAnyClientCert,
		// VerifyConnection replaces the verification of host names.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			_, err := n.verify(state.PeerCertificates)
			return err
		},
	}
}
