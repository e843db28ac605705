package transport

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/transport/datachannels"
	"github.com/volsfu/volsfu/internal/transport/secure"
)

// Errors of negotiation.
var (
	ErrNoLine    = errors.New("no such media line")
	ErrCandidate = errors.New("invalid ICE candidate")
	ErrSpent     = errors.New("negotiation failed half-way")
)

// errPanicked is what a library is told of a call that panicked.
var errPanicked = errors.New("panic in a goroutine of the peer")

// rttInterval is how long a round-trip time from ICE's checks is taken as it is; they come every two seconds.
const rttInterval = 500 * time.Millisecond

// Peer is one peer connection. Negotiation is for one goroutine at a time; WriteRTCP, Flush, RTT, Events and Close are
// for any.
type Peer struct {
	endpoint *Endpoint
	sink     Sink
	agent    *iceAgent
	events   *eventList
	negotiation

	incoming incoming
	outbox   outbox
	path     path
	// records is what DTLS reads, once ICE was begun.
	records atomic.Pointer[secure.Records]

	// context ends with the peer; running are its goroutines, none of which begins once closed is set. Who begins one
	// holds starting.
	context  context.Context
	cancel   context.CancelFunc
	starting sync.Mutex
	running  sync.WaitGroup
	closed   atomic.Bool
	// overflowed is set once the remote peer has used too many streams.
	overflowed atomic.Bool
	// ended is closed when Close is done.
	ended chan struct{}
	// secure is the DTLS connection after the handshake.
	secure atomic.Pointer[dtls.Conn]

	channels *datachannels.Channels
	// transportSequence is the identifier of the header extension of that name.
	transportSequence atomic.Uint32
	// reportsByStream is set while who answers reports arrivals by RFC 8888.
	reportsByStream atomic.Bool

	// rttAt is when the ICE agent was last asked for the round-trip time, in nanoseconds since 1970.
	rttAt atomic.Int64
}

// NewPeer makes a peer connection whose media goes to the sink.
func (e *Endpoint) NewPeer(sink Sink) (*Peer, error) {
	p := &Peer{
		endpoint: e, sink: sink, events: newEventList(), negotiation: newNegotiation(), ended: make(chan struct{}),
	}
	p.path.peer, p.path.endpoint = p, e
	p.channels = datachannels.New(channelHost{p}, e.logs, e.chunks)
	p.outbox.path = &p.path
	p.incoming.sink, p.incoming.overflow = sink, p.overflow
	p.context, p.cancel = context.WithCancel(context.Background())
	var err error
	if p.agent, err = e.newAgent(p); err != nil {
		p.cancel()
		return nil, err
	}
	return p, nil
}

// Notify is signalled when events wait to be taken.
func (p *Peer) Notify() <-chan struct{} { return p.events.notify }

// Events takes what has happened since the last call, in order.
func (p *Peer) Events() []Event { return p.events.take() }

// Fail says that the connection has failed for good. Its owner learns it from an event, and closes the connection.
func (p *Peer) Fail() { p.events.fail() }

// try calls f, and reports whether f returned. If f panics, the connection has failed. It is for goroutines that serve
// the peer alone, and for what a library's goroutine calls.
func (p *Peer) try(where string, f func()) (returned bool) {
	returned = p.endpoint.config.Guard.Try(where, f)
	if !returned {
		p.Fail()
	}
	return returned
}

// run runs f in a goroutine of the peer, and reports whether it does: none begins once the peer is closed.
func (p *Peer) run(where string, f func()) bool {
	p.starting.Lock()
	defer p.starting.Unlock()
	if p.closed.Load() {
		return false
	}
	p.running.Go(func() { p.try(where, f) })
	return true
}

// channelHost is the peer as its data channels see it. It implements datachannels.Host.
type channelHost struct{ peer *Peer }

func (h channelHost) Try(f func()) (returned bool) { return h.peer.try(placeChannel, f) }

func (h channelHost) Run(f func()) bool { return h.peer.run(placeChannel, f) }

// overflow ends a connection whose remote peer uses more streams than anybody needs: each costs memory for as long as
// the connection lives. Closing waits for the caller, so another goroutine does it.
func (p *Peer) overflow() {
	if !p.overflowed.Swap(true) {
		go p.try(placeMedia, func() { _ = p.Close() })
	}
}

// Flush sends what the peer's outlets have queued.
func (p *Peer) Flush() { p.outbox.post(nil) }

// Post leaves what the peer's outlets have queued to the batch, which sends it with the packets of other peers.
// Without a batch, and if media goes through ICE, Post sends at once.
func (p *Peer) Post(batch *Batch) { p.outbox.post(batch) }

// Blocked reports whether packets to the peer would be lost on this host: the send buffer had no room for a while, or
// the remote peer does not consent to being sent anything (RFC 7675). It takes no lock.
func (p *Peer) Blocked(now time.Time) bool { return p.path.blocked(now) }

// WriteRTCP sends packets as one compound packet, at once. Before the connection is there, nothing is sent.
func (p *Peer) WriteRTCP(packets []rtcp.Packet) error { return p.outbox.writeRTCP(packets) }

// TransportSequenceID is the identifier of the header extension that numbers all packets of the connection in both
// directions (draft-holmer-rmcat-transport-wide-cc-extensions-01), 0 where the peers have not agreed on it.
func (p *Peer) TransportSequenceID() uint8 { return uint8(p.transportSequence.Load()) }

// ReportsByStream tells that the peers have agreed on reports by RFC 8888 of what the offering one sends, in place of
// transport-wide feedback, or that this one makes such reports of what it sends on data channels. It takes no lock.
func (p *Peer) ReportsByStream() bool { return p.reportsByStream.Load() || p.channels.Sends() }

// RTT is the round-trip time by the quickest of ICE's latest connectivity checks, 0 while it is unknown. A Sink may ask
// for it. Checks that pass the media port are measured there, others by the ICE agent.
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

// Close ends the connection and frees what it holds. It returns when nothing calls the sink any more.
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
		// The remote peer learns it from the alert, if that arrives.
		_ = conn.Close()
	}
	p.path.end()
	err := p.agent.GracefulClose()
	p.running.Wait()
	p.outbox.discard()
	p.incoming.close()
	p.events.enter(StateClosed)
	return err
}
