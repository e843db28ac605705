// Package certificate makes and verifies the certificates of a cluster's nodes, and makes the secret that all nodes
// share.
//
// A cluster has an authority of its own. The certificate of a node holds the node's name (subject alternative name and
// common name), the name of the cluster (organization) and the region (organizational unit), so that none of the three
// is a setting that could contradict the certificate. A node trusts every certificate of its cluster's authority: the
// address of a connection proves nothing, because nodes are reached by addresses that change.
package certificate

import (
	"errors"
	"fmt"
)

// ErrName is wrapped with the invalid name, ErrFile with the file and the reason.
var (
	ErrName = errors.New("invalid name")
	ErrFile = errors.New("invalid file of a cluster's certificates")
)

// ErrRefused is wrapped with the reason for which a peer's certificate is refused.
var ErrRefused = errors.New("certificate refused")

// The files in the directory of a node.
const (
	AuthorityFile = "ca.pem"
	NodeFile      = "node.pem"
	KeyFile       = "node-key.pem"
	// SecretFile has the secret of the cluster as hexadecimal digits. The file is the same on all nodes.
	SecretFile = "secret.key"
)

// SecretBytes is the length of the secret of a cluster.
const SecretBytes = 32

// MaxName is the longest name of a node, a cluster or a region, in bytes: that of a label of the DNS.
const MaxName = 63

// CheckName reports whether a text is the name of a node, a cluster or a region. Names are tokens of NATS subjects, so
// they have no dots.
func CheckName(name string) error {
	if len(name) == 0 || len(name) > MaxName {
		return fmt.Errorf("%w %q: it has %d bytes, expected 1 to %d", ErrName, name, len(name), MaxName)
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return fmt.Errorf("%w %q: expected lower-case letters, digits, - and _", ErrName, name)
		}
	}
	return nil
}
