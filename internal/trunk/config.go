package trunk

import (
	"crypto/tls"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/panics"
)

// Place is the place that this package passes to Config.Guard.
const Place = "trunk"

// DefaultLimits are the limits of the estimate of one lane. Nodes have 10 Gbit/s and more between them, and a taking
// node asks for what its receivers' estimates permit.
var DefaultLimits = congestion.Limits{Min: 2e6, Start: 200e6, Max: 10e9}

const (
	receiveBuffer = 8 << 20
	sendBuffer    = 8 << 20
	// sendPatience is the time for which sending waits for room in a send buffer, as for clients.
	sendPatience = 5 * time.Millisecond
)

// Config is the configuration of a Host.
type Config struct {
	// Node is the name of this node, Incarnation a number that is higher after each start.
	Node        string
	Incarnation uint64
	// Address is the local address for trunks.
	Address netip.AddrPort
	// Lanes is the number of lanes that this node dials, 1 to transport.MaxLanes. 0 selects one for each two
	// processors.
	Lanes int
	// Region is the region of this node. Fanout is the maximum number of nodes to which this node sends a publication
	// before further nodes get parents. No parent of a publication of this node has more children. 0 is DefaultFanout.
	Region string
	Fanout int
	// Limits are the limits of the estimate of one lane. Zero values select those of DefaultLimits.
	Limits congestion.Limits
	// Certificate returns this node's certificate, Verify the name in another node's certificate, or an error if the
	// certificate is not one of the cluster. Both are called by any goroutine.
	Certificate func() *tls.Certificate
	Verify      func(raw [][]byte) (node string, err error)
	// Guard confines panics to one trunk. Without a guard a panic ends the program, and so does a panic while packets
	// of media are received.
	Guard *panics.Guard
	// Open returns the connection of a port in place of a UDP socket, for tests with emulated networks.
	Open func(address netip.AddrPort) (net.PacketConn, error)
}

// services is shared by the parts of a Host.
type services struct {
	cfg    Config
	engine *forward.Engine
	// running are the goroutines of the host. notify is signalled when Step has work.
	running sync.WaitGroup
	notify  chan struct{}

	// inbox has the reports of the goroutines to Step.
	mu    sync.Mutex
	inbox []any
}

// start starts a goroutine. A panic ends f, and failed is called.
func (s *services) start(f, failed func()) {
	s.running.Go(func() {
		if !s.cfg.Guard.Try(Place, f) {
			failed()
		}
	})
}

// report adds a report to the inbox.
func (s *services) report(r any) {
	s.mu.Lock()
	s.inbox = append(s.inbox, r)
	s.mu.Unlock()
	s.wake()
}

// reports empties the inbox.
func (s *services) reports() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	inbox := s.inbox
	s.inbox = nil
	return inbox
}

// wake signals notify.
func (s *services) wake() {
	select {
	case s.notify <- struct{}{}:
	default:
	}
}
