package transport

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/transport/datachannels"
	"github.com/volsfu/volsfu/internal/transport/secure"
)

// Errors of negotiation.
var (
	ErrNoLine    = errors.New("no such media line")
	ErrCandidate = errors.New("invalid ICE candidate")
	ErrSpent     = errors.New("negotiation failed half-way")
)

// errPanicked is the error that a library receives from a call that panicked.
var errPanicked = errors.New("panic in a goroutine of the peer")

// rttInterval is the time for which a round-trip time of the ICE agent is reused. The agent's checks are two seconds
// apart.
const rttInterval = 500 * time.Millisecond

// Peer is one peer connection. One goroutine at a time negotiates. WriteRTCP, Flush, RTT, Events and Close are safe for
// any goroutine.
type Peer struct {
	endpoint *Endpoint
	sink     Sink
	// servers are the TURN servers that the ICE agent uses.
	servers []ICEServer
	agent   *iceAgent
	events  *eventList
	negotiation
	multipath

	incoming incoming
	outbox   outbox
	path     path
	// records holds the DTLS records to read, once ICE was started.
	records atomic.Pointer[secure.Records]

	// context ends with the peer. running are the peer's goroutines. None starts after closed is set. Starting one
	// requires starting to be held.
	context  context.Context
	cancel   context.CancelFunc
	starting sync.Mutex
	running  sync.WaitGroup
	closed   atomic.Bool
	// overflowed is set once the remote peer has used too many streams.
	overflowed atomic.Bool
	// ended is closed when Close has finished.
	ended chan struct{}
	// secure is the DTLS connection after the handshake.
	secure atomic.Pointer[dtls.Conn]

	channels *datachannels.Channels
	// transportSequence is the identifier of the header extension with the transport-wide sequence number.
	transportSequence atomic.Uint32
	// reportsByStream is set if the remote peer reports arrivals in the form of RFC 8888, acceptsByStream if this side
	// does.
	reportsByStream, acceptsByStream atomic.Bool

	// rttAt is the time of the last query of the ICE agent's round-trip time, in nanoseconds since 1970.
	rttAt atomic.Int64
}

// NewPeer makes a peer connection that delivers media to the sink. TURN servers are used by endpoints of clients that
// have one media port or dial. Servers whose URLs or credentials are invalid are ignored.
func (e *Endpoint) NewPeer(sink Sink, servers ...ICEServer) (*Peer, error) {
	p := &Peer{
		endpoint: e, sink: sink, servers: servers, events: newEventList(), negotiation: newNegotiation(),
		ended: make(chan struct{}),
	}
	p.path.peer, p.path.endpoint = p, e
	p.multipath = multipath{p}
	p.channels = datachannels.New(channelHost{p}, e.logs, e.chunks)
	p.outbox.path = &p.path
	p.incoming.sink, p.incoming.overflow, p.incoming.arrivedAs = sink, p.overflow, p.outbox.setRTCP
	p.context, p.cancel = context.WithCancel(context.Background())
	var err error
	if p.agent, err = e.newAgent(p); err != nil {
		p.cancel()
		return nil, err
	}
	if e.interfaces != nil {
		e.interfaces.add(p)
	}
	return p, nil
}

// Notify returns a channel that is signalled when Events has events.
func (p *Peer) Notify() <-chan struct{} { return p.events.notify }

// Events returns the events since the last call, in order.
func (p *Peer) Events() []Event { return p.events.take() }

// Fail marks the connection as failed for good. The owner receives an event and closes the connection.
func (p *Peer) Fail() { p.events.fail() }

// try calls f and reports whether f returned. If f panics, the connection has failed. try is for goroutines that serve
// this peer alone, and for callbacks of libraries.
func (p *Peer) try(where string, f func()) (returned bool) {
	returned = p.endpoint.config.Guard.Try(where, f)
	if !returned {
		p.Fail()
	}
	return returned
}

// run starts f in a goroutine of the peer. run reports whether f was started: after Close no goroutine starts.
func (p *Peer) run(where string, f func()) bool {
	p.starting.Lock()
	defer p.starting.Unlock()
	if p.closed.Load() {
		return false
	}
	p.running.Go(func() { p.try(where, f) })
	return true
}

// channelHost implements datachannels.Host for the peer.
type channelHost struct{ peer *Peer }

func (h channelHost) Try(f func()) (returned bool) { return h.peer.try(placeChannel, f) }

func (h channelHost) Run(f func()) bool { return h.peer.run(placeChannel, f) }

// overflow ends a connection whose remote peer uses too many streams. Each stream takes memory until the connection
// ends. Close waits for the calling goroutine, so another goroutine calls Close.
func (p *Peer) overflow() {
	if !p.overflowed.Swap(true) {
		go p.try(placeMedia, func() { _ = p.Close() })
	}
}

// Flush sends the packets that the peer's outlets have queued.
func (p *Peer) Flush() { p.outbox.post(nil) }

// Post hands the packets that the peer's outlets have queued to the batch, which sends them with the packets of other
// peers. Without a batch, or if media passes through ICE, Post sends at once.
func (p *Peer) Post(batch *Batch) { p.outbox.post(batch) }

// SetECN sets the codepoint with which RTP packets leave that are queued from now on, of all outlets and including
// retransmissions. Initially it is NotECT. Packets that pass through ICE, STUN messages and DTLS records, which include
// data channels, always leave as Not-ECT. SetECN takes no lock, and is safe for any goroutine.
func (p *Peer) SetECN(codepoint ecn.Codepoint) { p.outbox.ecn.Store(uint32(codepoint)) }

// RemoteAddress returns the address that media is sent to, the zero Addr while media passes through ICE. RemoteAddress
// takes no lock.
func (p *Peer) RemoteAddress() netip.Addr {
	if route := p.path.route.Load(); route != nil {
		return route.address.Addr().Unmap()
	}
	return netip.Addr{}
}

// Blocked reports whether packets to the peer would be lost on this host: the send buffer was full for a while, or the
// remote peer does not consent to receive (RFC 7675). Blocked takes no lock.
func (p *Peer) Blocked(now time.Time) bool { return p.path.blocked(now) }

// WriteRTCP sends packets as one compound packet, at once. Before the handshake is done, nothing is sent.
func (p *Peer) WriteRTCP(packets []rtcp.Packet) error { return p.outbox.writeRTCP(packets) }

// TransportSequenceID returns the identifier of the header extension that numbers all packets of the connection in both
// directions (draft-holmer-rmcat-transport-wide-cc-extensions-01), 0 if it is not negotiated.
func (p *Peer) TransportSequenceID() uint8 { return uint8(p.transportSequence.Load()) }

// ReportsByStream reports whether the remote peer reports arrivals of this peer's packets in the form of RFC 8888 and
// not by transport-wide numbers: either the peers have negotiated this, or this peer itself makes such reports about
// its data channels. ReportsByStream takes no lock.
func (p *Peer) ReportsByStream() bool { return p.reportsByStream.Load() || p.channels.Sends() }

// AcceptsReportsByStream reports whether the peers have negotiated that this peer reports arrivals of the remote peer's
// packets in the form of RFC 8888 and not by transport-wide numbers. AcceptsReportsByStream takes no lock.
func (p *Peer) AcceptsReportsByStream() bool { return p.acceptsByStream.Load() }

// RTT returns the shortest round-trip time of ICE's latest connectivity checks, 0 if it is unknown. A Sink may call
// RTT. Checks through the media port are measured there, other checks by the ICE agent.
func (p *Peer) RTT() time.Duration {
	if p.secure.Load() == nil || p.closed.Load() || p.path.route.Load() != nil {
		return p.path.rtt.value()
	}
	now := time.Now().UnixNano()
	if at := p.rttAt.Load(); now-at < int64(rttInterval) || !p.rttAt.CompareAndSwap(at, now) {
		return p.path.rtt.value()
	}
	if stats, ok := p.agent.GetSelectedCandidatePairStats(); ok {
		p.path.rtt.addAnswered(stats.ResponsesReceived, time.Duration(stats.CurrentRoundTripTime*float64(time.Second)))
	}
	return p.path.rtt.value()
}

// Close ends the connection and frees its resources. When Close returns, the sink is not called any more.
func (p *Peer) Close() error {
	p.starting.Lock()
	before := p.closed.Swap(true)
	p.starting.Unlock()
	if before {
		<-p.ended
		return nil
	}
	defer close(p.ended)
	p.cancel()
	if conn := p.secure.Load(); conn != nil {
		// The DTLS alert informs the remote peer, if the alert arrives.
		_ = conn.Close()
	}
	if p.endpoint.interfaces != nil {
		p.endpoint.interfaces.remove(p)
	}
	p.path.end()
	err := p.agent.GracefulClose()
	p.running.Wait()
	p.outbox.discard()
	p.incoming.close()
	p.events.enter(StateClosed)
	return err
}
