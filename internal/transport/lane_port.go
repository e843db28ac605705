package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/logging"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
	"github.com/volsfu/volsfu/internal/transport/secure"
	"github.com/volsfu/volsfu/internal/udp"
)

// A lane is a connection between two servers that know each other's addresses and certificates: DTLS and SRTP on UDP,
// without ICE and without descriptions. The dialing side has a socket of its own for each lane. The accepting side
// distinguishes lanes by the remote address.

// MaxLanes bounds the lanes between two servers.
const MaxLanes = 4

// ErrLane is wrapped with the reason why a lane was not opened.
var ErrLane = errors.New("lane was not opened")

const (
	// laneHandshakes bounds the handshakes of accepted lanes at once. Every server of a cluster of 64 nodes may dial
	// all its lanes at the same time. As many lanes again may be unproven.
	laneHandshakes = 64 * MaxLanes
	// laneHandshake is the maximum duration of a handshake: 100 repetitions of a flight.
	laneHandshake = 10 * time.Second
)

// laneOpenings limits the accepted lanes of one address: three attempts per second with all lanes.
var laneOpenings = ratelimit.Rate{PerSecond: 3 * MaxLanes, Burst: 4 * MaxLanes}

// LaneConfig is the configuration of a LanePort.
type LaneConfig struct {
	// Certificate returns the certificate of this server. It is read for each handshake.
	Certificate func() *tls.Certificate
	// Verify returns the name in the certificate of the remote server, or an error if the certificate is not valid.
	Verify func(raw [][]byte) (name string, err error)
	// Accepts is set if remote servers may dial this port.
	Accepts bool
}

// LanePort is a UDP port for lanes. Its methods are safe for concurrent use.
type LanePort struct {
	port     *udp.Port
	config   LaneConfig
	logs     logging.LoggerFactory
	accepted chan *Lane
	openings *ratelimit.SharedSources
	readers  sync.WaitGroup
	// ending are the lanes that are closed and may not have sent their last record.
	ending sync.WaitGroup
	// started is the time from which lanes count the time of their last packet.
	started time.Time
	// failed receives the error of a socket that cannot receive.
	failed chan error

	mu     sync.Mutex
	closed bool
	// unproven are the accepted lanes whose remote address may be forged, in the order of their arrival. opening counts
	// those with a proven address whose handshake has not ended.
	unproven []*Lane
	opening  int
	// lanes are replaced, never changed, because all readers look at them.
	lanes atomic.Pointer[map[netip.AddrPort]*Lane]

	ignored atomic.Uint64
}

// NewLanePort starts to read a port. Close closes the port.
func NewLanePort(port *udp.Port, config LaneConfig) *LanePort {
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	p := &LanePort{
		port: port, config: config, logs: logs, accepted: make(chan *Lane, laneHandshakes), started: time.Now(),
		openings: ratelimit.NewSharedSources(laneOpenings.PerSecond, laneOpenings.Burst), failed: make(chan error, 1),
	}
	p.lanes.Store(&map[netip.AddrPort]*Lane{})
	for _, socket := range port.Sockets() {
		socket.TakeStamps(true)
		p.readers.Go(func() { p.read(socket) })
	}
	return p
}

// Address returns the local address of the port.
func (p *LanePort) Address() netip.AddrPort { return p.port.Address() }

// Accepted returns the lanes that remote servers have begun to open. The receiver calls Handshake. Close closes the
// channel.
func (p *LanePort) Accepted() <-chan *Lane { return p.accepted }

// Failed returns a channel with the error of a socket that cannot receive. The lanes of the port are closed. The owner
// of the port should close the port and open another. Close closes the channel and reports no error of its own.
func (p *LanePort) Failed() <-chan error { return p.failed }

// Ignored returns the number of datagrams of addresses without a lane that did not open one.
func (p *LanePort) Ignored() uint64 { return p.ignored.Load() }

// Dial returns a lane to an address. The caller calls Handshake.
func (p *LanePort) Dial(to netip.AddrPort, number int) (*Lane, error) {
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	l := p.newLane(to, p.port.Sockets()[0])
	l.client, l.number = true, number
	l.proven.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("%w: the port is closed", ErrLane)
	}
	p.change(func(lanes map[netip.AddrPort]*Lane) { lanes[to] = l })
	return l, nil
}

// Close closes the lanes, which inform the remote servers, and then the port. Close waits for all goroutines.
func (p *LanePort) Close() error {
	p.mu.Lock()
	before := p.closed
	p.closed = true
	p.mu.Unlock()
	p.closeLanes()
	p.ending.Wait()
	err := p.port.Close()
	p.readers.Wait()
	if !before {
		close(p.accepted)
		close(p.failed)
	}
	return err
}

func (p *LanePort) closeLanes() {
	for _, l := range *p.lanes.Load() {
		l.Close()
	}
}

// read is the goroutine of one socket.
func (p *LanePort) read(socket *udp.Socket) {
	inbox := udp.NewInbox()
	var touched []*Lane
	for {
		if err := socket.Receive(inbox); err != nil {
			p.end(err)
			return
		}
		now := time.Now()
		for _, message := range inbox.Messages() {
			l := (*p.lanes.Load())[message.Peer]
			if l == nil {
				if l = p.accept(message, socket, now); l == nil {
					continue
				}
			}
			l.receiveRun(message, now)
			if len(touched) == 0 || touched[len(touched)-1] != l {
				touched = append(touched, l)
			}
		}
		for _, l := range touched {
			l.flush()
		}
		clear(touched)
		touched = touched[:0]
	}
}

// end reports that a socket cannot receive, unless the port is closed.
func (p *LanePort) end(err error) {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return
	}
	select {
	case p.failed <- err:
	default:
	}
	p.closeLanes()
}

// accept returns a lane for the first datagram of an address, nil if the datagram does not open a lane.
func (p *LanePort) accept(message udp.Message, socket *udp.Socket, now time.Time) *Lane {
	if !p.config.Accepts || !secure.IsClientHello(message.Data) || !p.openings.TakeAll(message.Peer.Addr(), 1, now) {
		p.ignored.Add(uint64(message.Count()))
		return nil
	}
	l := p.newLane(message.Peer, socket)
	if !p.add(l) {
		p.ignored.Add(uint64(message.Count()))
		return nil
	}
	return l
}

// add adds an accepted lane, and passes it to Accepted. add reports false if the port is closed, or the receiver of
// Accepted is late. A host that forges addresses can open any number of lanes. Above laneHandshakes the oldest unproven
// lane is closed: a proof takes one round trip, so a server that dials is displaced only above 256 forged datagrams per
// round trip.
func (p *LanePort) add(l *Lane) bool {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return false
	}
	select {
	case p.accepted <- l:
	default:
		p.mu.Unlock()
		return false
	}
	var oldest *Lane
	if len(p.unproven) == laneHandshakes {
		oldest = p.unproven[0]
		p.unproven = slices.Delete(p.unproven, 0, 1)
	}
	p.unproven = append(p.unproven, l)
	p.change(func(lanes map[netip.AddrPort]*Lane) { lanes[l.remote] = l })
	p.mu.Unlock()
	if oldest != nil {
		oldest.Close()
	}
	return true
}

// prove records that the remote server of an accepted lane receives at its address.
func (p *LanePort) prove(l *Lane) {
	p.mu.Lock()
	room := p.opening < laneHandshakes
	if i := slices.Index(p.unproven, l); i >= 0 && room {
		p.unproven = slices.Delete(p.unproven, i, i+1)
		p.opening++
		l.opening = true
		l.proven.Store(true)
	}
	p.mu.Unlock()
	if !room {
		l.Close()
	}
}

// opened records the end of the handshake of a lane.
func (p *LanePort) opened(l *Lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.unproven, l); i >= 0 {
		p.unproven = slices.Delete(p.unproven, i, i+1)
	}
	if l.opening {
		l.opening = false
		p.opening--
	}
}

// remove removes a lane, unless its address has another lane. The lane is ending.
func (p *LanePort) remove(l *Lane) {
	p.opened(l)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ending.Add(1)
	if (*p.lanes.Load())[l.remote] == l {
		p.change(func(lanes map[netip.AddrPort]*Lane) { delete(lanes, l.remote) })
	}
}

// change replaces the lanes by a changed copy. The caller holds the mutex.
func (p *LanePort) change(f func(map[netip.AddrPort]*Lane)) {
	old := *p.lanes.Load()
	lanes := make(map[netip.AddrPort]*Lane, len(old)+1)
	for address, l := range old {
		lanes[address] = l
	}
	f(lanes)
	p.lanes.Store(&lanes)
}
