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

// patience bounds what does not hang unless something is broken.
const patience = 30 * time.Second

// Peer is one old peer. Its methods are safe for concurrent use, but for Close, which comes last.
type Peer struct {
	config     Config
	network    *network
	conn       *websocket.Conn
	connection *webrtc.PeerConnection
	audio      *track
	video      []*track // tile × Qualities + quality
	library    *library

	// connected is closed when media flows, gathered when all the peer's candidates are told, unheard when the websocket has ended, dead with the first
	// fault that the original dies of, or when the peer is put away.
	connected, gathered, unheard, dead chan struct{}
	connecting, gathering, dying       sync.Once
	running                            sync.WaitGroup
	writing                            sync.Mutex

	mu     sync.Mutex
	faults faults
	counts Counts
	// answering says that an offer was read whose answer is not written.
	answering bool
}

// Counts are what a peer has seen of the protocol so far.
type Counts struct {
	// Offers and Answers are those read and written.
	Offers, Answers int
	// Candidates are those that the server told, LostCandidates those among them that came before the first offer: the original keeps them for
	// an answer that it never gets. Gathered are the peer's own.
	Candidates, LostCandidates, Gathered int
	// SequenceGaps is how many RTP packets are missing by their numbers, Tracks how many tracks have begun.
	SequenceGaps, Tracks int
}

// Dial opens the websocket, which is how the original joins.
func Dial(ctx context.Context, config Config) (*Peer, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	p := &Peer{
		config: config, library: newLibrary(),
		connected: make(chan struct{}), gathered: make(chan struct{}), unheard: make(chan struct{}), dead: make(chan struct{}),
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

// watch follows the connection.
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

// Connected is closed when media flows.
func (p *Peer) Connected() <-chan struct{} { return p.connected }

// Gathered is closed when the peer has told all its candidates.
func (p *Peer) Gathered() <-chan struct{} { return p.gathered }

// Unheard is closed when the websocket has ended. The original goes on with its media.
func (p *Peer) Unheard() <-chan struct{} { return p.unheard }

// Dead is closed when the peer has met a fault that the original dies of, and when it was killed or put away.
func (p *Peer) Dead() <-chan struct{} { return p.dead }

// Counts are what the peer has seen of the protocol.
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

// Kill ends the peer as the end of its process does: TCP is closed by the kernel, UDP is silent. VR2Gather ends it so.
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

// Close ends the peer, if need be by Leave, and waits for its goroutines. More calls do nothing.
func (p *Peer) Close() {
	p.Leave()
	_ = p.connection.GracefulClose()
	p.running.Wait()
	p.library.close()
}
