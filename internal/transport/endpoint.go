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
	"github.com/volsfu/volsfu/internal/transport/icemux"
	"github.com/volsfu/volsfu/internal/transport/icetcp"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
	"github.com/volsfu/volsfu/internal/transport/secure"
	"github.com/volsfu/volsfu/internal/udp"
)

// Endpoint is the media port of one process: peers made by it share its sockets. Its methods are safe for concurrent
// use.
type Endpoint struct {
	config      Config
	logs        logging.LoggerFactory
	certificate tls.Certificate
	// fingerprint is the certificate's, as descriptions carry it.
	fingerprint string
	// port and mux are nil if media goes over TCP that this endpoint dials.
	port       *udp.Port
	mux        *icemux.Mux
	neighbours neighbours
	// tcp is nil if ICE-TCP is not accepted.
	tcp *icetcp.Mux
	// chunks bounds the SCTP chunks of all remote peers of an address.
	chunks *ratelimit.SharedSources
	// reflexive are this host's addresses as STUN servers see them.
	reflexive []string
	routes    routes
	// interfaces are listed for all ICE agents together.
	interfaces interfaceList
	// stamping counts those who want stamps; switching it on and off is guarded by stamped.
	stamping atomic.Int32
	stamped  sync.Mutex
	readers  sync.WaitGroup
	// closed ends the goroutines that do not read.
	closed chan struct{}
	// failed takes the error of a socket that cannot be read any more; closing ends it.
	failed           chan error
	closing, failing sync.Once
}

// Listen opens the media port.
func Listen(config Config) (*Endpoint, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	port, listener, err := listenBoth(config)
	if err != nil {
		return nil, err
	}
	endpoint, err := newEndpoint(config, port)
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

// portAttempts is how many ports that the system chose for UDP are tried before one is free for TCP as well. Where half
// of all were taken, one in a thousand starts would fail.
const portAttempts = 10

// listenBoth opens the UDP port and, if wanted, the TCP port of the same number.
func listenBoth(config Config) (*udp.Port, net.Listener, error) {
	address := netip.AddrPortFrom(netip.MustParseAddr(config.Address), uint16(config.Port))
	sockets := config.Sockets
	if sockets == 0 {
		sockets = runtime.GOMAXPROCS(0)
	}
	for attempt := 1; ; attempt++ {
		port, err := udp.Listen(udp.Config{
			Address: address, Sockets: sockets, ReceiveBuffer: config.ReceiveBuffer, SendBuffer: config.SendBuffer,
			Patience: config.patience(), PlainSending: !config.Segmentation, PlainReceiving: !config.Coalescing,
		})
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

// Attach makes an endpoint on a packet connection of the caller's, such as one of an emulated network. Closing the
// endpoint closes it.
func Attach(config Config, conn net.PacketConn) (*Endpoint, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	port, err := udp.Attach(conn)
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	return newEndpoint(config, port)
}

// Dial makes an endpoint that opens no port: its peers dial the ICE-TCP port that the remote peer names (RFC 6544), for
// networks that let no UDP out.
func Dial(config Config) (*Endpoint, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	return newEndpoint(config, nil)
}

// newEndpoint makes an endpoint on a port, or one that dials where there is none.
func newEndpoint(config Config, port *udp.Port) (*Endpoint, error) {
	// Pion writes to standard error by itself; what matters of its messages reaches us as errors and states.
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	e := &Endpoint{
		config: config, logs: logs, port: port, failed: make(chan error, 1), closed: make(chan struct{}),
		chunks: ratelimit.NewSharedSources(datachannels.SourceRate.PerSecond, datachannels.SourceRate.Burst),
	}
	if err := e.certify(); err != nil {
		return nil, err
	}
	if port == nil {
		return e, nil
	}
	e.mux = icemux.New(port, &e.routes, icemux.Config{
		PublicIPs: config.PublicIPs, PrivateCandidates: config.PrivateCandidates, Unbounded: config.Initiates,
		Records: secure.SourceRate,
	})
	if !config.Initiates {
		e.neighbours.port = port
		e.neighbours.config = udp.SenderConfig{Buffer: config.SendBuffer, Patience: sendPatience}
	}
	for _, socket := range port.Sockets() {
		e.readers.Go(func() { e.try(func() { e.read(socket) }) })
	}
	e.readers.Go(func() { e.try(e.tend) })
	if len(config.PublicIPs) == 0 {
		e.reflexive = e.mux.LearnAddresses(config.STUNServers)
	}
	return e, nil
}

// try is a goroutine of the endpoint, which ends when f returns. The endpoint of a client serves that client alone: if
// f panics there, the endpoint has failed. The peers of a server share the goroutine, and a panic ends the process.
func (e *Endpoint) try(f func()) {
	if !e.config.Initiates {
		f()
	} else if !e.config.Guard.Try(placeMedia, f) {
		e.ended(errPanicked)
	}
}

// certify makes the certificate that all peers of the endpoint present.
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

// Port is the number of the media port, 0 where there is none.
func (e *Endpoint) Port() uint16 {
	if e.port == nil {
		return 0
	}
	return e.port.Address().Port()
}

// Stats are the counts of the endpoint's sockets, all zero where it has none.
func (e *Endpoint) Stats() udp.Stats {
	if e.port == nil {
		return udp.Stats{}
	}
	return e.port.Stats()
}

// TCPStats are the counts of the endpoint's ICE-TCP connections, all zero where it accepts none.
func (e *Endpoint) TCPStats() icetcp.Stats {
	if e.tcp == nil {
		return icetcp.Stats{}
	}
	return e.tcp.Stats()
}

// tcpConfig is the configuration of ICE-TCP.
func (e *Endpoint) tcpConfig() icetcp.Config {
	return icetcp.Config{
		Connections: e.config.TCPConnections, AddressConnections: e.config.TCPAddressConnections,
		Latency: e.config.TCPLatency, Consent: consentLife,
		PeerChecks: icemux.AgentRate, AddressChecks: icemux.SourceRate,
		Guard: e.config.Guard, Failed: e.ended, Logs: e.logs,
	}
}

// Limits are the counts of what was not taken or sent since a limit was reached, all zero if there is no media port.
type Limits struct {
	// ChecksRefused are connectivity checks from more addresses than a remote peer may have.
	ChecksRefused uint64
	// ControlLimited are STUN messages and DTLS records beyond what one client or one address may send.
	ControlLimited uint64
	// Unconsented are packets that were not sent since the remote peer had answered no check for too long, or, over
	// ICE-TCP, sent nothing.
	Unconsented uint64
}

// Limits returns the counts since the endpoint was opened.
func (e *Endpoint) Limits() Limits {
	if e.mux == nil {
		return Limits{}
	}
	counts := e.mux.Counts()
	limits := Limits{
		ChecksRefused: counts.Refused, ControlLimited: counts.Limited, Unconsented: counts.Unconsented,
	}
	if e.tcp != nil {
		limits.Unconsented += e.tcp.Unconsented()
	}
	return limits
}

// Failed gives the error of a socket that cannot be read any more, or accepts nothing any more, though nobody has
// closed it: what comes on it is lost from then on. Close closes the channel.
func (e *Endpoint) Failed() <-chan error { return e.failed }

// ReceiveBuffer is the size in bytes that the kernel gave each socket's receive buffer, 0 where it is unknown.
func (e *Endpoint) ReceiveBuffer() int {
	if e.port == nil {
		return 0
	}
	return e.port.ReceiveBuffer()
}

// SendBuffer is the size in bytes that the kernel gave each socket's send buffer, 0 where it is unknown.
func (e *Endpoint) SendBuffer() int {
	if e.port == nil {
		return 0
	}
	return e.port.SendBuffer()
}

// STUNServers are the configured ones, for clients to use as well.
func (e *Endpoint) STUNServers() []string { return e.config.STUNServers }

// Close closes the sockets. Peers are closed by their owners, before.
func (e *Endpoint) Close() error {
	var errs []error
	if e.port != nil {
		e.closing.Do(func() { close(e.closed) })
		errs = append(errs, e.mux.Close(), e.port.Close())
		e.readers.Wait()
	}
	if e.tcp != nil {
		errs = append(errs, e.tcp.Close())
	}
	// No goroutine is left that reports failures.
	e.failing.Do(func() { close(e.failed) })
	return errors.Join(errs...)
}
