package client

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Sizes of the channels that a program reads. A program that does not read loses what comes then, and counts say so.
const (
	eventBacklog  = 1024
	frameBacklog  = 1024
	packetBacklog = 1024
)

// Session is one participant's presence in a room. Its methods are safe for concurrent use.
type Session struct {
	config   Config
	log      *slog.Logger
	endpoint *transport.Endpoint
	media    *media
	events   chan Event
	notices  *notices

	// ctx ends when the session does; running counts its goroutines.
	ctx     context.Context
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	// leaving says that the websocket's end is wanted.
	leaving atomic.Bool
	// ended is why the server has ended the peer connection, nil where it has not. It belongs to the session's goroutine.
	ended *signal.Error

	mu       sync.Mutex
	link     *link
	joined   *signal.Joined
	requests int
	pending  map[string]chan signal.Message
	// back is closed when the session goes on by another websocket, nil while nobody waits for that.
	back         chan struct{}
	participants map[string]map[string]volumetric.Publication
	publishers   map[string]*Publisher
	peer         *transport.Peer
	// limits are the last ones that the server has taken.
	limits signal.BitrateLimits
}

// Join enters a room and returns once the server has taken the client in. Media flows after the event Connected.
func Join(ctx context.Context, config Config) (*Session, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Session{
		config:       config,
		log:          config.Log,
		events:       make(chan Event, eventBacklog),
		notices:      newNotices(),
		pending:      make(map[string]chan signal.Message),
		participants: make(map[string]map[string]volumetric.Publication),
		publishers:   make(map[string]*Publisher),
	}
	s.media = newMedia(s)
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.config.panicked = s.panicked
	if s.endpoint, err = s.config.endpoint(); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		s.cancel(err)
		_ = s.endpoint.Close()
		// It is the panic of the websocket's goroutine, if that has ended the websocket.
		return nil, s.Err()
	}
	s.running.Add(3)
	go s.run()
	go s.media.send()
	go s.media.watch()
	return s, nil
}

// enter opens the websocket, joins, and makes the peer connection.
func (s *Session) enter(ctx context.Context) error {
	for i := range s.config.Publications {
		publication := s.config.Publications[i]
		s.publishers[publication.Name] = newPublisher(s, publication)
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
	}
	s.limits = s.config.limits(s.config.MaxBitrate, 0)
	join.BitrateLimits = s.limits
	l, joined, err := s.greet(ctx, join)
	if err != nil {
		return err
	}
	if s.peer, err = s.newPeer(); err != nil {
		l.close()
		return err
	}
	s.link = l
	s.welcome(joined)
	return nil
}

// newPeer makes a peer connection.
func (s *Session) newPeer() (*transport.Peer, error) {
	peer, err := s.endpoint.NewPeer(s.media)
	if err == nil && s.config.Feedback == FeedbackCCFB {
		peer.PreferReportsByStream()
	}
	return peer, err
}

// greet opens a websocket and sends a join, and returns the reply.
func (s *Session) greet(ctx context.Context, join *signal.Join) (*link, *signal.Joined, error) {
	l, err := dial(ctx, s.config)
	if err != nil {
		return nil, nil, err
	}
	fail := func(err error) (*link, *signal.Joined, error) {
		l.close()
		return nil, nil, err
	}
	if err := l.send(join); err != nil {
		return fail(err)
	}
	for {
		m, open, err := l.receive(ctx)
		switch {
		case err != nil:
			return fail(fmt.Errorf("join: %w", err))
		case !open:
			return fail(fmt.Errorf("join: %w", l.err))
		}
		switch m := m.(type) {
		case *signal.Joined:
			return l, m, nil
		case *signal.Error:
			return fail(fmt.Errorf("join: %w", m))
		}
	}
}

// welcome takes over what the server said of the room.
func (s *Session) welcome(joined *signal.Joined) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined = joined
	s.media.tracing.joined(joined.Identity)
	clear(s.participants)
	for _, p := range joined.Participants {
		s.participants[p.Identity] = publicationsByName(p.Publications)
	}
}

func publicationsByName(list []volumetric.Publication) map[string]volumetric.Publication {
	byName := make(map[string]volumetric.Publication, len(list))
	for _, p := range list {
		byName[p.Name] = p
	}
	return byName
}

// Identity is the participant's name in the room, Room the room's name.
func (s *Session) Identity() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.joined.Identity
}

// Room is the room's name.
func (s *Session) Room() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.joined.Room
}

// Participants are the others in the room with what they publish, by name.
func (s *Session) Participants() []signal.Participant {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []signal.Participant{}
	for _, identity := range slices.Sorted(maps.Keys(s.participants)) {
		p := signal.Participant{Identity: identity}
		for _, name := range slices.Sorted(maps.Keys(s.participants[identity])) {
			p.Publications = append(p.Publications, s.participants[identity][name])
		}
		list = append(list, p)
	}
	return list
}

// Events tells what happens. The channel is closed when the session ends.
func (s *Session) Events() <-chan Event { return s.events }

// Frames brings complete frames of volumetric video. It is closed when the session ends.
func (s *Session) Frames() <-chan Frame { return s.media.frames }

// Packets brings the packets of all other tracks. It is closed when the session ends.
func (s *Session) Packets() <-chan Packet { return s.media.packets }

// Done is closed when the session has ended; Err says why.
func (s *Session) Done() <-chan struct{} { return s.ctx.Done() }

// Err is why the session ended: ErrClosed after Close, else what went wrong, ErrPanicked among it; nil while it lives.
func (s *Session) Err() error { return context.Cause(s.ctx) }

// tell queues an event. A program that does not read events loses new ones.
func (s *Session) tell(e Event) {
	select {
	case s.events <- e:
	default:
	}
}

// currentPeer is the present peer connection.
func (s *Session) currentPeer() *transport.Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peer
}

// ServerTime turns a time of this host into the server's clock, in which Frame.Capture is given. Where the server is this host both are one.
func (s *Session) ServerTime(t time.Time) time.Time { return s.media.serverTime(t) }

// publicationOf finds what somebody publishes.
func (s *Session) publicationOf(ref volumetric.PublicationRef) (volumetric.Publication, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.participants[ref.Participant][ref.Publication]
	return p, ok
}

// request sends a message and waits for its reply.
func (s *Session) request(ctx context.Context, m signal.Message) (signal.Message, error) {
	s.mu.Lock()
	s.requests++
	id := strconv.Itoa(s.requests)
	reply := make(chan signal.Message, 1)
	s.pending[id] = reply
	l := s.link
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.pending, id)
		s.mu.Unlock()
	}()
	if l == nil {
		return nil, ErrNotConnected
	}
	m.Head().ID = id
	if err := l.send(m); err != nil {
		return nil, err
	}
	r, open, err := s.hear(ctx, reply)
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

// hear waits for a reply until the context or the session ends. A reply that is there counts though one of them has ended since, as the session does where the server replies
// and closes it. It is not open where the wait was abandoned.
func (s *Session) hear(ctx context.Context, reply <-chan signal.Message) (m signal.Message, open bool, err error) {
	select {
	case m, open = <-reply:
		return m, open, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.ctx.Done():
		err = s.Err()
	}
	select {
	case m, open = <-reply:
		return m, open, nil
	default:
		return nil, false, err
	}
}

// abandonRequests ends the wait for replies that the websocket took with it when it broke, which the server does not repeat, and for another websocket. It is called under the
// lock by the session's goroutine, which is the one that hands out replies.
func (s *Session) abandonRequests() {
	if s.back != nil {
		close(s.back)
		s.back = nil
	}
	for id, reply := range s.pending {
		close(reply)
		delete(s.pending, id)
	}
}

// SetQuality states what this client wants to be sent. It returns when the server has taken the choices.
func (s *Session) SetQuality(ctx context.Context, choices ...signal.Choice) error {
	_, err := s.request(ctx, &signal.SetQuality{Choices: choices})
	return err
}

// leaveTimeout bounds how long closing waits for the server to take note.
const leaveTimeout = 2 * time.Second

// Close leaves the room and frees what the session holds. It returns when all of the session's goroutines have ended.
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
