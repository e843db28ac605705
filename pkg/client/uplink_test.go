package client

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestNothingIsDueWithoutAConnection: the estimator waits for a report that cannot come.
func TestNothingIsDueWithoutAConnection(t *testing.T) {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 1))
	m.agree(1, false)
	m.connect()
	s := sending{media: m}
	now := time.Now()
	if _, err := p.WriteFrame(0, 0, OutgoingFrame{Number: 1, Capture: now, Data: []byte("tile")}); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		now = now.Add(time.Millisecond)
		s.step(now, noFlush{})
	}
	if m.uplink.sender.StepDue() == sender.Never {
		t.Fatal("no step of the estimate is due")
	}
	m.disconnect()
	now = now.Add(10 * time.Second)
	if wait, idle := s.step(now, noFlush{}); wait != idleTick || !idle {
		t.Errorf("looks again after %v, idle %v; want %v and idle", wait, idle, idleTick)
	}
}

// TestFramesOfEndedPublicationsAreNotLeftOut: nobody is asked for a key frame of a publication that has ended while its frames waited.
func TestFramesOfEndedPublicationsAreNotLeftOut(t *testing.T) {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("desk", volumetric.MIMEH264, 1, 1))
	start := m.uplink.started
	setPath(m, pacing.Path{Estimate: 8e6}, start)
	m.uplink.sender.Spend(100_000)
	m.uplink.add(trackFrame(p, 0, 10, start, 10*time.Millisecond))
	if n := len(m.uplink.depart(start, nil)); n != 0 || !waits(m) {
		t.Fatalf("%d packets leave without room, want the frame to wait", n)
	}
	m.detach(p)
	if n := len(m.uplink.depart(start.Add(time.Second), nil)); n != 0 || waits(m) || len(m.uplink.dropped) != 0 {
		t.Errorf("%d packets leave, %d frames were left out, want none of a publication that has ended", n, len(m.uplink.dropped))
	}
}

// TestNobodyIsToldAfterTheEnd: the sending goroutine may be about to step when the session is freed and its events end.
func TestNobodyIsToldAfterTheEnd(t *testing.T) {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("desk", volumetric.MIMEH264, 1, 1))
	// The program is to be told of a frame that was left out.
	m.uplink.dropped = append(m.uplink.dropped, ownTrack{p, 0})
	m.end()
	close(m.session.events)
	s := sending{media: m}
	if wait, idle := s.step(time.Now(), noFlush{}); wait != idleTick || !idle {
		t.Errorf("looks again after %v, idle %v; want %v and idle", wait, idle, idleTick)
	}
}
