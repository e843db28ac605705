package transport

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
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
	config        Config
	logs          logging.LoggerFactory
	certificate   webrtc.Certificate
	conn          net.PacketConn
	listener      net.Listener
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
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(address))
	if err != nil {
		return nil, fmt.Errorf("listen for media: %w", err)
	}
	endpoint, err := newEndpoint(config, conn)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	endpoint.receiveBuffer = enlargeBuffers(conn, config.ReceiveBuffer, config.SendBuffer)
	if config.TCP {
		if err := endpoint.listenTCP(); err != nil {
			_ = endpoint.Close()
			return nil, err
		}
	}
	return endpoint, nil
}

// Attach makes an endpoint on a packet connection of the caller's, such as one of an emulated network. Closing the endpoint closes it.
func Attach(config Config, conn net.PacketConn) (*Endpoint, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return newEndpoint(config, conn)
}

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
	return &Endpoint{
		config:      config,
		logs:        logs,
		certificate: *certificate,
		conn:        conn,
		udp:         webrtc.NewICEUDPMux(logs.NewLogger("ice"), conn),
	}, nil
}

func (e *Endpoint) listenTCP() error {
	listener, err := net.Listen("tcp", net.JoinHostPort(e.config.Address, strconv.Itoa(int(e.Port()))))
	if err != nil {
		return fmt.Errorf("listen for ICE-TCP: %w", err)
	}
	e.listener = listener
	e.tcp = ice.NewTCPMuxDefault(ice.TCPMuxParams{
		Listener:        listener,
		Logger:          e.logs.NewLogger("ice"),
		ReadBufferSize:  64,
		WriteBufferSize: tcpWriteBuffer,
	})
	return nil
}

// Port is the number of the media port.
func (e *Endpoint) Port() uint16 {
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
func (e *Endpoint) settings(t *tap) webrtc.SettingEngine {
	s := webrtc.SettingEngine{LoggerFactory: e.logs}
	s.BufferFactory = t.buffer
	s.SetICEUDPMux(e.udp)
	networks := []webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6}
	if e.tcp != nil {
		s.SetICETCPMux(e.tcp)
		networks = append(networks, webrtc.NetworkTypeTCP4, webrtc.NetworkTypeTCP6)
	}
	s.SetNetworkTypes(networks)
	s.SetIncludeLoopbackCandidate(true)
	s.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	if len(e.config.PublicIPs) > 0 {
		s.SetNAT1To1IPs(e.config.PublicIPs, webrtc.ICECandidateTypeHost)
	}
	s.SetICETimeouts(e.config.DisconnectedTimeout, e.config.FailedTimeout, e.config.KeepAlive)
	// GCM first: it costs a sixth of AES-CM with HMAC-SHA1.
	s.SetSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AEAD_AES_256_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80)
	s.SetSRTPReplayProtectionWindow(uint(e.config.ReplayWindow))
	s.SetSRTCPReplayProtectionWindow(uint(e.config.ReplayWindow))
	// Pion waits a whole second before it repeats a lost handshake message, which is as long as a join may take.
	s.SetDTLSRetransmissionInterval(100 * time.Millisecond)
	s.SetFireOnTrackBeforeFirstRTP(true)
	return s
}

// NewPeer makes a peer connection whose media goes to the sink.
func (e *Endpoint) NewPeer(sink Sink) (*Peer, error) {
	p := &Peer{events: newEventList(), lines: make(map[string]*webrtc.RTPTransceiver), outlets: make(map[string]*Outlet)}
	t := &tap{sink: sink, overflow: func() { p.events.add(Event{State: StateFailed}) }}
	engine, err := newMediaEngine()
	if err != nil {
		return nil, err
	}
	p.api = webrtc.NewAPI(
		webrtc.WithMediaEngine(engine),
		webrtc.WithSettingEngine(e.settings(t)),
		webrtc.WithInterceptorRegistry(&interceptor.Registry{}),
	)
	servers := []webrtc.ICEServer{}
	if len(e.config.STUNServers) > 0 {
		servers = append(servers, webrtc.ICEServer{URLs: e.config.STUNServers})
	}
	p.pc, err = p.api.NewPeerConnection(webrtc.Configuration{
		ICEServers:   servers,
		BundlePolicy: webrtc.BundlePolicyMaxBundle,
		Certificates: []webrtc.Certificate{e.certificate},
	})
	if err != nil {
		return nil, fmt.Errorf("new peer connection: %w", err)
	}
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
