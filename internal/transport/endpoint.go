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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/dtls/v3/pkg/crypto/fingerprint"
	"github.com/pion/dtls/v3/pkg/crypto/selfsign"
	"github.com/pion/ice/v4"
	"github.com/pion/logging"

	"github.com/volsfu/volsfu/internal/udp"
)

// Endpoint is the media port of one process: peers made by it share its sockets. Its methods are safe for concurrent use.
type Endpoint struct {
	config      Config
	logs        logging.LoggerFactory
	certificate tls.Certificate
	// fingerprint is the certificate's, as descriptions carry it.
	fingerprint string
	// port, control and mux are nil where media goes over TCP that this endpoint dials.
	port    *udp.Port
	control *controlConn
	mux     *limitedMux
	// tcp and connections are nil where ICE-TCP is not accepted.
	tcp         ice.TCPMux
	connections *tcpListener
	// reflexive are this host's addresses as STUN servers see them.
	reflexive []string
	routes    routes
	// stamping counts those who want stamps; switching it on and off is guarded by stamped.
	stamping atomic.Int32
	stamped  sync.Mutex
	readers  sync.WaitGroup
	// failed takes the error of a socket that cannot be read any more; closing ends it.
	failed  chan error
	closing sync.Once
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
		endpoint.serveTCP(listener)
	}
	return endpoint, nil
}

// portAttempts is how many ports that the system chose for UDP are tried before one is free for TCP as well. Where half of all were taken,
// one in a thousand starts would fail.
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
			PlainSending: !config.Segmentation, PlainReceiving: !config.Coalescing,
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

// Attach makes an endpoint on a packet connection of the caller's, such as one of an emulated network. Closing the endpoint closes it.
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

// Dial makes an endpoint that opens no port: its peers dial the ICE-TCP port that the remote peer names (RFC 6544), for networks that let no
// UDP out.
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
	e := &Endpoint{config: config, logs: logs, port: port, failed: make(chan error, 1)}
	if err := e.certify(); err != nil {
		return nil, err
	}
	if port == nil {
		return e, nil
	}
	e.control = newControlConn(port)
	for _, socket := range port.Sockets() {
		e.readers.Go(func() { e.read(socket) })
	}
	logger := logs.NewLogger("ice")
	if len(config.STUNServers) == 0 || len(config.PublicIPs) > 0 {
		e.mux = newLimitedMux(ice.NewUDPMuxDefault(ice.UDPMuxParams{Logger: logger, UDPConn: e.control}))
		return e, nil
	}
	// This mux can ask STUN servers from the media port itself; each peer would ask from a port of its own.
	mux := ice.NewUniversalUDPMuxDefault(ice.UniversalUDPMuxParams{Logger: logger, UDPConn: e.control})
	e.mux, e.reflexive = newLimitedMux(mux), learnAddresses(mux, config.STUNServers)
	return e, nil
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
func (e *Endpoint) TCPStats() TCPStats {
	if e.connections == nil {
		return TCPStats{}
	}
	return e.connections.stats()
}

// ChecksRefused counts the connectivity checks that came from more addresses than a remote peer may have.
func (e *Endpoint) ChecksRefused() uint64 {
	if e.mux == nil {
		return 0
	}
	return e.mux.refused.Load()
}

// Failed gives the error of a socket that cannot be read any more, or accepts nothing any more, though nobody has closed it: what comes on it is lost from then on. Close
// closes the channel.
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
		errs = append(errs, e.mux.Close(), e.port.Close(), e.control.Close())
		e.readers.Wait()
	}
	if e.tcp != nil {
		errs = append(errs, e.tcp.Close())
	}
	// Nobody is left who could tell anything.
	e.closing.Do(func() { close(e.failed) })
	return errors.Join(errs...)
}
