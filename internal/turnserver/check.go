package turnserver

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/pion/logging"
	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"
)

// Check makes an allocation on a TURN server, calls use with the relayed address, and ends the allocation. The URL is
// one of RFC 7065. The TLS configuration may be nil.
func Check(
	ctx context.Context, url, username, credential string, config *tls.Config, use func(net.PacketConn) error,
) error {
	conn, server, err := dial(ctx, url, config)
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	defer func() { _ = conn.Close() }()
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	client, err := turn.NewClient(&turn.ClientConfig{
		Conn: conn, TURNServerAddr: server, Username: username, Password: credential, LoggerFactory: logs,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	defer client.Close()
	if err := client.Listen(); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	relayed, err := client.AllocateWithContext(ctx)
	if err != nil {
		return fmt.Errorf("%s: no allocation: %w", url, err)
	}
	defer func() { _ = relayed.Close() }()
	if err := use(relayed); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return nil
}

// dial connects to the TURN server of a URL.
func dial(ctx context.Context, url string, config *tls.Config) (net.PacketConn, string, error) {
	uri, err := stun.ParseURI(url)
	if err != nil {
		return nil, "", err
	}
	address := net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port))
	if uri.Scheme == stun.SchemeTypeTURN && uri.Proto != stun.ProtoTypeTCP {
		server, err := net.ResolveUDPAddr("udp", address)
		if err != nil {
			return nil, "", err
		}
		// A client asks for an allocation of the family of its socket.
		network := "udp6"
		if server.IP.To4() != nil {
			network = "udp4"
		}
		conn, err := net.ListenPacket(network, ":0")
		return conn, server.String(), err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, "", err
	}
	if uri.Scheme == stun.SchemeTypeTURNS {
		secured := tls.Client(conn, withName(config, uri.Host))
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, "", err
		}
		conn = secured
	}
	return turn.NewSTUNConn(conn), conn.RemoteAddr().String(), nil
}

// withName returns a TLS configuration for a server. The protocol tells a shared port that the client uses TURN (RFC
// 7443).
func withName(config *tls.Config, host string) *tls.Config {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config = config.Clone()
	config.NextProtos = []string{Protocol}
	if config.ServerName == "" {
		config.ServerName = host
	}
	return config
}

// Protocol is the ALPN identifier of TURN over TLS (RFC 7443).
const Protocol = "stun.turn"

// Prober is a media port that recognises a packet of its own.
type Prober interface {
	// Probe returns a packet and a channel that is signalled when the packet arrives. done releases both.
	Probe() (packet []byte, arrived <-chan netip.AddrPort, done func())
}

// SelfTest makes an allocation on each of the URLs with a credential, sends a packet through it to the media port, and
// returns the error of the first URL on which the packet does not arrive. The URLs name this host.
func (s *Server) SelfTest(ctx context.Context, urls []string, media Prober) error {
	session := rand.Text()
	s.mu.Lock()
	s.testing = session
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.testing = ""
	}()
	username, password := s.credentials.issue(session, time.Now().Add(time.Minute))
	// The certificate has the name that clients use, and not this host's address.
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	for _, url := range urls {
		if err := Check(ctx, url, username, password, config, func(relayed net.PacketConn) error {
			return s.probe(ctx, relayed, media)
		}); err != nil {
			return err
		}
	}
	return nil
}

// probeRepeat is the time after which a packet of the self-test is repeated.
const probeRepeat = 200 * time.Millisecond

// probe sends a packet from a relayed address to the media port and waits until it arrives.
func (s *Server) probe(ctx context.Context, relayed net.PacketConn, media Prober) error {
	packet, arrived, done := media.Probe()
	defer done()
	var to netip.AddrPort
	is4 := addressOf(relayed.LocalAddr()).Addr().Is4()
	for _, address := range s.media.Addresses() {
		if address.Addr().Is4() == is4 {
			to = address
			break
		}
	}
	if !to.IsValid() {
		return fmt.Errorf("the media port has no address for clients of this family")
	}
	repeat := time.NewTicker(probeRepeat)
	defer repeat.Stop()
	for {
		if _, err := relayed.WriteTo(packet, net.UDPAddrFromAddrPort(to)); err != nil {
			return fmt.Errorf("send to the media port %v: %w", to, err)
		}
		select {
		case <-arrived:
			return nil
		case <-repeat.C:
		case <-ctx.Done():
			return fmt.Errorf("no packet has arrived at the media port %v: %w", to, ctx.Err())
		}
	}
}
