package downlink

import (
	"testing"
	"time"
)

func TestLedger(t *testing.T) {
	const deadline = 150 * time.Millisecond
	tests := []struct {
		name  string
		steps func(l *ledger, at func(ms int) time.Time)
		want  FrameCounts
	}{
		{"whole", func(l *ledger, at func(int) time.Time) {
			for n := range 5 {
				l.seen(int64(100+n), at(n))
				l.complete()
			}
		}, FrameCounts{Expected: 5, Complete: 5}},
		{"a frame that never came", func(l *ledger, at func(int) time.Time) {
			l.seen(1, at(0))
			l.seen(3, at(33))
		}, FrameCounts{Expected: 3, Missing: 1}},
		{"a frame that came late is not missing", func(l *ledger, at func(int) time.Time) {
			l.seen(1, at(0))
			l.seen(3, at(33))
			l.seen(2, at(40))
		}, FrameCounts{Expected: 3}},
		{"another publication begins", func(l *ledger, at func(int) time.Time) {
			l.seen(1, at(0))
			l.seen(3, at(33))
			l.dropped(2)
			l.end()
			l.restart()
			l.seen(0, at(40))
			l.seen(2, at(73))
		}, FrameCounts{Expected: 6, Missing: 1, DroppedByServer: 1}},
		{"the server dropped one of two", func(l *ledger, at func(int) time.Time) {
			l.seen(1, at(0))
			l.seen(4, at(33))
			l.dropped(1)
		}, FrameCounts{Expected: 4, Missing: 1, DroppedByServer: 1}},
		{"a pause costs nothing, nor do frames that still come in it", func(l *ledger, at func(int) time.Time) {
			l.seen(1, at(0))
			l.switched(true, at(0))
			l.seen(2, at(33))
			l.switched(false, at(33))
			l.wasOff(3, 57)
			l.seen(60, at(2000))
			l.seen(62, at(2066))
		}, FrameCounts{Expected: 5, Missing: 1}},
		{"the first frame after a pause is sooner than the word about it", func(l *ledger, at func(int) time.Time) {
			l.seen(1, at(0))
			l.switched(true, at(0))
			l.seen(60, at(2000))
			l.settle(at(3000), deadline)
			l.switched(false, at(2000))
			l.wasOff(2, 58)
			l.seen(61, at(3033))
		}, FrameCounts{Expected: 3}},
		{"a packet from before a pause comes after it", func(l *ledger, at func(int) time.Time) {
			l.seen(1, at(0))
			l.seen(3, at(60))
			l.switched(true, at(60))
			l.switched(false, at(60))
			l.wasOff(4, 56)
			l.seen(3, at(90))
			l.seen(2, at(91))
			l.seen(60, at(2000))
			l.seen(61, at(2033))
		}, FrameCounts{Expected: 5}},
		{"a queue holds what came before a pause until after the word about its end",
			func(l *ledger, at func(int) time.Time) {
				l.seen(1, at(0))
				l.switched(true, at(0))
				l.switched(false, at(0))
				l.wasOff(5, 3)
				l.seen(2, at(120))
				l.seen(4, at(186))
				l.seen(8, at(190))
			}, FrameCounts{Expected: 5, Missing: 1}},
		{"the server dropped a frame before a pause", func(l *ledger, at func(int) time.Time) {
			l.seen(1, at(0))
			l.dropped(1)
			l.switched(true, at(0))
			l.switched(false, at(0))
			l.wasOff(3, 7)
			l.seen(10, at(300))
		}, FrameCounts{Expected: 3, DroppedByServer: 1}},
		{"the server drops a frame after a pause", func(l *ledger, at func(int) time.Time) {
			l.seen(1, at(0))
			l.switched(true, at(0))
			l.switched(false, at(300))
			l.wasOff(2, 8)
			l.seen(10, at(300))
			l.dropped(1)
			l.seen(12, at(366))
		}, FrameCounts{Expected: 4, DroppedByServer: 1}},
		{"a frame is lost before a pause that does not end", func(l *ledger, at func(int) time.Time) {
			l.seen(1, at(0))
			l.seen(3, at(66))
			l.switched(true, at(100))
			l.seen(5, at(132))
		}, FrameCounts{Expected: 5, Missing: 1}},
		{"a publisher restarts and reaches the numbers of a pause", func(l *ledger, at func(int) time.Time) {
			l.seen(3000, at(0))
			l.switched(true, at(0))
			l.switched(false, at(300))
			l.wasOff(3001, 1999)
			l.seen(1, at(300))
			for n := range int64(6) {
				l.seen(1+600*(n+1), at(int(n)*20000+20000))
				l.settle(at(int(n)*20000+30000), deadline)
			}
		}, FrameCounts{Expected: 3602, Missing: 3594}},
		{"a pause that is longer than a stretch", func(l *ledger, at func(int) time.Time) {
			l.seen(1, at(0))
			l.switched(true, at(0))
			l.switched(false, at(0))
			l.wasOff(2, 4998)
			l.seen(5000, at(166000))
			l.seen(5002, at(166066))
		}, FrameCounts{Expected: 4, Missing: 1}},
		{"a publisher that restarts its numbers after a pause", func(l *ledger, at func(int) time.Time) {
			l.seen(5000, at(0))
			l.switched(true, at(0))
			l.switched(false, at(0))
			l.seen(1, at(33))
			l.seen(2, at(66))
		}, FrameCounts{Expected: 3}},
		{"a publisher that restarts its numbers", func(l *ledger, at func(int) time.Time) {
			l.seen(5000, at(0))
			l.seen(1, at(33))
			l.seen(2, at(66))
		}, FrameCounts{Expected: 3}},
		{"another assignment right after a pause", func(l *ledger, at func(int) time.Time) {
			l.seen(1, at(0))
			l.switched(true, at(0))
			l.switched(false, at(300))
			l.wasOff(2, 8)
			l.seen(10, at(300))
			l.end()
			l.seen(50, at(333))
		}, FrameCounts{Expected: 3}},
		{"another assignment", func(l *ledger, at func(int) time.Time) {
			l.seen(1, at(0))
			l.end()
			l.seen(50, at(33))
		}, FrameCounts{Expected: 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var l ledger
			start := time.Unix(0, 0)
			test.steps(&l, func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) })
			l.settle(start.Add(time.Hour), deadline)
			if l.counts != test.want {
				t.Errorf("got %+v, want %+v", l.counts, test.want)
			}
		})
	}
}

// TestGapsOfALedgerAreBounded: frames arrive a thousand numbers apart, each followed by a late one.
func TestGapsOfALedgerAreBounded(t *testing.T) {
	const jumps = 20
	var l ledger
	start := time.Unix(0, 0)
	number := int64(1)
	l.seen(number, start)
	for range jumps {
		number += maxStretch
		l.seen(number, start)
		l.seen(number-maxStretch+1, start)
		if len(l.unseen) > maxStretch {
			t.Fatalf("%d gaps are kept, expected at most %d", len(l.unseen), maxStretch)
		}
	}
	l.settle(start.Add(time.Hour), time.Second)
	// Two frames arrived at each jump.
	if want := (FrameCounts{Expected: 1 + jumps*maxStretch, Missing: jumps * (maxStretch - 2)}); l.counts != want {
		t.Errorf("got %+v, want %+v", l.counts, want)
	}
}

// TestDelivered checks which frames count as delivered before.
func TestDelivered(t *testing.T) {
	t.Parallel()
	var d delivered
	for i, step := range []struct {
		number   int64
		repeated bool
	}{
		{10, false},
		{10, true},
		{12, false},
		{11, false},
		{11, true},
		{12, true},
		{70, false},
		{12, true},
		{13, false},
		{6, true}, // 64 frames before the newest
		{200, false},
		{199, false},
		{70, true},
		{5000, false},
		{3, false}, // the numbers have started again
		{3, true},
	} {
		if got := d.add(step.number); got != step.repeated {
			t.Errorf("step %d: frame %d: repeated %v", i, step.number, got)
		}
	}
	d.remove(3)
	if d.add(3) {
		t.Error("a frame that was removed counts as delivered")
	}
}
