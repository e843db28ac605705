package sfu

import (
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestTimeoutsGoOnAfterResuming lets a timer elapse while the websocket is broken and no client can be expelled. No
// other timer may take effect afterwards.
func TestTimeoutsGoOnAfterResuming(t *testing.T) {
	const short = 10 * time.Millisecond
	tests := []struct {
		name    string
		answers bool
		runOut  func(r *Room, c *connection)
	}{
		{"an offer that is never answered", false, func(r *Room, c *connection) {
			answerOverdue{c, c.owner.pendingOffer}.apply(r)
			r.node.config.AnswerTimeout = short
		}},
		{"a connection that never comes", true, func(r *Room, c *connection) {
			connectOverdue{c}.apply(r)
			r.node.config.ConnectTimeout = short
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := newTestNode(t, mediaOnLoopback(), func(c *Config) {
				c.AnswerTimeout, c.ConnectTimeout = time.Hour, time.Hour
			})
			s, former := enter(t, n, "mallory", true)
			offer := expect[*signal.Offer](t, former, 1)
			if test.answers {
				handle(s, answerTo(t, newClientPeer(t), offer))
				eventually(t, func() (taken bool) {
					inRoom(t, s, func(*Room) { taken = s.participant.pendingOffer == nil })
					return taken
				}, "the answer to be taken")
			}
			s.Detach()
			inRoom(t, s, func(r *Room) { test.runOut(r, s.participant.connection) })
			_, o := resume(t, n, "mallory", former)
			eventually(t, func() bool { _, ended := o.ended(); return ended },
				"the end of a client that came back and does nothing")
			if code, _ := o.ended(); code != signal.CodeConnection {
				t.Errorf("closed with %q, expected %q", code, signal.CodeConnection)
			}
		})
	}
}

// TestARepeatedOfferIsNew resumes a client shortly before the end of its answer timeout.
func TestARepeatedOfferIsNew(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	s, former := enter(t, n, "bob", true)
	first := expect[*signal.Offer](t, former, 1)
	var pending *pendingOffer
	inRoom(t, s, func(*Room) { pending = s.participant.pendingOffer })
	s.Detach()
	s, o := resume(t, n, "bob", former)
	second := expect[*signal.Offer](t, o, 1)
	if second.Offer != first.Offer || second.SDP != first.SDP {
		t.Errorf("offer %d was repeated as another, offer %d", first.Offer, second.Offer)
	}
	// The writers of both websockets set headers at different times.
	if first == second {
		t.Error("two outboxes have the same message")
	}
	inRoom(t, s, func(r *Room) { answerOverdue{s.participant.connection, pending}.apply(r) })
	if code, ended := o.ended(); ended {
		t.Errorf("closed with %q by the timer of the offer before, expected time to answer again", code)
	}
}

// TestTwoResumesRepeatAnOfferOnce resumes a client twice before the connection has passed the offer again.
func TestTwoResumesRepeatAnOfferOnce(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	s, former := enter(t, n, "bob", true)
	expect[*signal.Offer](t, former, 1)
	var outboxes [2]*shelf
	// The room's goroutine takes the repeated offer after both resumes. The refusal of the answer follows everything
	// that the connection did for them.
	inRoom(t, s, func(*Room) {
		p := s.participant
		for i := range outboxes {
			outboxes[i] = &shelf{}
			p.outbox = outboxes[i]
			p.catchUp()
		}
		p.connection.Do(peer.Answer{ID: "1", Offer: p.pendingOffer.number + 1})
	})
	expect[*signal.Error](t, outboxes[1], 1)
	for i, o := range outboxes {
		if _, offers := latest[*signal.Offer](o); offers != i {
			t.Errorf("websocket %d received %d offers, expected %d", i+1, offers, i)
		}
	}
	// A later resume needs the offer again.
	_, o := resume(t, n, "bob", former)
	expect[*signal.Offer](t, o, 1)
}

// TestARepeatedOfferPrecedesAssignments resumes a client that has not answered its offer: assignments name the lines of
// the offer.
func TestARepeatedOfferPrecedesAssignments(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	enter(t, n, "alice", false, bodyOf(1, 1))
	s, former := enter(t, n, "bob", true)
	expect[*signal.Assignments](t, former, 1)
	s.Detach()
	_, o := resume(t, n, "bob", former)
	assignments := expect[*signal.Assignments](t, o, 1)
	offer := expect[*signal.Offer](t, o, 1)
	o.mu.Lock()
	defer o.mu.Unlock()
	if at := slices.Index(o.all, signal.Message(offer)); slices.Index(o.all, signal.Message(assignments)) < at {
		t.Errorf("the assignments precede the offer, which is message %d", at)
	}
}

func TestResumeRepeatsDraining(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	s, former := enter(t, n, "bob", true)
	s.Detach()
	n.toAll(drainRequest{time.Minute})
	_, o := resume(t, n, "bob", former)
	closing, count := latest[*signal.Closing](o)
	if count != 1 || closing.Code != signal.CodeDraining || closing.GraceMS <= 0 {
		t.Errorf("got %d closing messages, the last %+v, expected one of code %q with time left", count, closing,
			signal.CodeDraining)
	}
}

func TestARefusedJoinLeavesTheSessionInGrace(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	s, former := enter(t, n, "bob", true)
	s.Detach()
	_, refused := n.Join(JoinRequest{
		Join: &signal.Join{Version: signal.Version, Publications: []volumetric.Publication{bodyOf(1, 1)}},
		Room: "room", Identity: "bob", Outbox: &shelf{}, At: time.Now(),
	})
	if refused == nil || refused.Code != signal.CodeForbidden {
		t.Fatalf("got %v, expected %q", refused, signal.CodeForbidden)
	}
	again, _ := resume(t, n, "bob", former)
	if again.participant != s.participant {
		t.Error("resumed as another participant")
	}
}

// TestResumeRepeatsWanted checks that the wanted tracks are repeated, because messages during the break of the
// websocket are lost.
func TestResumeRepeatsWanted(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), strictly)
	s, former := admitted(t, n, "alice", &signal.Join{
		Version: signal.Version, Pauses: true, Publications: []volumetric.Publication{bodyOf(2, 2)},
	})
	wanted := expect[*signal.Wanted](t, former, 1).Publications
	if len(wanted) != 1 || len(wanted[0].Tiles) != 2 || len(wanted[0].Tiles[0]) != 0 {
		t.Errorf("asked for %+v, expected nothing of two tiles", wanted)
	}
	s.Detach()
	_, o := resume(t, n, "alice", former)
	if again := expect[*signal.Wanted](t, o, 1).Publications; len(again) != 1 || again[0].Publication != "body" {
		t.Errorf("asked again for %+v", again)
	}
}

// TestALostReplyLosesNoSession breaks the websocket twice before the client has read the reply with the next secret.
func TestALostReplyLosesNoSession(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	s, first := enter(t, n, "bob", true)
	s.Detach()
	s, lost := resume(t, n, "bob", first)
	s.Detach()
	again, _ := resume(t, n, "bob", first)
	if again.participant != s.participant {
		t.Fatal("resumed as another participant")
	}
	again.Detach()
	s, o := resume(t, n, "bob", first)
	refusedWith := func(former *shelf) bool {
		joined := expect[*signal.Joined](t, former, 1)
		_, refused := n.Join(JoinRequest{
			Join: &signal.Join{Version: signal.Version, Resume: &signal.ResumeRequest{Session: joined.Session,
				Secret: joined.Resume.Secret}},
			Room: "room", Identity: "bob", Outbox: &shelf{}, At: time.Now(),
		})
		return refused != nil && refused.Code == signal.CodeResume
	}
	if !refusedWith(lost) {
		t.Error("a secret was taken that the client has not used, though it was replaced")
	}
	handle(s, &signal.Time{})
	if !refusedWith(first) {
		t.Error("the secret before the present one was taken after the client had said something")
	}
	if again, _ := resume(t, n, "bob", o); again.participant != s.participant {
		t.Error("resumed as another participant")
	}
}

// returns resumes a session with a token of the given grants.
func returns(t *testing.T, n *Node, identity string, former *shelf, grants Grants, renewed bool) (*Session, *shelf) {
	t.Helper()
	joined, o := expect[*signal.Joined](t, former, 1), &shelf{}
	grant := &signal.ResumeRequest{Session: joined.Session, Secret: joined.Resume.Secret, NewConnection: renewed}
	s, refused := n.Join(JoinRequest{
		Join: &signal.Join{Version: signal.Version, Resume: grant}, Room: "room", Identity: identity, Grants: grants,
		Outbox: o, At: time.Now(),
	})
	if refused != nil {
		t.Fatal(refused)
	}
	return s, o
}

// TestResumeAppliesTheGrantsOfTheToken checks that a resume removes and restores rights according to its token.
func TestResumeAppliesTheGrantsOfTheToken(t *testing.T) {
	for _, renewed := range []bool{false, true} {
		n := newTestNode(t, mediaOnLoopback(), patiently)
		_, witness := enter(t, n, "alice", false, bodyOf(1, 1))
		s, former := enter(t, n, "bob", true, bodyOf(2, 1))
		s.Detach()
		s, o := returns(t, n, "bob", former, Grants{}, renewed)
		gone := expect[*signal.Unpublished](t, witness, 1)
		told := expect[*signal.Unpublished](t, o, 1)
		if gone.Participant != "bob" || told.PublicationRef != gone.PublicationRef {
			t.Errorf("%v ended for others, %v for its owner", gone.PublicationRef, told.PublicationRef)
		}
		if e, told := latest[*signal.Error](o); told != 2 || e.Code != signal.CodeForbidden {
			t.Errorf("told of %d errors, the last %v, expected two of code %q", told, e, signal.CodeForbidden)
		}
		inRoom(t, s, func(*Room) {
			p := s.participant
			if len(p.Publications) != 0 || p.receives() || p.subscriber.Slots.Needed(volumetric.KindVideo) != 0 {
				t.Errorf("%d publications go on, %d slots are needed", len(p.Publications),
					p.subscriber.Slots.Needed(volumetric.KindVideo))
			}
		})
		handle(s, &signal.Publish{Header: signal.Header{ID: "p"}, Publication: bodyOf(1, 1)})
		if e := expect[*signal.Error](t, o, 3); e.ID != "p" || e.Code != signal.CodeForbidden {
			t.Errorf("publishing gave %v, expected %q", e, signal.CodeForbidden)
		}
		s.Detach()
		s, o = returns(t, n, "bob", o, Grants{Publish: true, Subscribe: true}, renewed)
		handle(s, &signal.Publish{Header: signal.Header{ID: "p"}, Publication: bodyOf(1, 1)})
		expect[*signal.OK](t, o, 1)
		inRoom(t, s, func(*Room) {
			if s.participant.subscriber.Slots.Needed(volumetric.KindVideo) != 1 {
				t.Error("nothing is sent though the token grants receiving again")
			}
		})
	}
}

// TestAPlaceInGraceIsItsOwners checks that a client without the secret or a token for the identity cannot take a
// reserved place.
func TestAPlaceInGraceIsItsOwners(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	s, former := enter(t, n, "bob", false)
	s.Detach()
	hears(t, s)
	if _, refused := arrives(n, "room", "bob", ""); refused == nil || refused.Code != signal.CodeIdentityTaken {
		t.Fatalf("got %v, expected %q", refused, signal.CodeIdentityTaken)
	}
	if again, _ := resume(t, n, "bob", former); again.participant != s.participant {
		t.Error("resumed as another participant")
	}
}
