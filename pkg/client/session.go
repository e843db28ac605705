package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Sizes of the channels that a program reads. If a channel is full, new items are lost. Lost frames and packets are
// counted (FrameCounts.Overflowed), lost events are not.
const (
	eventBacklog  = 1024
	frameBacklog  = 1024
	packetBacklog = 1024
	dataBacklog   = 1024
)

// Session is one participant's presence in a room. Its methods are safe for concurrent use.
type Session struct {
	config   Config
	log      *slog.Logger
	endpoint *transport.Endpoint
	// path is the media of the server on which the session is.
	path    atomic.Pointer[media]
	data    *dataFlow
	events  eventQueue
	updates *signalling.Updates
	// requests are the requests without a reply, roster is the room, presence describes this client
	// and the room, publishers are this client's own.
	requests   *signalling.Requests
	roster     roster
	presence   presence
	publishers publishers
	// requested is the state that this client has requested, servers are the servers of the session. The goroutine of
	// control owns servers after the join.
	requested requested
	servers   servers
	// sealer encrypts what this client sends. It is nil if the session has no keys.
	sealer *e2ee.Sealer

	// ctx ends with the session. running counts the session's goroutines.
	ctx     context.Context
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	// leaving is set once Close was called.
	leaving atomic.Bool

	mu     sync.Mutex
	conn   *signalling.Conn
	joined *signal.Joined
	// limits are the last limits that the server has accepted.
	limits signal.BitrateLimits
}

// Join enters a room. Join returns once the server has accepted the client. Media flows after the event Connected.
func Join(ctx context.Context, config Config) (*Session, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Session{
		config:   config,
		log:      config.Log,
		data:     newDataFlow(),
		events:   make(eventQueue, eventBacklog),
		updates:  signalling.NewUpdates(),
		requests: signalling.NewRequests(),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.path.Store(newMedia(s))
	s.config.panicked = s.panicked
	if s.endpoint, err = s.config.endpoint(); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		s.cancel(err)
		_ = s.endpoint.Close()
		// If a panic of the websocket's goroutine has ended the websocket, the error is that panic.
		return nil, s.Err()
	}
	s.running.Add(1)
	go (&control{session: s}).run()
	s.media().start()
	return s, nil
}

// enter opens the websocket, joins, and makes the peer connection.
func (s *Session) enter(ctx context.Context) error {
	for _, publication := range s.config.Publications {
		s.publishers.add(newPublisher(s, publication))
	}
	join := &signal.Join{
		Version:      signal.Version,
		Room:         s.config.Room,
		Identity:     s.config.Identity,
		Publications: s.config.Publications,
		Receive:      s.config.Receive,
		DeadlineMS:   int(s.config.Deadline.Milliseconds()),
		Pauses:       true,
		FrameTimes:   s.config.FrameTimes,
		Multipath:    s.config.multipath(),

		MessageChannel: s.config.MessageChannel,
		Moves:          true,
	}
	s.limits = s.config.limits(s.config.MaxBitrate, 0)
	join.BitrateLimits = s.limits
	conn, joined, err := s.join(ctx, join)
	if err != nil {
		return err
	}
	peer, err := s.config.newPeer(s.endpoint, s.media(), joined, s.data)
	if err != nil {
		conn.Close()
		return err
	}
	s.media().peer.Store(peer)
	s.conn = conn
	s.data.resume(conn, 0)
	s.welcome(joined)
	if err := s.unlock(); err != nil {
		conn.Close()
		return err
	}
	return nil
}

// join joins on the server that the program has named, or on the server to which that server sends the client. If that
// server cannot be reached, the first one is asked again: it knows the failure after a while.
func (s *Session) join(ctx context.Context, join *signal.Join) (*signalling.Conn, *signal.Joined, error) {
	s.servers = newServers(s.config.URL)
	for moves, wait := 0, firstRetry; ; moves, wait = moves+1, min(2*wait, lastRetry) {
		join.Ticket = ""
		result := s.follow(ctx, attempt{address: s.config.URL, join: join}, "", false)
		var moved *signalling.MovedError
		var refused *signal.Error
		switch err := result.err; {
		case err == nil:
			s.servers.present = result.address
			s.servers.set(result.reply.Nodes)
			return result.conn, result.reply, nil
		case moves == maxMoves, join.Ticket == "", ctx.Err() != nil, errors.As(err, &refused), errors.As(err, &moved):
			return nil, nil, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, nil, result.err
		}
	}
}

// welcome stores the server's description of the room.
func (s *Session) welcome(joined *signal.Joined) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined = joined
	s.presence.welcome(joined)
	s.media().tracing.SetIdentity(joined.Identity)
	s.roster.set(joined.Participants, joined.Recorded)
}

// renew replaces the secret with which the session is resumed, unless the new one is empty.
func (s *Session) renew(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if secret != "" {
		// The program may have the reply of the server.
		reply := *s.joined
		reply.Resume.Secret = secret
		s.joined = &reply
	}
}

// Identity returns the participant's name in the room.
func (s *Session) Identity() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.joined.Identity
}

// Room returns the room's name.
func (s *Session) Room() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.joined.Room
}

// Participants returns the other participants of the room and their publications, sorted by name.
func (s *Session) Participants() []signal.Participant { return s.roster.list() }

// Audience returns the number of participants that are in the room and not among Participants: in a room with a large
// audience, participants that may not publish are not announced. The event Audience reports changes.
func (s *Session) Audience() int { return s.roster.audienceSize() }

// Recorded reports whether the server records the room. The event Recording reports changes.
func (s *Session) Recorded() bool { return s.roster.isRecorded() }

// Events returns the channel of events. It is closed when the session ends.
func (s *Session) Events() <-chan Event { return s.events }

// Frames returns the channel of complete frames of volumetric video. It is closed when the session ends.
func (s *Session) Frames() <-chan Frame { return s.media().frames }

// Packets returns the channel of the packets of all other tracks. It is closed when the session ends.
func (s *Session) Packets() <-chan Packet { return s.media().packets }

// Done returns a channel that is closed when the session has ended. Err returns why.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Err returns why the session ended: ErrClosed after Close, otherwise the cause of the failure, which may be
// ErrPanicked. It is nil before the end.
func (s *Session) Err() error { return context.Cause(s.ctx) }

// media returns the media of the server on which the session is.
func (s *Session) media() *media { return s.path.Load() }

// currentPeer returns the present peer connection.
func (s *Session) currentPeer() *transport.Peer { return s.media().peer.Load() }

// ServerTime converts a time of this host to the server's clock, the clock of Frame.Capture.
func (s *Session) ServerTime(t time.Time) time.Time { return s.media().serverTime(t) }

// settle makes a request. If the session moves to another server meanwhile, the request is made there, too: that server
// may have taken the state of the session before.
func (s *Session) settle(ctx context.Context, message func() signal.Message) error {
	for {
		before := s.connection()
		if _, err := s.request(ctx, message()); err != nil || s.connection() == before {
			return err
		}
	}
}

// connection returns the websocket to the present server.
func (s *Session) connection() *signalling.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn
}

// request sends a message and waits for its reply.
func (s *Session) request(ctx context.Context, m signal.Message) (signal.Message, error) {
	s.mu.Lock()
	id, reply := s.requests.Open()
	conn := s.conn
	s.mu.Unlock()
	defer s.requests.Close(id)
	if conn == nil {
		return nil, ErrNotConnected
	}
	m.Head().ID = id
	if err := conn.Send(m); err != nil {
		return nil, err
	}
	r, open, err := signalling.Await(ctx, s.ctx, reply)
	if err != nil {
		return nil, err
	}
	if !open {
		return nil, fmt.Errorf("%s: %w", m.Head().Type, ErrInterrupted)
	}
	if refused, ok := r.(*signal.Error); ok {
		return nil, refused
	}
	return r, nil
}

// SetQuality sets the qualities that this client wants. SetQuality returns when the server has accepted the choices.
func (s *Session) SetQuality(ctx context.Context, choices ...signal.Choice) error {
	err := s.settle(ctx, func() signal.Message { return &signal.SetQuality{Choices: choices} })
	if err != nil {
		return err
	}
	s.requested.choose(choices, func(ref volumetric.PublicationRef) bool {
		_, exists := s.roster.publication(ref)
		return exists
	})
	return nil
}

// leaveTimeout bounds how long closing waits for the server's reply.
const leaveTimeout = 2 * time.Second

// Close leaves the room and frees the session's resources. Close returns when all goroutines of the session have ended.
func (s *Session) Close() error {
	s.leaving.Store(true)
	if s.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		_, _ = s.request(ctx, &signal.Leave{})
		cancel()
	}
	s.cancel(ErrClosed)
	s.running.Wait()
	return nil
}
