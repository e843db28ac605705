package oldpeer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pion/webrtc/v4"
)

// patience limits waits that only take so long in case of a fault.
const patience = 30 * time.Second

// Peer is one old peer. The methods are safe for concurrent use, except Close, which comes last.
type Peer struct {
	config     Config
	network    *network
	conn       *websocket.Conn
	connection *webrtc.PeerConnection
	audio      *track
	video      []*track // tile × Qualities + quality
	library    *library

	// connected is closed when media flows, gathered when all of the peer's candidates are sent, ended when the
	// websocket has ended, dead with the first fault that ends the original, or when the peer is closed.
	connected, gathered, ended, dead chan struct{}
	connecting, gathering, dying     sync.Once
	running                          sync.WaitGroup
	writing                          sync.Mutex

	mu     sync.Mutex
	faults faults
	counts Counts
	// answering is set while an offer has been read and not yet answered.
	answering bool
}

// Counts are the protocol's messages and packets that a peer has seen so far.
type Counts struct {
	// Offers is the number of offers read, Answers the number of answers written.
	Offers, Answers int
	// Candidates is the number of the server's candidates, LostCandidates the number of candidates that arrived before
	// the first offer: the original stores such candidates for an answer that never arrives. Gathered is the number of
	// the peer's candidates.
	Candidates, LostCandidates, Gathered int
	// SequenceGaps is the number of RTP packets missing by sequence number, Tracks the number of tracks that have
	// begun.
	SequenceGaps, Tracks int
}

// Dial opens the websocket, by which the original joins.
func Dial(ctx context.Context, config Config) (*Peer, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	p := &Peer{
		config: config, library: newLibrary(),
		connected: make(chan struct{}), gathered: make(chan struct{}), ended: make(chan struct{}),
		dead: make(chan struct{}),
	}
	var err error
	if p.network, err = newNetwork(config.Net); err != nil {
		return nil, err
	}
	if p.connection, err = newConnection(config, p.network); err != nil {
		return nil, err
	}
	if err := p.addTracks(); err != nil {
		return nil, errors.Join(err, p.connection.Close())
	}
	p.watch()
	dialer := websocket.Dialer{HandshakeTimeout: patience, NetDialContext: config.Dial}
	if p.conn, _, err = dialer.DialContext(ctx, config.url(), nil); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", config.Server, err), p.connection.Close())
	}
	messages := make(chan string)
	p.running.Add(2)
	go p.read(messages)
	go p.act(messages)
	return p, nil
}

// watch follows the state of the connection.
func (p *Peer) watch() {
	p.connection.OnICECandidate(func(c *webrtc.ICECandidate) {
		if c == nil {
			p.gathering.Do(func() { close(p.gathered) })
			return
		}
		p.count(func(counts *Counts) { counts.Gathered++ })
		p.say(signaller, typeCandidate, c.ToJSON().Candidate)
	})
	p.connection.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			p.connecting.Do(func() { close(p.connected) })
		case webrtc.PeerConnectionStateFailed:
			p.fail(ErrFailed)
		}
	})
	p.connection.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		p.count(func(counts *Counts) { counts.Tracks++ })
		p.receive(track)
	})
}

// Connected returns a channel that is closed when media flows.
func (p *Peer) Connected() <-chan struct{} { return p.connected }

// Gathered returns a channel that is closed when the peer has sent all candidates.
func (p *Peer) Gathered() <-chan struct{} { return p.gathered }

// Ended returns a channel that is closed when the websocket has ended. The original continues with the media.
func (p *Peer) Ended() <-chan struct{} { return p.ended }

// Dead returns a channel that is closed when the peer has found a fault that ends the original, and when it was killed
// or closed.
func (p *Peer) Dead() <-chan struct{} { return p.dead }

// Counts returns the numbers of the protocol's messages and packets so far.
func (p *Peer) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

func (p *Peer) count(change func(*Counts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.counts)
}

// Kill ends the peer like the end of a process: the kernel closes TCP, UDP is silent. VR2Gather ends the original in
// this way.
func (p *Peer) Kill() {
	p.dying.Do(func() {
		close(p.dead)
		p.network.silent.Store(true)
		if p.conn != nil {
			_ = p.conn.NetConn().Close()
		}
	})
}

// Leave ends the peer in an orderly way: the websocket and the connection are closed.
func (p *Peer) Leave() {
	p.dying.Do(func() {
		close(p.dead)
		p.writing.Lock()
		goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		_ = p.conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(patience))
		p.writing.Unlock()
		_ = p.connection.Close()
		_ = p.conn.Close()
	})
}

// Close ends the peer, if necessary by Leave, and waits for the goroutines. Further calls have no effect.
func (p *Peer) Close() {
	p.Leave()
	_ = p.connection.GracefulClose()
	p.running.Wait()
	p.library.close()
}
