package egress

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/race"
)

// lossy returns a conference whose frames have 20 source and 10 parity packets, on a link with a delay in each
// direction. If loses is set, the link loses every tenth packet.
func lossy(t *testing.T, delay time.Duration, loses bool) *conference {
	c := newConference(t, 100e6, nil)
	// The deadline of the rig is an hour.
	c.publisher.Parity, c.link.delay, c.receiver.path.deadline = 10, delay, 0
	if loses {
		c.link.loses = func(number uint16) bool { return number%10 == 0 }
	}
	c.sameFrames(5 * time.Second)
	return c
}

// sameFrames publishes frames of 20 source packets for a time.
func (c *conference) sameFrames(d time.Duration) {
	for end := c.now.Add(d); c.now.Before(end); {
		c.publisher.Next()
		c.publisher.Send(c.now, c.publisher.Packets(20*1144)...)
		c.link.pass(frameInterval)
	}
}

// parityPerFrame returns the source and parity packets per frame that the subscriber is sent, over a second.
func (c *conference) parityPerFrame() (source, parity float64) {
	before := c.engine.Stats().Sent
	c.sameFrames(time.Second)
	sent := c.engine.Stats().Sent
	return float64(sent.Media.Packets-before.Media.Packets) / 31,
		float64(sent.Parity.Packets-before.Parity.Packets) / 31
}

// TestParityFollowsThePath checks that frames are protected only if requests arrive too late.
func TestParityFollowsThePath(t *testing.T) {
	race.SkipSequential(t)
	for _, test := range []struct {
		name        string
		delay       time.Duration
		loses       bool
		least, most float64
	}{
		{"no loss", 75 * time.Millisecond, false, 0, 0},
		{"requests suffice", 5 * time.Millisecond, true, 0, 0},
		{"requests come too late", 200 * time.Millisecond, true, 0.1, 0.25},
	} {
		c := lossy(t, test.delay, test.loses)
		share := c.receiver.ParityShare()
		if share < test.least || share > test.most {
			t.Errorf("%s: the share is %v, expected %v to %v; the path is %+v", test.name, share, test.least, test.most,
				c.receiver.Path())
		}
		source, parity := c.parityPerFrame()
		if source < 19.5 || source > 20.5 || parity < 20*share-0.5 || parity > 20*share+1.5 {
			t.Errorf("%s: %.1f source and %.1f parity packets per frame left, expected 20 and a share of %v", test.name,
				source, parity, share)
		}
		checkContinuous(t, c.outlet.sent())
		// A later slot has the same share.
		outlet := newFakeOutlet(c.peer, 5000)
		c.receiver.AddSlot(outlet, c.slot.kind).Select(c.publisher.track, 2, c.now)
		c.sameFrames(frameInterval)
		c.sameFrames(frameInterval)
		if n := float64(len(outlet.sent())); n < 40+2*20*share-1 || n > 40+2*20*share+3 {
			t.Errorf("%s: %v packets of two frames left on a new slot, at a share of %v", test.name, n, share)
		}
	}
}

// TestBareReceiversGetNoParity loses packets of a receiver that would otherwise be protected.
func TestBareReceiversGetNoParity(t *testing.T) {
	c := newConference(t, 100e6, nil)
	c.publisher.Parity, c.link.delay, c.receiver.path.deadline = 10, 200*time.Millisecond, 0
	c.link.loses = func(number uint16) bool { return number%10 == 0 }
	c.receiver.SendBare()
	c.sameFrames(5 * time.Second)
	if share := c.receiver.ParityShare(); share != 0 || c.receiver.Path().Loss < 0.05 {
		t.Errorf("the share is %v; the path is %+v", share, c.receiver.Path())
	}
	if _, parity := c.parityPerFrame(); parity != 0 {
		t.Errorf("%.1f parity packets per frame left", parity)
	}
}
