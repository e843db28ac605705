package client

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestNothingIsDueWithoutAConnection: the estimator waits for a report that cannot come.
func TestNothingIsDueWithoutAConnection(t *testing.T) {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 1))
	m.agree(agreement{extension: 1})
	m.connect()
	s := sending{media: m.media}
	now := time.Now()
	if _, err := p.WriteFrame(0, 0, OutgoingFrame{Number: 1, Capture: now, Data: []byte("tile")}); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		now = now.Add(time.Millisecond)
		s.step(now, noFlush{})
	}
	if m.uplink.StepDue(now) > time.Hour {
		t.Fatal("no step of the estimate is due")
	}
	m.disconnect()
	now = now.Add(10 * time.Second)
	if wait, idle := s.step(now, noFlush{}); wait != idleTick || !idle {
		t.Errorf("looks again after %v, idle %v; want %v and idle", wait, idle, idleTick)
	}
}

// TestNobodyIsToldAfterTheEnd: the sending goroutine may be about to step when the session is freed and its events end.
func TestNobodyIsToldAfterTheEnd(t *testing.T) {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("desk", volumetric.MIMEH264, 1, 1))
	m.session.config.StartUplink = 100e3
	m.agree(agreement{extension: 1})
	begin := time.Now()
	for range 3 {
		if _, err := p.WritePackets(0, 0, begin, [][]byte{make([]byte, 40_000)}); err != nil {
			t.Fatal(err)
		}
	}
	// The program is to be informed of a dropped frame.
	for ms := range 1400 {
		m.uplink.Depart(begin.Add(time.Duration(ms)*time.Millisecond), nil)
	}
	m.end()
	for len(m.session.events) > 0 {
		<-m.session.events
	}
	close(m.session.events)
	s := sending{media: m.media}
	if wait, idle := s.step(time.Now(), noFlush{}); wait != idleTick || !idle {
		t.Errorf("looks again after %v, idle %v; want %v and idle", wait, idle, idleTick)
	}
}
