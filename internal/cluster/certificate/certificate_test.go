package certificate

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newNode returns a node of a cluster whose authority is in a directory.
func newNode(t *testing.T, directory, cluster, name string, now time.Time, validity time.Duration) *Node {
	t.Helper()
	authority, err := OpenAuthority(directory, cluster, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Issue(filepath.Join(directory, name), name, "eu", now, validity); err != nil {
		t.Fatal(err)
	}
	n, err := Load(filepath.Join(directory, name))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// connect connects two nodes over TLS and returns the error of the server's handshake.
func connect(t *testing.T, client, server *tls.Config) error {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The client of TLS 1.3 reads the server's refusal after its own handshake.
		if near, err := tls.Dial("tcp", listener.Addr().String(), client); err == nil {
			_, _ = near.Read(make([]byte, 1))
			_ = near.Close()
		}
	}()
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	err = tls.Server(far, server).Handshake()
	_ = far.Close()
	<-ended
	return err
}

func TestNodesTrustOneAnother(t *testing.T) {
	directory, now := t.TempDir(), time.Now()
	a := newNode(t, directory, "rooms", "a", now, time.Hour)
	b := newNode(t, directory, "rooms", "b", now, time.Hour)
	if a.Name != "a" || a.Cluster != "rooms" || a.Region != "eu" {
		t.Errorf("the node is %q of %q in %q", a.Name, a.Cluster, a.Region)
	}
	if err := connect(t, a.TLS(), b.TLS()); err != nil {
		t.Errorf("the handshake failed: %v", err)
	}
	if name, err := a.Verify(b.Certificate().Certificate); name != "b" || err != nil {
		t.Errorf("the peer is %q, %v", name, err)
	}
	if err := connect(t, a.TLSTo("b"), b.TLS()); err != nil {
		t.Errorf("the handshake with the named node failed: %v", err)
	}
	if a.Refused() != 0 || b.Refused() != 0 {
		t.Errorf("%d and %d certificates are refused", a.Refused(), b.Refused())
	}
	// The address of a node may have become that of another.
	if err := connect(t, a.TLSTo("c"), b.TLS()); err == nil || a.Refused() != 1 {
		t.Errorf("a connection to c accepts the certificate of b: %v, %d are refused", err, a.Refused())
	}
}

func TestRefuses(t *testing.T) {
	directory, now := t.TempDir(), time.Now()
	node := newNode(t, directory, "rooms", "a", now, time.Hour)
	for name, other := range map[string]*Node{
		"another authority": newNode(t, t.TempDir(), "rooms", "b", now, time.Hour),
		"expired":           newNode(t, directory, "rooms", "b", now.Add(-time.Hour), time.Minute),
	} {
		before := node.Refused()
		// The client trusts every server, so that the server decides.
		client := other.TLS()
		client.VerifyConnection = nil
		if err := connect(t, client, node.TLS()); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: the error is %v", name, err)
		}
		if _, err := node.Verify(other.Certificate().Certificate); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: the error of Verify is %v", name, err)
		}
		if count := node.Refused() - before; count != 2 {
			t.Errorf("%s: %d certificates are counted, expected 2", name, count)
		}
	}
	for name, raw := range map[string][][]byte{"none": nil, "no certificate": {[]byte("x")}} {
		if _, err := node.Verify(raw); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestReload(t *testing.T) {
	directory, now := t.TempDir(), time.Now()
	node := newNode(t, directory, "rooms", "a", now, time.Hour)
	first := node.Certificate()
	newNode(t, directory, "rooms", "a", now, 2*time.Hour)
	if err := node.Reload(); err != nil || node.Certificate() == first {
		t.Errorf("the certificate is not replaced: %v", err)
	}
	authority, err := OpenAuthority(directory, "rooms", now)
	if err != nil {
		t.Fatal(err)
	}
	if err := authority.Issue(filepath.Join(directory, "a"), "b", "", now, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := node.Reload(); !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("the error for another name is %v", err)
	}
	if err := os.WriteFile(filepath.Join(directory, "a", AuthorityFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := node.Reload(); !errors.Is(err, ErrFile) {
		t.Errorf("the error for a broken file is %v", err)
	}
	if node.Certificate().Leaf.DNSNames[0] != "a" {
		t.Error("the former certificate is lost")
	}
}

// TestSecret: all nodes have the secret of their cluster, and a running node reads a replaced one.
func TestSecret(t *testing.T) {
	directory, now := t.TempDir(), time.Now()
	a := newNode(t, directory, "rooms", "a", now, time.Hour)
	b := newNode(t, directory, "rooms", "b", now, time.Hour)
	other := newNode(t, t.TempDir(), "rooms", "c", now, time.Hour)
	first := a.Secret()
	if len(first) != SecretBytes || !bytes.Equal(first, b.Secret()) || bytes.Equal(first, other.Secret()) {
		t.Errorf("the secrets are %x and %x, that of another cluster %x", first, b.Secret(), other.Secret())
	}
	file := filepath.Join(directory, "a", SecretFile)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the secret is %v, %v", info.Mode(), err)
	}
	if err := os.Remove(filepath.Join(directory, SecretFile)); err != nil {
		t.Fatal(err)
	}
	newNode(t, directory, "rooms", "a", now, time.Hour)
	if err := a.Reload(); err != nil || bytes.Equal(first, a.Secret()) {
		t.Errorf("the secret is not replaced: %v", err)
	}
	second := a.Secret()
	for _, text := range []string{"", "00", strings.Repeat("g", 64), strings.Repeat("0", 66)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := a.Reload(); !errors.Is(err, ErrFile) || !bytes.Equal(second, a.Secret()) {
			t.Errorf("the secret %q: the error is %v", text, err)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	_, err := Load(filepath.Join(directory, "a"))
	if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), SecretFile) {
		t.Errorf("without a secret: the error is %v", err)
	}
}

func TestAuthority(t *testing.T) {
	directory, now := t.TempDir(), time.Now()
	first, err := OpenAuthority(directory, "rooms", now)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenAuthority(directory, "rooms", now)
	if err != nil || !again.certificate.Equal(first.certificate) {
		t.Errorf("the authority is not kept: %v", err)
	}
	if _, err := OpenAuthority(directory, "halls", now); !errors.Is(err, ErrFile) {
		t.Errorf("another cluster: the error is %v", err)
	}
	if _, err := OpenAuthority(directory, "A b", now); !errors.Is(err, ErrName) {
		t.Errorf("a bad name: the error is %v", err)
	}
	for _, bad := range []string{"", "a.b", "A", strings.Repeat("a", MaxName+1), "a*", "a>"} {
		if err := first.Issue(t.TempDir(), bad, "", now, time.Hour); !errors.Is(err, ErrName) {
			t.Errorf("node %q: the error is %v", bad, err)
		}
	}
	if err := first.Issue(t.TempDir(), "a", "Europe!", now, time.Hour); !errors.Is(err, ErrName) {
		t.Errorf("a bad region: the error is %v", err)
	}
	if info, err := os.Stat(filepath.Join(directory, authorityKeyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the key is %v, %v", info.Mode(), err)
	}
}

// TestNodeCannotSign: a node cannot sign the certificate of another node.
func TestNodeCannotSign(t *testing.T) {
	directory, now := t.TempDir(), time.Now()
	node := newNode(t, directory, "rooms", "a", now, time.Hour)
	pair := node.Certificate()
	forger := &Authority{Cluster: "rooms", certificate: pair.Leaf, text: pemOf("CERTIFICATE", pair.Leaf.Raw),
		key: pair.PrivateKey.(crypto.Signer)}
	forged := filepath.Join(t.TempDir(), "b")
	if err := forger.Issue(forged, "b", "", now, time.Hour); err != nil {
		t.Fatal(err)
	}
	other, err := tls.LoadX509KeyPair(filepath.Join(forged, NodeFile), filepath.Join(forged, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.Verify([][]byte{other.Certificate[0], pair.Certificate[0]}); !errors.Is(err, ErrRefused) {
		t.Errorf("the error is %v", err)
	}
}
