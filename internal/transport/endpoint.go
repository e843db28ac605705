package transport

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pion/dtls/v3/pkg/crypto/fingerprint"
	"github.com/pion/dtls/v3/pkg/crypto/selfsign"
	"github.com/pion/logging"

	"github.com/volsfu/volsfu/internal/transport/datachannels"
	"github.com/volsfu/volsfu/internal/transport/hostnet"
	"github.com/volsfu/volsfu/internal/transport/icemux"
	"github.com/volsfu/volsfu/internal/transport/icetcp"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
	"github.com/volsfu/volsfu/internal/udp"
)

// Endpoint is the media port of one process. The peers that an Endpoint makes share its sockets. The methods are safe
// for concurrent use.
type Endpoint struct {
	config      Config
	logs        logging.LoggerFactory
	certificate tls.Certificate
	// fingerprint is the certificate's fingerprint in the form of descriptions.
	fingerprint string
	// ports are the media ports, none if the endpoint opens no port and dials over TCP. several is set if each remote
	// peer is reached through all of them.
	ports   atomic.Pointer[[]*mediaPort]
	several bool
	// interfaces is nil unless the ports are those of named interfaces.
	interfaces *interfacePorts
	neighbours neighbours
	// tcp is nil if ICE-TCP is not accepted.
	tcp *icetcp.Mux
	// chunks limits the rate of SCTP chunks of all remote peers at one address.
	chunks *ratelimit.SharedSources
	// reflexive are this host's addresses as STUN servers see them.
	reflexive []string
	// network is the list of network interfaces that all ICE agents share.
	network interfaceList
	// readers are the goroutines of the sockets, tending is the goroutine of the muxes and of consent.
	readers, tending sync.WaitGroup
	// closed is closed by Close, and ends the goroutine of tending.
	closed chan struct{}
	// recovered has peers without a second route of which a pair works again, for tend.
	recovered chan *Peer
	// failed receives the error of a socket that cannot be read any more. failing closes the channel once.
	failed           chan error
	closing, failing sync.Once
}

// recoveredPeers is the number of peers that may wait for a choice of their routes at once.
const recoveredPeers = 64

// Listen opens the media port or, if interfaces are configured, a port on each of them.
func Listen(config Config) (*Endpoint, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if len(config.Interfaces) > 0 {
		return listenEach(config, hostNetwork{hostnet.NamedInterface, udp.Listen})
	}
	port, listener, err := listenBoth(config)
	if err != nil {
		return nil, err
	}
	endpoint, err := newEndpoint(config, nil, port)
	if err != nil {
		_ = port.Close()
		if listener != nil {
			_ = listener.Close()
		}
		return nil, err
	}
	if listener != nil {
		endpoint.tcp = icetcp.Serve(listener, endpoint.tcpConfig())
	}
	return endpoint, nil
}

// portAttempts is the number of ports, chosen by the system for UDP, that are tried until one is free for TCP, too. If
// half of all ports were taken, one start in a thousand would fail.
const portAttempts = 10

// listenBoth opens the UDP port and, if configured, the TCP port of the same number.
func listenBoth(config Config) (*udp.Port, net.Listener, error) {
	address := netip.AddrPortFrom(netip.MustParseAddr(config.Address), uint16(config.Port))
	sockets := config.Sockets
	if sockets == 0 {
		sockets = runtime.GOMAXPROCS(0)
	}
	for attempt := 1; ; attempt++ {
		port, err := udp.Listen(config.sockets(address, sockets))
		if err != nil {
			return nil, nil, fmt.Errorf("listen for media: %w", err)
		}
		if !config.TCP {
			return port, nil, nil
		}
		listener, err := net.Listen("tcp", netip.AddrPortFrom(address.Addr(), port.Address().Port()).String())
		if err == nil {
			return port, listener, nil
		}
		_ = port.Close()
		if address.Port() != 0 || attempt == portAttempts {
			return nil, nil, fmt.Errorf("listen for ICE-TCP: %w", err)
		}
	}
}

// Attach makes an endpoint on the caller's packet connections, for example of emulated networks. Remote peers are
// reached through each of the connections, like through the interfaces of Config.Interfaces. Close closes the
// connections.
func Attach(config Config, conns ...net.PacketConn) (*Endpoint, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	var ports []*udp.Port
	for _, conn := range conns {
		port, err := udp.Attach(conn)
		if err != nil {
			return nil, fmt.Errorf("attach: %w", err)
		}
		ports = append(ports, port)
	}
	return newEndpoint(config, nil, ports...)
}

// Dial makes an endpoint that opens no port. Its peers dial the ICE-TCP port of the remote peer (RFC 6544), for
// networks that block UDP.
func Dial(config Config) (*Endpoint, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return newEndpoint(config, nil)
}

// newEndpoint makes an endpoint on ports. Without ports, the endpoint dials.
func newEndpoint(config Config, interfaces *interfacePorts, ports ...*udp.Port) (*Endpoint, error) {
	// Pion would log to standard error. Errors and states report the same failures.
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	e := &Endpoint{
		config: config, logs: logs, failed: make(chan error, 1), closed: make(chan struct{}),
		recovered:  make(chan *Peer, recoveredPeers),
		interfaces: interfaces, several: interfaces != nil || len(ports) > 1,
		chunks: ratelimit.NewSharedSources(datachannels.SourceRate.PerSecond, datachannels.SourceRate.Burst),
	}
	if err := e.certify(); err != nil {
		return nil, err
	}
	if len(ports) == 0 {
		return e, nil
	}
	if interfaces != nil {
		interfaces.endpoint = e
	}
	if !config.Initiates {
		e.neighbours.port = ports[0]
		e.neighbours.config = udp.SenderConfig{Buffer: config.SendBuffer, Patience: sendPatience}
	}
	var started []*mediaPort
	for i, port := range ports {
		started = append(started, e.start(port, uint8(i)))
	}
	e.ports.Store(&started)
	e.tending.Go(func() { e.try(e.tend) })
	if len(config.PublicIPs) == 0 {
		e.reflexive = started[0].mux.LearnAddresses(config.STUNServers)
	}
	return e, nil
}

// try runs a goroutine of the endpoint, which ends when f returns. A client's endpoint serves that client alone: if f
// panics, the endpoint has failed. The peers of a server share the goroutine, so a panic ends the process.
func (e *Endpoint) try(f func()) {
	if !e.config.Initiates {
		f()
	} else if !e.config.Guard.Try(placeMedia, f) {
		e.ended(errPanicked)
	}
}

// certify makes the certificate of all peers of the endpoint.
func (e *Endpoint) certify() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generate DTLS key: %w", err)
	}
	if e.certificate, err = selfsign.SelfSign(key); err != nil {
		return fmt.Errorf("generate DTLS certificate: %w", err)
	}
	parsed, err := x509.ParseCertificate(e.certificate.Certificate[0])
	if err != nil {
		return fmt.Errorf("own DTLS certificate: %w", err)
	}
	value, err := fingerprint.Fingerprint(parsed, crypto.SHA256)
	if err != nil {
		return fmt.Errorf("fingerprint of own DTLS certificate: %w", err)
	}
	e.fingerprint = "sha-256 " + strings.ToUpper(value)
	return nil
}

// Port returns the number of the media port, of the first if there are several, 0 if there is none.
func (e *Endpoint) Port() uint16 {
	if ports := e.mediaPorts(); len(ports) > 0 {
		return ports[0].Address().Port()
	}
	return 0
}

// Stats returns the counts of the endpoint's sockets, all zero if there are no sockets. The counts of a port that was
// replaced when its interface returned are not included.
func (e *Endpoint) Stats() (sum udp.Stats) {
	for _, port := range e.mediaPorts() {
		sum.Add(port.Stats())
	}
	return sum
}

// TCPStats returns the counts of the endpoint's ICE-TCP connections, all zero if the endpoint does not accept ICE-TCP.
func (e *Endpoint) TCPStats() icetcp.Stats {
	if e.tcp == nil {
		return icetcp.Stats{}
	}
	return e.tcp.Stats()
}

// tcpConfig returns the configuration of ICE-TCP.
func (e *Endpoint) tcpConfig() icetcp.Config {
	return icetcp.Config{
		Connections: e.config.TCPConnections, AddressConnections: e.config.TCPAddressConnections,
		Latency: e.config.TCPLatency, Consent: consentLife,
		PeerChecks: icemux.AgentRate, AddressChecks: icemux.SourceRate,
		Guard: e.config.Guard, Failed: e.ended, Logs: e.logs,
	}
}

// Limits counts the datagrams that limits rejected, on receiving or on sending. All counts are zero if there is no
// media port.
type Limits struct {
	// ChecksRefused counts connectivity checks from more addresses than a remote peer may have.
	ChecksRefused uint64
	// ControlLimited counts STUN messages and DTLS records above the rate limit of a client or an address.
	ControlLimited uint64
	// Unconsented counts packets that were not sent because the consent of the remote peer had expired or, over
	// ICE-TCP, because the remote peer was silent.
	Unconsented uint64
}

// Limits returns the counts since the endpoint was opened.
func (e *Endpoint) Limits() (limits Limits) {
	for _, port := range e.mediaPorts() {
		counts := port.mux.Counts()
		limits.ChecksRefused += counts.Refused
		limits.ControlLimited += counts.Limited
		limits.Unconsented += counts.Unconsented
	}
	if e.tcp != nil {
		limits.Unconsented += e.tcp.Unconsented()
	}
	return limits
}

// Failed returns a channel with the error of a socket that can no longer receive, or of a listener that can no longer
// accept. From then on traffic on that socket is lost. Close closes the channel and reports no error of its own.
func (e *Endpoint) Failed() <-chan error { return e.failed }

// ReceiveBuffer returns the size in bytes of each socket's receive buffer in the kernel, 0 if the size is unknown.
func (e *Endpoint) ReceiveBuffer() int {
	if ports := e.mediaPorts(); len(ports) > 0 {
		return ports[0].ReceiveBuffer()
	}
	return 0
}

// SendBuffer returns the size in bytes of each socket's send buffer in the kernel, 0 if the size is unknown.
func (e *Endpoint) SendBuffer() int {
	if ports := e.mediaPorts(); len(ports) > 0 {
		return ports[0].SendBuffer()
	}
	return 0
}

// STUNServers returns the configured STUN servers. Clients use the same ones.
func (e *Endpoint) STUNServers() []string { return e.config.STUNServers }

// Close closes the sockets. The owners of peers close the peers before.
func (e *Endpoint) Close() error {
	var errs []error
	e.closing.Do(func() { close(e.closed) })
	// The goroutine of tending may replace a port.
	e.tending.Wait()
	for _, port := range e.mediaPorts() {
		errs = append(errs, port.close())
	}
	e.readers.Wait()
	if e.tcp != nil {
		errs = append(errs, e.tcp.Close())
	}
	// No goroutine is left that reports failures.
	e.failing.Do(func() { close(e.failed) })
	return errors.Join(errs...)
}
