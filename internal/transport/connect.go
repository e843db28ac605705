package transport

import (
	"crypto/x509"
	"errors"
	"io"
	"net"
	"time"

	"github.com/pion/dtls/v3"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/internal/transport/secure"
)

// start starts ICE with the remote peer, and the handshake that follows.
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
	records := secure.NewRecords(conn)
	p.path.conn.Store(conn)
	p.records.Store(records)
	client := remote.Role == description.RolePassive || remote.Role == description.RoleActpass
	p.running.Go(func() {
		defer func() { _ = records.Close() }()
		p.try(placeMedia, func() { p.readICE(conn, records) })
	})
	p.running.Go(func() {
		p.try(placeHandshake, func() { p.secureConnection(records, client, remote.Fingerprint) })
	})
	return nil
}

// readICE is the goroutine that reads from ICE: DTLS records, and media that arrives before ICE has selected a pair or
// over TCP.
func (p *Peer) readICE(conn net.Conn, records *secure.Records) {
	buffer := make([]byte, receiveBytes)
	for {
		n, err := conn.Read(buffer)
		switch {
		case errors.Is(err, io.ErrShortBuffer):
			continue
		case err != nil:
			return
		case isMedia(buffer[:n]):
			p.incoming.receiveOne(buffer[:n], time.Now())
			p.sink.Flush()
		case secure.IsRecord(buffer[:n]):
			if records.Admits(time.Now()) {
				records.Write(buffer[:n])
			}
		}
	}
}

// secureConnection is the goroutine that performs the handshake and then waits until the remote peer ends the
// connection.
func (p *Peer) secureConnection(records *secure.Records, client bool, fingerprint string) {
	// Nothing reads records any more when the goroutine ends.
	defer func() { _ = records.Close() }()
	if p.agent.AwaitConnect(p.context) != nil {
		return
	}
	conn, err := secure.Handshake(p.context, records, client, p.dtlsOptions(fingerprint))
	records.Finish()
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
	if p.channels.Agreed() {
		_ = p.channels.Serve(conn, client, p.sink)
		// A peer that agreed on data channels does not work without them. The connection is closed, so that the remote
		// peer learns of the failure and can make another connection.
		_ = conn.Close()
	}
	// No other application data is expected. Reading detects the end of the connection.
	buffer := make([]byte, receiveBytes)
	for err == nil {
		_, err = conn.Read(buffer)
	}
	if p.context.Err() == nil {
		p.events.enter(StateClosed)
	}
}

// takeKeys derives the SRTP contexts. From now on media is encrypted and decrypted.
func (p *Peer) takeKeys(conn *dtls.Conn, client bool) error {
	sealer, opener, err := secure.DeriveContexts(conn, client, p.endpoint.config.ReplayWindow)
	if err != nil {
		return err
	}
	p.incoming.open(opener)
	p.outbox.open(sealer)
	return nil
}

// dtlsOptions returns the options of the handshake with a remote peer whose certificate has the expected fingerprint.
func (p *Peer) dtlsOptions(expected string) []dtls.Option {
	return []dtls.Option{
		dtls.WithCertificates(p.endpoint.certificate),
		// GCM first: GCM takes a sixth of the time of AES-CM with HMAC-SHA1.
		dtls.WithSRTPProtectionProfiles(
			dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AEAD_AES_256_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80),
		// Certificates are self-signed. The fingerprint in the description identifies the right one.
		dtls.WithInsecureSkipVerify(true),
		dtls.WithVerifyPeerCertificate(func(certificates [][]byte, _ [][]*x509.Certificate) error {
			return p.checked(func() error { return secure.CheckCertificate(certificates, expected) })
		}),
		dtls.WithLoggerFactory(p.endpoint.logs),
		dtls.WithFlightInterval(secure.FlightInterval),
		dtls.WithReplayProtectionWindow(64),
	}
}

// checked runs a check on a goroutine of the DTLS library. A panic in the check becomes an error.
func (p *Peer) checked(check func() error) (err error) {
	if !p.try(placeHandshake, func() { err = check() }) {
		return errPanicked
	}
	return err
}
