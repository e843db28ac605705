package transport

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/dtls/v3/pkg/crypto/fingerprint"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/srtp"
)

var (
	errNoCertificate = errors.New("remote peer has no certificate")
	errFingerprint   = errors.New("certificate is not the one of the description")
	errNoProfile     = errors.New("no SRTP protection profile agreed on")
)

const (
	// flightInterval is after how long a lost handshake message is repeated. RFC 6347 proposes a second, which is as long as a join may take.
	flightInterval = 100 * time.Millisecond
	// receiveBytes is above the largest datagram that comes through ICE: media fits an Ethernet frame, DTLS records are cut to 1,200 bytes.
	receiveBytes = 2048
	// keyingLabel is for which purpose keys are exported from DTLS (RFC 5764 section 4.2).
	keyingLabel = "EXTRACTOR-dtls_srtp"
)

// start begins ICE with the remote peer and the handshake that follows.
func (p *Peer) start(remote description.Transport, controlling bool) error {
	if err := p.agent.SetRemoteICELite(remote.Lite); err != nil {
		return err
	}
	p.starting.Lock()
	defer p.starting.Unlock()
	if p.closed.Load() {
		return net.ErrClosed
	}
	begin := p.agent.StartAccept
	if controlling {
		begin = p.agent.StartDial
	}
	conn, err := begin(remote.Ufrag, remote.Password)
	if err != nil {
		return err
	}
	records := newRecordConn(conn)
	p.conn.Store(conn)
	p.records.Store(records)
	client := remote.Role == description.RolePassive || remote.Role == description.RoleActpass
	p.running.Go(func() {
		defer func() { _ = records.Close() }()
		p.try(placeMedia, func() { p.readICE(records) })
	})
	p.running.Go(func() {
		p.try(placeHandshake, func() { p.secureConnection(records, client, remote.Fingerprint) })
	})
	return nil
}

// readICE is the goroutine that reads what comes through ICE: DTLS, and media that does not come past it.
func (p *Peer) readICE(records *recordConn) {
	buffer := make([]byte, receiveBytes)
	for {
		n, err := records.conn.Read(buffer)
		switch {
		case errors.Is(err, io.ErrShortBuffer):
			continue
		case err != nil:
			return
		case isMedia(buffer[:n]):
			p.receiveOne(buffer[:n], time.Now())
		case isRecord(buffer[:n]):
			if records.admits(time.Now()) {
				records.write(buffer[:n])
			}
		}
	}
}

// secureConnection is the goroutine that shakes hands, and then waits for the remote peer to end the connection.
func (p *Peer) secureConnection(records *recordConn, client bool, fingerprint string) {
	if p.agent.AwaitConnect(p.context) != nil {
		return
	}
	conn, err := p.handshake(records, client, fingerprint)
	records.finish()
	if err == nil {
		err = p.takeKeys(conn, client)
	}
	if err != nil {
		if conn != nil {
			_ = conn.Close()
		}
		if p.context.Err() == nil {
			p.events.enter(StateFailed)
		}
		return
	}
	p.secure.Store(conn)
	if p.closed.Load() {
		_ = conn.Close()
		return
	}
	p.events.secured()
	if p.data.Load() {
		_ = p.serveData(conn, client, p.sink)
		// Whoever agreed on data channels has no use for the connection without them. It is told so, and may make another.
		_ = conn.Close()
	}
	// Nobody sends other application data; reading notices the end.
	buffer := make([]byte, receiveBytes)
	for err == nil {
		_, err = conn.Read(buffer)
	}
	if p.context.Err() == nil {
		p.events.enter(StateClosed)
	}
}

// handshake makes the DTLS connection. With an error, the connection is nil or to be closed.
func (p *Peer) handshake(records *recordConn, client bool, expected string) (*dtls.Conn, error) {
	options := []dtls.Option{
		dtls.WithCertificates(p.endpoint.certificate),
		// GCM first: it costs a sixth of AES-CM with HMAC-SHA1.
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AEAD_AES_256_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80),
		// Certificates are signed by their peers; descriptions say which one is right.
		dtls.WithInsecureSkipVerify(true),
		dtls.WithVerifyPeerCertificate(func(certificates [][]byte, _ [][]*x509.Certificate) error {
			return p.checked(func() error { return checkCertificate(certificates, expected) })
		}),
		dtls.WithLoggerFactory(p.endpoint.logs),
		dtls.WithFlightInterval(flightInterval),
		dtls.WithReplayProtectionWindow(64),
	}
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
	if err := conn.HandshakeContext(p.context); err != nil {
		return conn, fmt.Errorf("DTLS handshake: %w", err)
	}
	return conn, nil
}

// checked makes a check for a goroutine of the DTLS library. A panic is an error, too.
func (p *Peer) checked(check func() error) (err error) {
	if !p.try(placeHandshake, func() { err = check() }) {
		return errPanicked
	}
	return err
}

// checkCertificate compares the remote peer's certificate with the fingerprint of its description (RFC 8122 section 5).
func checkCertificate(certificates [][]byte, expected string) error {
	if len(certificates) == 0 {
		return errNoCertificate
	}
	certificate, err := x509.ParseCertificate(certificates[0])
	if err != nil {
		return fmt.Errorf("%w: %w", errFingerprint, err)
	}
	algorithm, value, _ := strings.Cut(expected, " ")
	hash, err := fingerprint.HashFromString(strings.ToLower(algorithm))
	if err != nil {
		return fmt.Errorf("%w: hash %q: %w", errFingerprint, algorithm, err)
	}
	actual, err := fingerprint.Fingerprint(certificate, hash)
	if err != nil {
		return fmt.Errorf("%w: hash %q: %w", errFingerprint, algorithm, err)
	}
	if !strings.EqualFold(actual, value) {
		return errFingerprint
	}
	return nil
}

// takeKeys derives the SRTP contexts from the handshake (RFC 5764 section 4.2).
func (p *Peer) takeKeys(conn *dtls.Conn, client bool) error {
	selected, ok := conn.SelectedSRTPProtectionProfile()
	if !ok {
		return errNoProfile
	}
	profile := srtp.Profile(selected)
	length, err := srtp.KeyingMaterialLength(profile)
	if err != nil {
		return err
	}
	state, ok := conn.ConnectionState()
	if !ok {
		return errNoProfile
	}
	material, err := state.ExportKeyingMaterial(keyingLabel, nil, length)
	if err != nil {
		return fmt.Errorf("export keys: %w", err)
	}
	keys, err := srtp.ExtractKeys(profile, material)
	if err != nil {
		return err
	}
	sealer, err := srtp.NewSealer(keys, client)
	if err != nil {
		return err
	}
	opener, err := srtp.NewOpener(keys, client, p.endpoint.config.ReplayWindow)
	if err != nil {
		return err
	}
	p.openIncoming(opener)
	p.outbox.open(sealer)
	return nil
}
