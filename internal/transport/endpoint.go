package transport

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/logging"
	"github.com/pion/webrtc/v4"

	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
)

// Endpoint is the media port of one process: peers made by it share its sockets. Its methods are safe for concurrent use.
type Endpoint struct {
	config      Config
	logs        logging.LoggerFactory
	certificate webrtc.Certificate
	// conn and udp are nil where media goes over TCP that this endpoint dials.
	conn net.PacketConn
	// reflexive are this host's addresses as STUN servers see them.
	reflexive     []string
	udp           ice.UDPMux
	tcp           ice.TCPMux
	receiveBuffer int
}

// tcpWriteBuffer bounds what waits in an ICE-TCP connection whose client does not read; what does not fit is dropped, nobody waits.
const tcpWriteBuffer = 4 << 20

// Listen opens the media port.
func Listen(config Config) (*Endpoint, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	address := netip.AddrPortFrom(netip.MustParseAddr(config.Address), uint16(config.Port))
	network := "udp4"
	if address.Addr().Is6() {
		network = "udp6"
	}
	conn, listener, err := listenBoth(network, address, config.TCP)
	if err != nil {
		return nil, err
	}
	endpoint, err := newEndpoint(config, conn)
	if err != nil {
		_ = conn.Close()
		if listener != nil {
			_ = listener.Close()
		}
		return nil, err
	}
	endpoint.receiveBuffer = enlargeBuffers(conn, config.ReceiveBuffer, config.SendBuffer)
	if listener != nil {
		endpoint.serveTCP(listener)
	}
	return endpoint, nil
}

// portAttempts is how many ports that the system chose for UDP are tried before one is free for TCP as well. Where half of all were taken,
// one in a thousand starts would fail.
const portAttempts = 10

// listenBoth opens the UDP port and, if wanted, the TCP port of the same number.
func listenBoth(network string, address netip.AddrPort, tcp bool) (*net.UDPConn, net.Listener, error) {
	for attempt := 1; ; attempt++ {
		conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(address))
		if err != nil {
			return nil, nil, fmt.Errorf("listen for media: %w", err)
		}
		if !tcp {
			return conn, nil, nil
		}
		listener, err := net.Listen("tcp", netip.AddrPortFrom(address.Addr(), conn.LocalAddr().(*net.UDPAddr).AddrPort().Port()).String())
		if err == nil {
			return conn, listener, nil
		}
		_ = conn.Close()
		if address.Port() != 0 || attempt == portAttempts {
			return nil, nil, fmt.Errorf("listen for ICE-TCP: %w", err)
		}
	}
}

// Attach makes an endpoint on a packet connection of the caller's, such as one of an emulated network. Closing the endpoint closes it.
func Attach(config Config, conn net.PacketConn) (*Endpoint, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return newEndpoint(config, conn)
}

// Dial makes an endpoint that opens no port: its peers dial the ICE-TCP port that the remote peer names (RFC 6544), for networks that let no
// UDP out.
func Dial(config Config) (*Endpoint, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return newEndpoint(config, nil)
}

// newEndpoint makes an endpoint on a packet connection, or one that dials where there is none.
func newEndpoint(config Config, conn net.PacketConn) (*Endpoint, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate DTLS key: %w", err)
	}
	certificate, err := webrtc.GenerateCertificate(key)
	if err != nil {
		return nil, fmt.Errorf("generate DTLS certificate: %w", err)
	}
	// Pion writes to standard error by itself; what matters of its messages reaches us as errors and states.
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	e := &Endpoint{config: config, logs: logs, certificate: *certificate, conn: conn}
	switch {
	case conn == nil:
	case len(config.STUNServers) == 0 || len(config.PublicIPs) > 0:
		e.udp = webrtc.NewICEUDPMux(logs.NewLogger("ice"), conn)
	default:
		// This mux can ask STUN servers from the media port itself; each peer would ask from a port of its own.
		mux := ice.NewUniversalUDPMuxDefault(ice.UniversalUDPMuxParams{Logger: logs.NewLogger("ice"), UDPConn: conn})
		e.udp, e.reflexive = mux, learnAddresses(mux, config.STUNServers)
	}
	return e, nil
}

// stunTimeout bounds how long a STUN server may take to answer; the server's start waits for it.
const stunTimeout = 2 * time.Second

// learnAddresses asks STUN servers where they see the media port. Those that do not answer are passed over.
func learnAddresses(mux *ice.UniversalUDPMuxDefault, servers []string) []string {
	var known []string
	for _, server := range servers {
		address, err := net.ResolveUDPAddr("udp4", strings.TrimPrefix(server, "stun:"))
		if err != nil {
			continue
		}
		if seen, err := mux.GetXORMappedAddr(address, stunTimeout); err == nil && !slices.Contains(known, seen.IP.String()) {
			known = append(known, seen.IP.String())
		}
	}
	return known
}

// serveTCP takes ICE-TCP connections on a listener.
func (e *Endpoint) serveTCP(listener net.Listener) {
	e.tcp = ice.NewTCPMuxDefault(ice.TCPMuxParams{
		Listener:        listener,
		Logger:          e.logs.NewLogger("ice"),
		ReadBufferSize:  64,
		WriteBufferSize: tcpWriteBuffer,
	})
}

// Port is the number of the media port, 0 where there is none.
func (e *Endpoint) Port() uint16 {
	if e.conn == nil {
		return 0
	}
	if address, ok := e.conn.LocalAddr().(*net.UDPAddr); ok {
		return uint16(address.Port)
	}
	return 0
}

// ReceiveBuffer is the size in bytes that the kernel gave the media socket's receive buffer, 0 where it is unknown.
func (e *Endpoint) ReceiveBuffer() int { return e.receiveBuffer }

// ReceiveDrops is the number of datagrams that the kernel dropped at the media socket, where the system tells it.
func (e *Endpoint) ReceiveDrops() uint64 { return uint64(receiveDrops(e.conn)) }

// Close closes the sockets. Peers are closed by their owners, before.
func (e *Endpoint) Close() error {
	if e.conn == nil {
		return nil
	}
	err := e.udp.Close()
	if closeErr := e.conn.Close(); err == nil && closeErr != nil && !isClosed(closeErr) {
		err = closeErr
	}
	if e.tcp != nil {
		if closeErr := e.tcp.Close(); err == nil {
			err = closeErr
		}
	}
	return err
}

// settings are one peer's, since its tap is its own.
func (e *Endpoint) settings(t *tap) (webrtc.SettingEngine, error) {
	s := webrtc.SettingEngine{LoggerFactory: e.logs}
	s.BufferFactory = t.buffer
	var networks []webrtc.NetworkType
	if e.udp != nil {
		s.SetICEUDPMux(e.udp)
		networks = append(networks, webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6)
	}
	if e.tcp != nil {
		s.SetICETCPMux(e.tcp)
	}
	if e.tcp != nil || e.udp == nil {
		networks = append(networks, webrtc.NetworkTypeTCP4, webrtc.NetworkTypeTCP6)
	}
	s.SetNetworkTypes(networks)
	// Who takes connections makes none: a remote candidate must not send this host to addresses of the remote peer's choosing.
	s.DisableActiveTCP(e.udp != nil)
	s.SetIncludeLoopbackCandidate(true)
	s.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	rule := webrtc.ICEAddressRewriteRule{
		External: e.config.PublicIPs, AsCandidateType: webrtc.ICECandidateTypeHost, Mode: webrtc.ICEAddressRewriteReplace,
	}
	if len(e.reflexive) > 0 {
		// Where the NAT keeps port numbers, clients reach the media port there as well.
		rule.External, rule.Mode = e.reflexive, webrtc.ICEAddressRewriteAppend
	}
	if len(rule.External) > 0 {
		if err := s.SetICEAddressRewriteRules(rule); err != nil {
			return s, fmt.Errorf("public addresses %v: %w", rule.External, err)
		}
	}
	s.SetICETimeouts(e.config.DisconnectedTimeout, e.config.FailedTimeout, e.config.KeepAlive)
	// GCM first: it costs a sixth of AES-CM with HMAC-SHA1.
	s.SetSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AEAD_AES_256_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80)
	s.SetSRTPReplayProtectionWindow(uint(e.config.ReplayWindow))
	s.SetSRTCPReplayProtectionWindow(uint(e.config.ReplayWindow))
	// Pion waits a whole second before it repeats a lost handshake message, which is as long as a join may take.
	s.SetDTLSRetransmissionInterval(100 * time.Millisecond)
	s.SetFireOnTrackBeforeFirstRTP(true)
	// All lines of a kind offer the same codecs. Otherwise Pion would match the codecs of every line anew against all that it knows, which takes it
	// twenty times as long to take an answer of 300 lines: 50 ms instead of 2.5.
	s.DisableMediaEngineMultipleCodecs(true)
	return s, nil
}

// NewPeer makes a peer connection whose media goes to the sink.
func (e *Endpoint) NewPeer(sink Sink) (*Peer, error) {
	p := &Peer{events: newEventList(), lines: make(map[string]*webrtc.RTPTransceiver), outlets: make(map[string]*Outlet)}
	t := &tap{sink: sink, overflow: p.overflow}
	settings, err := e.settings(t)
	if err != nil {
		return nil, err
	}
	engine, err := newMediaEngine()
	if err != nil {
		return nil, err
	}
	p.api = webrtc.NewAPI(
		webrtc.WithMediaEngine(engine),
		webrtc.WithSettingEngine(settings),
		webrtc.WithInterceptorRegistry(&interceptor.Registry{}),
	)
	p.pc, err = p.api.NewPeerConnection(webrtc.Configuration{
		BundlePolicy: webrtc.BundlePolicyMaxBundle,
		Certificates: []webrtc.Certificate{e.certificate},
	})
	if err != nil {
		return nil, fmt.Errorf("new peer connection: %w", err)
	}
	p.ice = p.pc.SCTP().Transport().ICETransport()
	p.pc.OnICECandidate(p.events.addCandidate)
	p.pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			p.reached.Store(true)
		}
		p.events.addState(state)
	})
	return p, nil
}

// STUNServers are the configured ones, for clients to use as well.
func (e *Endpoint) STUNServers() []string { return e.config.STUNServers }
