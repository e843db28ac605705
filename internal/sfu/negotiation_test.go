package sfu

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// TestRepublishingDuringAnOffer ends a publication and adds another with the same name before the first offer is
// answered.
func TestRepublishingDuringAnOffer(t *testing.T) {
	tests := []struct {
		name             string
		tiles, qualities int
	}{
		{"the same shape", 2, 2},
		{"smaller", 1, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := newTestNode(t, mediaOnLoopback(), nil)
			s, o := enter(t, n, "alice", false, bodyOf(2, 2))
			answer := answerTo(t, newClientPeer(t), expect[*signal.Offer](t, o, 1))
			handle(s, &signal.Unpublish{Publication: "body"},
				&signal.Publish{Publication: bodyOf(test.tiles, test.qualities)}, answer)
			named := 0
			for _, m := range expect[*signal.Offer](t, o, 2).Media {
				if m.Publication == "body" {
					named++
				}
			}
			if want := test.tiles * test.qualities; named != want {
				t.Errorf("the second offer names %d tracks, expected %d", named, want)
			}
		})
	}
}

func TestABetterAnswerIsTaken(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	s, o := enter(t, n, "bob", true)
	answer := answerTo(t, newClientPeer(t), expect[*signal.Offer](t, o, 1))
	bad := &signal.Answer{Header: signal.Header{ID: "bad"}, Offer: answer.Offer,
		SDP: without(answer.SDP, "a=ice-ufrag")}
	handle(s, &signal.Candidate{Candidate: "garbage"}, bad)
	if refused := expect[*signal.Error](t, o, 1); refused.ID != "bad" || refused.Code != signal.CodeInvalidSDP {
		t.Errorf("got %q for request %q, expected %q for %q", refused.Code, refused.ID, signal.CodeInvalidSDP, "bad")
	}
	handle(s, answer)
	eventually(t, func() (taken bool) {
		inRoom(t, s, func(*Room) { taken = s.participant.pendingOffer == nil })
		return taken
	}, "the answer to be taken")
	if refused, count := latest[*signal.Error](o); count != 1 {
		t.Errorf("%d errors, expected one; the last is %v", count, refused)
	}
}

// TestAClientThatNeverConnectsIsExpelled has a client that answers every offer but sends no packets.
func TestAClientThatNeverConnectsIsExpelled(t *testing.T) {
	media := mediaOnLoopback()
	media.DisconnectedTimeout, media.FailedTimeout = 50*time.Millisecond, 50*time.Millisecond
	n := newTestNode(t, media, func(c *Config) { c.ConnectTimeout = 500 * time.Millisecond })
	s, o := enter(t, n, "bob", true)
	p := newClientPeer(t)
	answered := 0
	eventually(t, func() bool {
		if offer, count := latest[*signal.Offer](o); count > answered {
			answered = count
			handle(s, answerTo(t, p, offer))
		}
		_, ended := o.ended()
		return ended
	}, "the end of a client that never connects")
	if code, _ := o.ended(); code != signal.CodeConnection {
		t.Errorf("closed with %q, expected %q", code, signal.CodeConnection)
	}
}
