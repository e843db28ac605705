package peer

import (
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
)

// patience is the maximum wait for events that should occur at once.
const patience = 30 * time.Second

// listener is an owner that records offers and the end of a connection.
type listener struct {
	made, repeated chan *signal.Offer
	events         chan transport.Event
	failed         chan error
	done           chan struct{}
}

func newListener() *listener {
	return &listener{
		make(chan *signal.Offer, 100), make(chan *signal.Offer, 100), make(chan transport.Event, 100),
		make(chan error, 100), make(chan struct{}),
	}
}

func (l *listener) OfferMade(o *signal.Offer, _ []subscriber.Line) { l.made <- o }
func (l *listener) OfferRepeated(o *signal.Offer)                  { l.repeated <- o }
func (l *listener) AnswerTaken(map[Track]transport.Streams)        {}
func (l *listener) OfferAnswered(*Answered)                        {}
func (l *listener) ChannelsMade([]subscriber.Line)                 {}
func (l *listener) RequestFailed(string, signal.Code, string)      {}
func (l *listener) ConnectionFailed(err error)                     { l.failed <- err }
func (l *listener) PeerEvent(event transport.Event)                { l.events <- event }
func (l *listener) SlotEvents([]egress.Event)                      {}
func (l *listener) DataCopied(*signal.Data)                        {}
func (l *listener) FrameTimes([]egress.FrameTimes)                 {}
func (l *listener) Done() <-chan struct{}                          { return l.done }

// rig returns an endpoint and an engine that end with the test.
func rig(t *testing.T) (*transport.Endpoint, *forward.Engine) {
	t.Helper()
	media := transport.ClientConfig()
	media.Address, media.FailedTimeout = "127.0.0.1", time.Hour
	endpoint, err := transport.Listen(media)
	if err != nil {
		t.Fatal(err)
	}
	engine := forward.NewEngine(forward.DefaultConfig(), NewBatch)
	t.Cleanup(func() {
		engine.Close()
		if err := endpoint.Close(); err != nil {
			t.Error(err)
		}
	})
	return endpoint, engine
}

// connect makes a connection for an owner. The test waits for the connection's goroutine at its end.
func connect(t *testing.T, owner Owner, guard *panics.Guard) *Connection {
	t.Helper()
	endpoint, engine := rig(t)
	var running sync.WaitGroup
	c, err := New(endpoint, engine, Config{Parity: true, FrameBytes: 1 << 20, Guard: guard, Running: &running,
		Log: zap.NewNop()}, owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Do(Close{})
		running.Wait()
	})
	return c
}

// TestAFailureForGoodIsPassedOn lets a peer connection fail as after a panic in one of its goroutines.
func TestAFailureForGoodIsPassedOn(t *testing.T) {
	owner := newListener()
	connect(t, owner, nil).peer.Fail()
	for late := time.After(patience); ; {
		select {
		case event := <-owner.events:
			if event.State == transport.StateFailed && event.Final {
				return
			}
		case <-late:
			t.Fatal("the owner was not told of the failure")
		}
	}
}

// TestOnlyAnUnansweredOfferIsRepeated repeats the offer that awaits an answer, the one before and the one after.
func TestOnlyAnUnansweredOfferIsRepeated(t *testing.T) {
	owner := newListener()
	c := connect(t, owner, nil)
	offer := func(from <-chan *signal.Offer) *signal.Offer {
		select {
		case o := <-from:
			return o
		case <-time.After(patience):
			t.Fatal("no offer")
			return nil
		}
	}
	c.Do(SetLines{Lines{Slots: 1}})
	made := offer(owner.made)
	for number := made.Offer - 1; number <= made.Offer+1; number++ {
		c.Do(Repeat{number})
		repeated := offer(owner.repeated)
		if number != made.Offer {
			if repeated != nil {
				t.Errorf("offer %d was repeated instead of offer %d", repeated.Offer, number)
			}
			continue
		}
		if repeated == nil || repeated.Offer != number || repeated.SDP != made.SDP ||
			!slices.Equal(repeated.Media, made.Media) {
			t.Errorf("%+v was repeated as %+v", made, repeated)
		}
	}
}

// TestAPanicEndsTheConnection checks that the owner is notified when the connection's goroutine panics.
func TestAPanicEndsTheConnection(t *testing.T) {
	reported := make(chan panics.Report, 1)
	owner := newListener()
	type unknown struct{}
	connect(t, owner, panics.NewGuard(func(r panics.Report) { reported <- r }, PanicPlace)).Do(unknown{})
	select {
	case err := <-owner.failed:
		if err != ErrPanicked {
			t.Errorf("failed with %v, expected %v", err, ErrPanicked)
		}
	case <-time.After(patience):
		t.Fatal("the owner was not told of the panic")
	}
	if r := <-reported; r.Where != PanicPlace {
		t.Errorf("the panic is one of %q, expected %q", r.Where, PanicPlace)
	}
}

// TestTheConnectionEndsWithItsOwner checks that the connection ends with an owner that panicked and lost its reference.
func TestTheConnectionEndsWithItsOwner(t *testing.T) {
	endpoint, engine := rig(t)
	owner := newListener()
	var running sync.WaitGroup
	if _, err := New(endpoint, engine, Config{Running: &running, Log: zap.NewNop()}, owner); err != nil {
		t.Fatal(err)
	}
	close(owner.done)
	running.Wait()
}

// TestAPeerIsClosedAfterAPanic lets the end of a connection panic.
func TestAPeerIsClosedAfterAPanic(t *testing.T) {
	endpoint, engine := rig(t)
	peer, err := endpoint.NewPeer(&mediaSink{})
	if err != nil {
		t.Fatal(err)
	}
	c := &Connection{peer: peer, Ingress: engine.NewIngress(mediaPeer{peer})}
	guard := panics.NewGuard(func(panics.Report) {}, PanicPlace)
	// The connection has no receiver, so Close panics.
	if guard.Try(PanicPlace, c.close) {
		t.Fatal("the connection was closed without a panic")
	}
	events := peer.Events()
	if len(events) == 0 || events[len(events)-1].State != transport.StateClosed {
		t.Errorf("the peer's events are %v, expected its end", events)
	}
}
