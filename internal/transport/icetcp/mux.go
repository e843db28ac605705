// Package icetcp accepts the TCP connections of ICE (RFC 6544): it bounds how many there are, in all, from one address
// and for one peer, and drops packets that a connection does not take in time.
//
// Pion's goroutines accept from the listener, read from the connections and write to them. Writing never waits: each
// connection has a goroutine that writes while packets wait.
package icetcp

import (
	"errors"
	"net"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/logging"

	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

// PanicPlace is the place that Config.Guard is told of panics while a connection is read or written.
const PanicPlace = "tcp"

// errPanicked is what Pion is told of a call that panicked.
var errPanicked = errors.New("panic in a goroutine of the peer")

// Config tunes a Mux.
type Config struct {
	// Connections and AddressConnections bound the connections at once, in all and from one address.
	Connections, AddressConnections int
	// Latency is how long packets may wait for a connection before they are dropped. 0 is any time.
	Latency time.Duration
	// Consent is how long after the remote peer has last sent something it may be sent media (RFC 7675).
	Consent time.Duration
	// PeerChecks bounds the STUN messages of all connections of one peer, AddressChecks those of the strangers of one
	// address.
	PeerChecks, AddressChecks ratelimit.Rate
	// Guard confines panics to a connection. Without one they end the program.
	Guard *panics.Guard
	// Failed receives an error after which no connection is accepted.
	Failed func(error)
	Logs   logging.LoggerFactory
}

// Mux is Pion's mux of TCP connections, with a listener that knows the peers. It implements ice.TCPMux.
type Mux struct {
	*ice.TCPMuxDefault
	listener *listener
}

// Serve accepts connections on a listener, until the Mux is closed.
func Serve(inner net.Listener, config Config) *Mux {
	l := newListener(inner, config, limits{
		total: config.Connections, address: config.AddressConnections, peer: maxPeerConnections, age: config.Latency,
	})
	return &Mux{
		TCPMuxDefault: ice.NewTCPMuxDefault(ice.TCPMuxParams{
			Listener:                     l,
			Logger:                       config.Logs.NewLogger("ice"),
			ReadBufferSize:               64,
			FirstStunBindTimeout:         firstMessageTime,
			AliveDurationForConnFromStun: firstMessageTime,
		}),
		listener: l,
	}
}

// GetConnByUfrag implements ice.TCPMux.
func (m *Mux) GetConnByUfrag(ufrag string, isIPv6 bool, local net.IP) (net.PacketConn, error) {
	m.listener.know(ufrag)
	return m.TCPMuxDefault.GetConnByUfrag(ufrag, isIPv6, local)
}

// RemoveConnByUfrag implements ice.TCPMux.
func (m *Mux) RemoveConnByUfrag(ufrag string) {
	m.listener.forget(ufrag)
	m.TCPMuxDefault.RemoveConnByUfrag(ufrag)
}

// Stats returns the counts of connections.
func (m *Mux) Stats() Stats { return m.listener.stats() }

// Unconsented returns the number of packets that were not sent since the remote peer was silent.
func (m *Mux) Unconsented() uint64 { return m.listener.unconsented.Load() }
