package secure

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/dtls/v3/pkg/crypto/fingerprint"

	"github.com/volsfu/volsfu/internal/srtp"
)

var (
	errNoCertificate = errors.New("remote peer has no certificate")
	ErrFingerprint   = errors.New("certificate does not match the fingerprint in the description")
	errNoProfile     = errors.New("no SRTP protection profile agreed on")
)

const (
	// FlightInterval is the time after which a handshake message is repeated. RFC 6347 proposes one second, which is as
	// long as a join may take.
	FlightInterval = 100 * time.Millisecond
	// keyingLabel is the label of the keys exported from DTLS (RFC 5764 section 4.2).
	keyingLabel = "EXTRACTOR-dtls_srtp"
)

// Handshake makes the DTLS connection. If the error is not nil, the connection is nil or the caller has to close it.
func Handshake(ctx context.Context, records *Records, client bool, options []dtls.Option) (*dtls.Conn, error) {
	var conn *dtls.Conn
	var err error
	if client {
		clientOptions := make([]dtls.ClientOption, len(options))
		for i, o := range options {
			clientOptions[i] = o
		}
		conn, err = dtls.ClientWithOptions(records, records.RemoteAddr(), clientOptions...)
	} else {
		serverOptions := []dtls.ServerOption{dtls.WithClientAuth(dtls.RequireAnyClientCert)}
		for _, o := range options {
			serverOptions = append(serverOptions, o)
		}
		conn, err = dtls.ServerWithOptions(records, records.RemoteAddr(), serverOptions...)
	}
	if err != nil {
		return nil, fmt.Errorf("DTLS: %w", err)
	}
	if err := conn.HandshakeContext(ctx); err != nil {
		return conn, fmt.Errorf("DTLS handshake: %w", err)
	}
	return conn, nil
}

// CheckCertificate compares the remote peer's certificate with the fingerprint in its description (RFC 8122 section 5).
func CheckCertificate(certificates [][]byte, expected string) error {
	if len(certificates) == 0 {
		return errNoCertificate
	}
	certificate, err := x509.ParseCertificate(certificates[0])
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFingerprint, err)
	}
	algorithm, value, _ := strings.Cut(expected, " ")
	hash, err := fingerprint.HashFromString(strings.ToLower(algorithm))
	if err != nil {
		return fmt.Errorf("%w: hash %q: %w", ErrFingerprint, algorithm, err)
	}
	actual, err := fingerprint.Fingerprint(certificate, hash)
	if err != nil {
		return fmt.Errorf("%w: hash %q: %w", ErrFingerprint, algorithm, err)
	}
	if !strings.EqualFold(actual, value) {
		return ErrFingerprint
	}
	return nil
}

// DeriveContexts derives the SRTP contexts from the handshake (RFC 5764 section 4.2).
func DeriveContexts(conn *dtls.Conn, client bool, replayWindow int) (*srtp.Sealer, *srtp.Opener, error) {
	selected, ok := conn.SelectedSRTPProtectionProfile()
	if !ok {
		return nil, nil, errNoProfile
	}
	profile := srtp.Profile(selected)
	length, err := srtp.KeyingMaterialLength(profile)
	if err != nil {
		return nil, nil, err
	}
	state, ok := conn.ConnectionState()
	if !ok {
		return nil, nil, errNoProfile
	}
	material, err := state.ExportKeyingMaterial(keyingLabel, nil, length)
	if err != nil {
		return nil, nil, fmt.Errorf("export keys: %w", err)
	}
	keys, err := srtp.ExtractKeys(profile, material)
	if err != nil {
		return nil, nil, err
	}
	sealer, err := srtp.NewSealer(keys, client)
	if err != nil {
		return nil, nil, err
	}
	opener, err := srtp.NewOpener(keys, client, replayWindow)
	if err != nil {
		return nil, nil, err
	}
	return sealer, opener, nil
}
