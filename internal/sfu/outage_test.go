package sfu

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// patiently sets timeouts of connections that do not elapse during the test.
func patiently(c *Config) { c.AnswerTimeout, c.ConnectTimeout = time.Hour, time.Hour }

// becomes sets the state of a participant's peer connection.
func becomes(t *testing.T, s *Session, states ...transport.State) {
	t.Helper()
	inRoom(t, s, func(r *Room) {
		for _, state := range states {
			peerEvent{s.participant.connection, transport.Event{State: state}}.apply(r)
		}
	})
}

// TestAnEndedPeerConnectionIsReportedAtOnce checks that the client is notified at once and not after the connect
// timeout, because the connection cannot recover.
func TestAnEndedPeerConnectionIsReportedAtOnce(t *testing.T) {
	ended := func(t *testing.T) (*Node, *Session, *shelf) {
		n := newTestNode(t, mediaOnLoopback(), patiently)
		s, o := enter(t, n, "bob", true)
		expect[*signal.Offer](t, o, 1)
		becomes(t, s, transport.StateConnected, transport.StateClosed)
		if code, _ := o.ended(); code != signal.CodeConnection {
			t.Fatalf("closed with %q, expected %q", code, signal.CodeConnection)
		}
		return n, s, o
	}
	again := func(n *Node, former *shelf, renewed bool) (*Session, *shelf, *signal.Error) {
		joined := expect[*signal.Joined](t, former, 1)
		o := &shelf{}
		grant := &signal.ResumeRequest{Session: joined.Session, Secret: joined.Resume.Secret, NewConnection: renewed}
		s, refused := n.Join(JoinRequest{
			Join: &signal.Join{Version: signal.Version, Resume: grant}, Room: "room", Identity: "bob", Outbox: o,
			At:     time.Now(),
			Grants: Grants{Publish: true, Subscribe: true},
		})
		return s, o, refused
	}
	t.Run("the client comes back with a new one", func(t *testing.T) {
		n, s, former := ended(t)
		back, o, refused := again(n, former, true)
		if refused != nil || back.participant != s.participant {
			t.Fatalf("came back as another participant, or was refused: %v", refused)
		}
		if offer := expect[*signal.Offer](t, o, 1); offer.Offer != 1 {
			t.Errorf("offer %d, expected the first of a new connection", offer.Offer)
		}
	})
	t.Run("the client believes that it lives", func(t *testing.T) {
		n, s, former := ended(t)
		if _, _, refused := again(n, former, false); refused == nil || refused.Code != signal.CodeResume {
			t.Fatalf("got %v, expected %q", refused, signal.CodeResume)
		}
		if back, _ := enter(t, n, "bob", true); back.participant == s.participant {
			t.Error("joined as the participant whose connection is over")
		}
	})
	t.Run("the client rejoins", func(t *testing.T) {
		n, s, _ := ended(t)
		if back, _ := enter(t, n, "bob", true); back.participant == s.participant {
			t.Error("joined as the participant whose connection is over")
		}
	})
}

// TestDisconnectionRestartsICE checks that ICE restarts after a loss, because the client may have a new address.
func TestDisconnectionRestartsICE(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), patiently)
	s, o := enter(t, n, "bob", true)
	first := expect[*signal.Offer](t, o, 1)
	handle(s, answerTo(t, newClientPeer(t), first))
	eventually(t, func() (taken bool) {
		inRoom(t, s, func(*Room) { taken = s.participant.pendingOffer == nil })
		return taken
	}, "the answer to be taken")
	becomes(t, s, transport.StateConnected, transport.StateDisconnected)
	second := expect[*signal.Offer](t, o, 2)
	if before, after := fragmentOf(t, first), fragmentOf(t, second); before == after {
		t.Errorf("the second offer has ICE's name of the first, %q", before)
	}
}

// fragmentOf returns the server's ICE username fragment in an offer.
func fragmentOf(t *testing.T, offer *signal.Offer) string {
	t.Helper()
	for line := range strings.SplitSeq(offer.SDP, "\r\n") {
		if fragment, ok := strings.CutPrefix(line, "a=ice-ufrag:"); ok {
			return fragment
		}
	}
	t.Fatal("an offer without a=ice-ufrag")
	return ""
}

// joinTimes counts first connections of participants.
type joinTimes struct {
	uncounted
	connected int
}

func (j *joinTimes) ParticipantConnected(time.Duration) { j.connected++ }

// TestReconnectionIsNotAJoin checks that a reconnection is not counted as a join.
func TestReconnectionIsNotAJoin(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), patiently)
	times := &joinTimes{}
	n.metrics = times
	s, _ := enter(t, n, "bob", true)
	becomes(t, s, transport.StateConnected, transport.StateFailed, transport.StateConnected)
	inRoom(t, s, func(*Room) {
		if times.connected != 1 {
			t.Errorf("%d times of joining, expected one", times.connected)
		}
	})
}

// TestResumeRepeatsSending switches a tile off while the client has no websocket.
func TestResumeRepeatsSending(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(2, 3))
	bob := s.watches("bob", 100e6)
	s.pass(time.Second)
	bob.begin()
	bob.outbox = nil
	s.ask(func(*Room) {
		bob.subscriber.Choices.SetAll([]signal.Choice{choiceOf(0, signal.Only(volumetric.QualityOff))})
		bob.refresh(s.now)
	})
	s.pass(time.Second)
	bob.expectCarried("-1 2")
	again := &shelf{}
	bob.outbox = again
	s.ask(func(*Room) { bob.catchUp() })
	told, _ := latest[*signal.Sending](again)
	if told == nil {
		t.Fatal("no message about the slot")
	}
	if got, want := reasons(told), "0:-1:choice 1:2:auto"; got != want {
		t.Errorf("told %q, expected %q", got, want)
	}
}

// TestResumingLeaksNothing resumes a participant many times, with its connection and with new connections.
func TestResumingLeaksNothing(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), patiently)
	s, former := enter(t, n, "bob", true, bodyOf(2, 2))
	expect[*signal.Offer](t, former, 1)
	before := runtime.NumGoroutine()
	for i := range 300 {
		if i%3 > 0 {
			s.Detach()
		}
		joined := expect[*signal.Joined](t, former, 1)
		grant := &signal.ResumeRequest{Session: joined.Session, Secret: joined.Resume.Secret, NewConnection: i%2 > 0}
		s, former = admitted(t, n, "bob", &signal.Join{Version: signal.Version, Resume: grant})
	}
	eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 },
		"the goroutines of connections that were replaced to end")
	handle(s, &signal.Leave{})
	eventually(t, func() bool {
		rooms, sessions, _ := n.rooms.Counts()
		return rooms == 0 && sessions == 0
	}, "the room to end")
}

// TestASessionThatEndsMeanwhileIsOver ends the room with its last participant during a resume. The client may rejoin,
// and the server continues.
func TestASessionThatEndsMeanwhileIsOver(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), patiently)
	s, o := enter(t, n, "bob", true)
	joined := expect[*signal.Joined](t, o, 1)
	handle(s, &signal.Leave{})
	<-s.room.done
	n.rooms.Remember(joined.Session, s.room)
	grant := &signal.ResumeRequest{Session: joined.Session, Secret: joined.Resume.Secret}
	_, refused := n.Join(JoinRequest{Join: &signal.Join{Version: signal.Version, Resume: grant}, Room: "room",
		Identity: "bob", Outbox: &shelf{}, At: time.Now()})
	if refused == nil || refused.Code != signal.CodeResume {
		t.Errorf("got %v, expected %q", refused, signal.CodeResume)
	}
	n.rooms.Forget(joined.Session)
}
