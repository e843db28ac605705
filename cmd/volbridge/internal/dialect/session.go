package dialect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Session is one connection to a server. A Session ends with the websocket or with the peer connection.
type Session struct {
	config     Config
	conn       *websocket.Conn
	connection *webrtc.PeerConnection
	tracks     tracks

	ctx    context.Context
	cancel context.CancelCauseFunc
	// messages has the received messages, own this client's candidates, and texts the newest of its quality messages.
	messages chan vr2gather.Message
	own      chan string
	texts    chan string
	// connected is closed when media flows.
	connected  chan struct{}
	connecting sync.Once
	// started is closed when ICE has begun.
	started  chan struct{}
	starting sync.Once

	// mu guards ended. After ended is set, no goroutine is started.
	mu      sync.Mutex
	ended   bool
	running sync.WaitGroup
}

// maxCandidates is the number of candidates that are kept before the offer, and the number of this client's own
// candidates that may wait.
const maxCandidates = 64

// Join opens the websocket and returns when media flows.
func Join(ctx context.Context, config Config) (*Session, error) {
	conn, err := dial(ctx, config)
	if err != nil {
		return nil, err
	}
	s := &Session{
		config: config, conn: conn, messages: make(chan vr2gather.Message), own: make(chan string, maxCandidates),
		texts:     make(chan string, 1),
		connected: make(chan struct{}), started: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	if s.connection, err = newConnection(config); err != nil {
		s.cancel(err)
		return nil, errors.Join(err, conn.Close())
	}
	s.watch()
	if err := s.addTracks(); err != nil {
		s.cancel(err)
		return nil, errors.Join(err, s.connection.Close(), conn.Close())
	}
	s.begin(s.read)
	s.begin(s.negotiate)
	select {
	case <-s.connected:
		return s, nil
	case <-s.ctx.Done():
		err = s.Err()
	case <-ctx.Done():
		err = fmt.Errorf("%w: no connection: %w", ErrEnded, ctx.Err())
	}
	s.Close()
	return nil, err
}

// begin starts a goroutine, unless the session has ended.
func (s *Session) begin(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.running.Go(f)
	}
}

// watch installs the handlers of the peer connection. They run on the peer connection's goroutines.
func (s *Session) watch() {
	s.connection.OnICECandidate(func(c *webrtc.ICECandidate) {
		if c == nil {
			return
		}
		select {
		case s.own <- c.ToJSON().Candidate:
		case <-s.ctx.Done():
		}
	})
	s.connection.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		switch state {
		case webrtc.PeerConnectionStateConnected:
			s.connecting.Do(func() { close(s.connected) })
		case webrtc.PeerConnectionStateFailed, webrtc.PeerConnectionStateClosed:
			s.cancel(fmt.Errorf("%w: the peer connection is %s", ErrEnded, state))
		}
	})
	s.connection.OnICEConnectionStateChange(func(webrtc.ICEConnectionState) {
		s.starting.Do(func() { close(s.started) })
	})
	s.connection.OnTrack(func(remote *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		s.begin(func() { s.receive(remote) })
	})
}

// negotiate handles one message after the other until the session ends.
func (s *Session) negotiate() {
	var early []string
	for {
		var err error
		select {
		case m := <-s.messages:
			early, err = s.handle(m, early)
		case candidate := <-s.answered():
			err = s.write(vr2gather.MessageCandidate, candidate)
		case text := <-s.texts:
			err = s.write(vr2gather.MessageQuality, text)
		case <-s.ctx.Done():
			return
		}
		if err != nil {
			s.cancel(fmt.Errorf("%w: %w", ErrEnded, err))
			return
		}
	}
}

// answered returns the channel of this client's candidates. answered returns nil before the first answer, to which the
// candidates belong.
func (s *Session) answered() <-chan string {
	if s.connection.CurrentLocalDescription() == nil {
		return nil
	}
	return s.own
}

// handle handles a message. Candidates that arrive before the first offer are kept: VR2Gather's original server often
// sends them first.
func (s *Session) handle(m vr2gather.Message, early []string) (kept []string, err error) {
	switch m.Type {
	case vr2gather.MessageOffer:
		if err := s.answer(m.Value); err != nil {
			return nil, err
		}
		for _, candidate := range early {
			s.addCandidate(candidate)
		}
		return nil, nil
	case vr2gather.MessageCandidate:
		if s.connection.RemoteDescription() != nil {
			s.addCandidate(m.Value)
		} else if len(early) < maxCandidates {
			early = append(early, m.Value)
		}
	default:
		s.config.Log.Debug("a message of an unknown type is skipped", "type", uint32(m.Type))
	}
	return early, nil
}

// startTime is the time limit for the start of ICE after an answer. ICE normally starts at once.
const startTime = time.Second

// awaitICE waits until ICE has begun with the previous answer. The original server often makes two offers in quick
// succession. If ICE has not begun with the first, Pion takes the second one for an ICE restart, with credentials that
// differ from those of the first answer.
func (s *Session) awaitICE() {
	if s.connection.CurrentLocalDescription() == nil {
		return
	}
	select {
	case <-s.started:
	case <-time.After(startTime):
	case <-s.ctx.Done():
	}
}

// answer answers an offer.
func (s *Session) answer(value string) error {
	s.awaitICE()
	offer, err := vr2gather.ParseDescription(value)
	if err != nil {
		return err
	}
	if err := s.connection.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer,
		SDP: offer.SDP}); err != nil {
		return fmt.Errorf("offer: %w", err)
	}
	answer, err := s.connection.CreateAnswer(nil)
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if err := s.connection.SetLocalDescription(answer); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return s.write(vr2gather.MessageAnswer, vr2gather.Description{Type: "answer", SDP: answer.SDP}.Value())
}

// addCandidate adds a candidate of the server. A malformed candidate may be of a newer type and is skipped, because
// there are others.
func (s *Session) addCandidate(candidate string) {
	if err := s.connection.AddICECandidate(webrtc.ICECandidateInit{Candidate: candidate}); err != nil {
		s.config.Log.Warn("a candidate of the server is skipped", "candidate", candidate, "error", err)
	}
}

// Choose sends a quality message. Only the newest waiting message is sent.
func (s *Session) Choose(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.texts:
	default:
	}
	s.texts <- text
}

// Done returns a channel that is closed when the session has ended. Err returns the reason.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Err returns the reason of the session's end: ErrClosed after Close, another error otherwise, nil before the end.
func (s *Session) Err() error { return context.Cause(s.ctx) }

// goodbyeTime is the time limit for sending the close message.
const goodbyeTime = time.Second

// Close ends the session and waits for its goroutines. Further calls have no effect.
func (s *Session) Close() {
	s.cancel(ErrClosed)
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = s.conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(goodbyeTime))
	_ = s.connection.GracefulClose()
	_ = s.conn.Close()
	s.running.Wait()
}
