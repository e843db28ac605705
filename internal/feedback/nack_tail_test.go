package feedback

import (
	"testing"
	"time"
)

// TestTailOfSmallFrames follows a stream that changes from frames of many packets to frames of two, sent over the same
// time: nothing is lost, so nothing is requested.
func TestTailOfSmallFrames(t *testing.T) {
	const length = 13 * time.Millisecond
	g := NewNACKGenerator(DefaultConfig().NACK)
	now := time.Unix(0, 0)
	sequence := int64(100)
	asked := 0
	frame := func(packets int) {
		begin := now
		for i := range packets {
			due := begin.Add(length * time.Duration(i) / time.Duration(packets-1))
			for ; now.Before(due); now = now.Add(time.Millisecond) {
				ask, _ := g.Due(now, time.Millisecond, nil, nil)
				asked += len(ask)
			}
			now = due
			g.Received(sequence, now)
			g.Expect(sequence+int64(packets-1-i), now)
			sequence++
		}
		now = begin.Add(33 * time.Millisecond)
	}
	for range 20 {
		frame(7)
	}
	for range 20 {
		frame(2)
	}
	if asked != 0 {
		t.Errorf("%d packets were asked for, none was lost", asked)
	}
	// A lost end of a frame is still detected soon.
	g.Received(sequence, now)
	g.Expect(sequence+1, now)
	if at := g.Next(); at.Sub(now) > 20*time.Millisecond {
		t.Errorf("a lost end is asked for after %v, want it within 20ms", at.Sub(now))
	}
}

// TestTailAfterAPause follows a stream whose sender stopped for two seconds within one frame: the lost end of the next
// frame is detected as soon as before.
func TestTailAfterAPause(t *testing.T) {
	g := NewNACKGenerator(DefaultConfig().NACK)
	now := time.Unix(0, 0)
	sequence := int64(100)
	for frame := range 10 {
		for i := range int64(7) {
			if frame == 9 && i == 3 {
				now = now.Add(2 * time.Second)
			}
			g.Received(sequence, now)
			g.Expect(sequence+6-i, now)
			sequence++
			now = now.Add(time.Millisecond)
		}
		now = now.Add(26 * time.Millisecond)
	}
	g.Received(sequence, now)
	g.Expect(sequence+1, now)
	if at := g.Next(); at.Sub(now) > 50*time.Millisecond {
		t.Errorf("a lost end is asked for after %v, want it within 50ms", at.Sub(now))
	}
}
