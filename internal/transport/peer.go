package transport

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/ice/v4"
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

// Peer is one peer connection. Negotiation is for one goroutine at a time; WriteRTCP, Flush, RTT, Events and Close are for any.
type Peer struct {
	endpoint *Endpoint
	sink     Sink
	agent    *ice.Agent
	events   *eventList
	negotiation

	localCandidates candidateList
	// gathered is set while ICE has all its candidates.
	gathered atomic.Bool

	incoming incoming
	outbox   outbox
	// conn is what ICE connects, and records what DTLS reads, once ICE was begun.
	conn    atomic.Pointer[ice.Conn]
	records atomic.Pointer[recordConn]
	consent consent
	// agentOnPort is the ICE agent on the media port, nil before it gathers.
	agentOnPort atomic.Pointer[muxAgent]
	// route is the way past ICE, nil while there is none. Who changes it holds routing.
	route   atomic.Pointer[peerRoute]
	routing sync.Mutex

	// context ends with the peer; running are its goroutines, none of which begins once closed is set. Who begins one holds starting.
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

	// data is set once the peers have agreed on data channels.
	data atomic.Bool
	// channels are those that this peer sends on, sendsData is set once there are any.
	channels  channels
	sendsData atomic.Bool
	// transportSequence is the identifier of the header extension of that name.
	transportSequence atomic.Uint32
	// reportsByStream is set while who answers reports arrivals by RFC 8888.
	reportsByStream atomic.Bool

	rtt   roundTrip
	rttAt atomic.Int64
}

// NewPeer makes a peer connection whose media goes to the sink.
func (e *Endpoint) NewPeer(sink Sink) (*Peer, error) {
	agent, err := e.newAgent()
	if err != nil {
		return nil, err
	}
	p := &Peer{
		endpoint: e, sink: sink, agent: agent, events: newEventList(), negotiation: newNegotiation(), ended: make(chan struct{}),
	}
	p.context, p.cancel = context.WithCancel(context.Background())
	if err := p.watch(); err != nil {
		_ = agent.Close()
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

// TransportSequenceID is the identifier of the header extension that numbers all packets of the connection in both directions
// (draft-holmer-rmcat-transport-wide-cc-extensions-01), 0 where the peers have not agreed on it.
func (p *Peer) TransportSequenceID() uint8 { return uint8(p.transportSequence.Load()) }

// ReportsByStream tells that the peers have agreed on reports by RFC 8888 of what the offering one sends, in place of transport-wide feedback, or that this one makes such
// reports of what it sends on data channels. It takes no lock.
func (p *Peer) ReportsByStream() bool { return p.reportsByStream.Load() || p.sendsData.Load() }

// RTT is the round-trip time by the quickest of ICE's latest connectivity checks, 0 while it is unknown. A Sink may ask
// for it. Checks that pass the media port are measured there, others by the ICE agent.
func (p *Peer) RTT() time.Duration {
	if p.secure.Load() == nil || p.closed.Load() || p.route.Load() != nil {
		return p.rtt.value()
	}
	now := time.Now().UnixNano()
	if at := p.rttAt.Load(); now-at < int64(rttInterval) || !p.rttAt.CompareAndSwap(at, now) {
		return p.rtt.value()
	}
	if stats, ok := p.agent.GetSelectedCandidatePairStats(); ok {
		p.rtt.addAnswered(stats.ResponsesReceived, time.Duration(stats.CurrentRoundTripTime*float64(time.Second)))
	}
	return p.rtt.value()
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
	p.unroute()
	err := p.agent.GracefulClose()
	p.running.Wait()
	p.outbox.discard()
	p.incoming.close()
	p.events.enter(StateClosed)
	return err
}
