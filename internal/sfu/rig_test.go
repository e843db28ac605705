package sfu

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// patience is the maximum wait for events that should occur at once.
const patience = 30 * time.Second

// uncounted discards the counts of a node.
type uncounted struct{}

func (uncounted) Rooms(int)                          {}
func (uncounted) Participants(int)                   {}
func (uncounted) ParticipantConnected(time.Duration) {}
func (uncounted) SignallingError(signal.Code)        {}
func (uncounted) TracksPaused(int)                   {}
func (uncounted) Suppressed(float64)                 {}
func (uncounted) Decided(signal.Reason)              {}

func (uncounted) Allocated(time.Duration, volumetric.Bitrate) {}

// shelf is an outbox that keeps its messages.
type shelf struct {
	mu     sync.Mutex
	all    []signal.Message
	full   bool
	closed bool
	code   signal.Code
}

// Send implements Outbox.
func (o *shelf) Send(m signal.Message) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.full {
		o.all = append(o.all, m)
	}
	return !o.full
}

// Close implements Outbox.
func (o *shelf) Close(code signal.Code, _ string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed, o.code = true, code
	}
}

func (o *shelf) fill() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.full = true
}

// ended returns the code with which the outbox was closed.
func (o *shelf) ended() (signal.Code, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.code, o.closed
}

// latest returns the last message of a type and the number of messages of the type.
func latest[M signal.Message](o *shelf) (found M, count int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.all {
		if wanted, ok := m.(M); ok {
			found = wanted
			count++
		}
	}
	return found, count
}

// expect waits for a number of messages of a type and returns the last.
func expect[M signal.Message](t *testing.T, o *shelf, count int) M {
	t.Helper()
	var wanted M
	eventually(t, func() bool {
		var n int
		wanted, n = latest[M](o)
		return n >= count
	}, "%d messages of type %T", count, wanted)
	return wanted
}

func eventually(t *testing.T, condition func() bool, what string, arguments ...any) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for "+what, arguments...)
		}
	}
}

// mediaOnLoopback returns the configuration of an endpoint on a free port. Connections do not fail without a cause,
// because an ICE restart causes an offer.
func mediaOnLoopback() transport.Config {
	c := transport.ClientConfig()
	c.Address = "127.0.0.1"
	c.FailedTimeout = time.Hour
	return c
}

// newTestNode makes a node that ends with the test.
func newTestNode(t *testing.T, media transport.Config, adjust func(*Config)) *Node {
	t.Helper()
	endpoint, err := transport.Listen(media)
	if err != nil {
		t.Fatal(err)
	}
	config := DefaultConfig()
	if adjust != nil {
		adjust(&config)
	}
	engine := forward.NewEngine(forward.DefaultConfig(), peer.NewBatch)
	n, err := NewNode(config, endpoint, engine, uncounted{}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		n.Drain(over, 0)
		engine.Close()
		if err := endpoint.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// enter adds a participant with all grants to the test's room.
func enter(
	t *testing.T, n *Node, identity string, receive bool, publications ...volumetric.Publication,
) (*Session, *shelf) {
	t.Helper()
	return admitted(t, n, identity, &signal.Join{Version: signal.Version, Receive: receive, Publications: publications})
}

// resume resumes a participant whose websocket broke with the secret of its last join.
func resume(t *testing.T, n *Node, identity string, former *shelf) (*Session, *shelf) {
	t.Helper()
	joined := expect[*signal.Joined](t, former, 1)
	grant := &signal.ResumeRequest{Session: joined.Session, Secret: joined.Resume.Secret}
	return admitted(t, n, identity, &signal.Join{Version: signal.Version, Resume: grant})
}

func admitted(t *testing.T, n *Node, identity string, join *signal.Join) (*Session, *shelf) {
	t.Helper()
	o := &shelf{}
	s, refused := n.Join(JoinRequest{
		Join: join, Room: "room", Identity: identity, OwnsIdentity: true,
		Grants: Grants{Publish: true, Subscribe: true},
		Outbox: o, At: time.Now(),
	})
	if refused != nil {
		t.Fatal(refused)
	}
	return s, o
}

// inspection runs a function on the room's goroutine.
type inspection struct {
	look func(r *Room)
	done chan struct{}
}

// apply implements request.
func (q inspection) apply(r *Room) {
	q.look(r)
	close(q.done)
}

// inRoom runs a function on the room's goroutine after all earlier requests.
func inRoom(t *testing.T, s *Session, look func(r *Room)) {
	t.Helper()
	q := inspection{look, make(chan struct{})}
	s.room.post(q)
	select {
	case <-q.done:
	case <-s.room.done:
		t.Fatal("the room has ended")
	}
}

// handle passes messages of the client to the session.
func handle(s *Session, messages ...signal.Message) {
	for _, m := range messages {
		s.Handle(m, time.Now())
	}
}

// newClientPeer makes the peer of a client. It receives no candidates, so it never connects.
func newClientPeer(t *testing.T) *transport.Peer {
	t.Helper()
	endpoint, err := transport.Listen(mediaOnLoopback())
	if err != nil {
		t.Fatal(err)
	}
	p, err := endpoint.NewPeer(transport.NoOpSink{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Close()
		_ = endpoint.Close()
	})
	return p
}

// answerTo answers an offer and sends on every line with a track.
func answerTo(t *testing.T, p *transport.Peer, offer *signal.Offer) *signal.Answer {
	t.Helper()
	if _, err := p.Offered(without(offer.SDP, "a=candidate")); err != nil {
		t.Fatal(err)
	}
	for _, m := range offer.Media {
		if m.Role != signal.RolePublish || m.Publication == "" {
			continue
		}
		if _, err := p.Sending(m.MID); err != nil {
			t.Fatal(err)
		}
	}
	sdp, err := p.Answer()
	if err != nil {
		t.Fatal(err)
	}
	return &signal.Answer{Offer: offer.Offer, SDP: without(sdp, "a=candidate")}
}

// without removes the lines of a description that begin with the prefix.
func without(description, prefix string) string {
	lines := strings.Split(description, "\r\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, prefix) }), "\r\n")
}

// bodyOf returns a publication with the given numbers of tiles and qualities.
func bodyOf(tiles, qualities int) volumetric.Publication {
	return *described(tiles, qualities, volumetric.ModeAlternatives)
}

func described(tiles, qualities int, mode volumetric.Mode) *volumetric.Publication {
	return &volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: mode,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles: make([]volumetric.Tile, tiles), Qualities: make([]volumetric.QualityLevel, qualities),
	}
}

// choiceOf returns a choice for a tile of alice's body, or for the whole body if tile is -1.
func choiceOf(tile int, s signal.Selection) signal.Choice {
	c := signal.Choice{PublicationRef: volumetric.PublicationRef{Participant: "alice", Publication: "body"}, Quality: s}
	if tile >= 0 {
		c.Tile = &tile
	}
	return c
}

func several(q ...volumetric.Quality) signal.Selection { return signal.Selection{Qualities: q} }

// newStored returns stored choices.
func newStored(choices ...signal.Choice) []subscriber.Stored {
	c := subscriber.NewChoices(len(choices))
	c.SetAll(choices)
	return c.Stored()
}
