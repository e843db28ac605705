// Package icetcp accepts ICE-TCP connections (RFC 6544). It limits their number in all, from one address and for one
// peer, and drops packets that a connection does not accept in time.
//
// Pion's goroutines accept from the listener, read from the connections and write to them. Writing never waits: each
// connection has a goroutine that writes while packets are queued.
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

// PanicPlace is the place that Config.Guard receives for panics while a connection is read or written.
const PanicPlace = "tcp"

// errPanicked is the error that Pion receives from a call that panicked.
var errPanicked = errors.New("panic in a goroutine of the peer")

// Config is the configuration of a Mux.
type Config struct {
	// Connections and AddressConnections limit the open connections, in all and from one address.
	Connections, AddressConnections int
	// Latency is the time for which packets may wait for a connection before they are dropped. 0 is no limit.
	Latency time.Duration
	// Consent is the time after the last bytes from the remote peer for which media may be sent (RFC 7675).
	Consent time.Duration
	// PeerChecks limits the STUN messages of all connections of one peer, AddressChecks the STUN messages of the
	// strangers of one address.
	PeerChecks, AddressChecks ratelimit.Rate
	// Guard confines panics to a connection. Without a Guard, a panic ends the program.
	Guard *panics.Guard
	// Failed receives an error after which no connection is accepted.
	Failed func(error)
	Logs   logging.LoggerFactory
}

// readPackets is the number of received packets that wait for ICE, in each candidate of each peer. If the queue is
// full, packets wait in the kernel. Each place of the queue has 56 bytes, also for peers that use UDP.
const readPackets = 16

// Mux is Pion's mux of TCP connections, with a listener that knows the peers. Mux implements ice.TCPMux.
type Mux struct {
	*ice.TCPMuxDefault
	listener *listener
}

// Serve accepts connections from a listener until the Mux is closed.
func Serve(inner net.Listener, config Config) *Mux {
	l := newListener(inner, config, limits{
		total: config.Connections, address: config.AddressConnections, peer: maxPeerConnections, age: config.Latency,
	})
	return &Mux{
		TCPMuxDefault: ice.NewTCPMuxDefault(ice.TCPMuxParams{
			Listener:                     l,
			Logger:                       config.Logs.NewLogger("ice"),
			ReadBufferSize:               readPackets,
			FirstStunBindTimeout:         firstMessageTime,
			AliveDurationForConnFromStun: firstMessageTime,
		}),
		listener: l,
	}
}

// GetConnByUfrag implements ice.TCPMux.
func (m *Mux) GetConnByUfrag(ufrag string, isIPv6 bool, local net.IP) (net.PacketConn, error) {
	m.listener.addPeer(ufrag)
	return m.TCPMuxDefault.GetConnByUfrag(ufrag, isIPv6, local)
}

// RemoveConnByUfrag implements ice.TCPMux.
func (m *Mux) RemoveConnByUfrag(ufrag string) {
	m.listener.removePeer(ufrag)
	m.TCPMuxDefault.RemoveConnByUfrag(ufrag)
}

// Stats returns the counts of connections.
func (m *Mux) Stats() Stats { return m.listener.stats() }

// Unconsented returns the number of packets that were not sent because the remote peer was silent.
func (m *Mux) Unconsented() uint64 { return m.listener.unconsented.Load() }
