package wire

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// A key is a private key with a certificate that it signs itself. All hosts of a lab have the same key, as a shared
// secret: each side proves that it has the private key, and accepts only this certificate.

// keyValidity is longer than any lab.
const keyValidity = 100 * 365 * 24 * time.Hour

// CreateKey writes a new key to a new file that only its owner may read.
func CreateKey(name string) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		return err
	}
	// The sides do not compare the times with their clocks, which may differ.
	begin := time.Unix(0, 0)
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "vollab agent"},
		NotBefore: begin, NotAfter: begin.Add(keyValidity), KeyUsage: x509.KeyUsageDigitalSignature}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := errors.Join(pem.Encode(&text, &pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
		pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: raw})); err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text.Bytes())
	return errors.Join(err, file.Close())
}

// Key is a key of a lab.
type Key struct{ pair tls.Certificate }

// ReadKey reads a key. Errors about the content wrap ErrKeyFile. A key that others may read is refused.
func ReadKey(name string) (*Key, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%w: %s has mode %o, expected 600: only its owner may read it", ErrKeyFile, name, mode)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrKeyFile, name, err)
	}
	return &Key{pair}, nil
}

// config returns the settings of both sides.
func (k *Key) config() *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{k.pair}, MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAnyClientCert,
		// There are no names and no authorities: the certificate itself is compared.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 ||
				subtle.ConstantTimeCompare(state.PeerCertificates[0].Raw, k.pair.Certificate[0]) != 1 {
				return ErrKey
			}
			return nil
		},
		SessionTicketsDisabled: true,
	}
}

// Accept makes a connection of a socket that a listener accepted. Accept closes the socket if the other side has
// another key.
func (k *Key) Accept(ctx context.Context, socket net.Conn) (*Conn, error) {
	return handshake(ctx, tls.Server(socket, k.config()))
}

// Dial connects to an agent. The error wraps ErrKey if the agent has another key.
func (k *Key) Dial(ctx context.Context, address string) (*Conn, error) {
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return handshake(ctx, tls.Client(socket, k.config()))
}

func handshake(ctx context.Context, c *tls.Conn) (*Conn, error) {
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return NewConn(c), nil
}
