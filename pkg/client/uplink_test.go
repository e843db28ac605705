package client

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestAllPacketsOfAProbeAreToldApart: a probe begins in the middle of a microsecond, which is as fine as the history keeps times.
func TestAllPacketsOfAProbeAreToldApart(t *testing.T) {
	m := newRig(t, Config{})
	u, d := &m.uplink, &m.departures
	recorder := feedback.NewTransportRecorder(feedback.DefaultConfig().Transport)
	now := time.Now()
	send := func(packets int) {
		for range packets {
			number := d.history.Sent(1200, feedback.Media, now)
			u.sent(now, number, 1200)
			recorder.Received(uint16(number), 1200, now)
		}
	}
	send(2)
	u.want(now, 20e6)
	now = now.Add(30*time.Millisecond + 700)
	u.step(now)
	id := u.cluster.ID
	if id == 0 {
		t.Fatal("nothing is probed after the first packets")
	}
	send(3)
	now = now.Add(time.Second)
	if !d.report(recorder.AppendReports(nil, 1, 0, now), now) || len(d.fresh) != 5 {
		t.Fatalf("%d packets were reported, want 5", len(d.fresh))
	}
	u.report(now, d.fresh)
	for i, want := range []int{0, 0, id, id, id} {
		if got := d.fresh[i].Probe; got != want {
			t.Errorf("packet %d was sent in probe %d, want %d", i, got, want)
		}
	}
}

// TestNothingIsDueWithoutAConnection: the estimator waits for a report that cannot come.
func TestNothingIsDueWithoutAConnection(t *testing.T) {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 1))
	m.connect(1)
	s := sender{media: m}
	now := time.Now()
	if _, err := p.WriteFrame(0, 0, OutgoingFrame{Number: 1, Capture: now, Data: []byte("tile")}); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		now = now.Add(time.Millisecond)
		s.step(now, noFlush{})
	}
	if m.uplink.next().IsZero() {
		t.Fatal("the estimator waits for nothing")
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
	start := time.Unix(100, 0)
	m.pacer.limit(pacing.Path{Estimate: 8e6}, start)
	m.pacer.spend(100_000)
	m.pacer.add(pacedTrack(p, 0, 10, start, 10*time.Millisecond))
	if n := len(m.pacer.due(start, nil)); n != 0 || m.pacer.idle() {
		t.Fatalf("%d packets leave without room, want the frame to wait", n)
	}
	m.detach(p)
	if n := len(m.pacer.due(start.Add(20*time.Millisecond), nil)); n != 0 || !m.pacer.idle() || len(m.pacer.left) != 0 {
		t.Errorf("%d packets leave, %d frames were left out, want none of a publication that has ended", n, len(m.pacer.left))
	}
}

// TestNobodyIsToldAfterTheEnd: the sending goroutine may be about to step when the session is freed and its events end.
func TestNobodyIsToldAfterTheEnd(t *testing.T) {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("desk", volumetric.MIMEH264, 1, 1))
	// The program is to be told of a frame that was left out.
	m.pacer.left = append(m.pacer.left, ownTrack{p, 0})
	m.end()
	close(m.session.events)
	s := sender{media: m}
	if wait, idle := s.step(time.Now(), noFlush{}); wait != idleTick || !idle {
		t.Errorf("looks again after %v, idle %v; want %v and idle", wait, idle, idleTick)
	}
}
