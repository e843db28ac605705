package paths

import (
	"testing"
	"time"
)

func TestLeastDelay(t *testing.T) {
	var l leastDelay
	if l.known {
		t.Error("a least delay is known without delays")
	}
	// The clocks drift apart by 50 ppm, and every tenth delay is the path's least one.
	for i := range 6000 {
		now := time.Duration(i) * 10 * ms
		delay := 20*ms + now/20_000
		if i%10 != 0 {
			delay += 30 * ms
		}
		l.add(now, delay)
		least := 20*ms + max(0, now-32*time.Second)/20_000
		if l.value < least-100*time.Microsecond || l.value > least+200*time.Microsecond {
			t.Fatalf("at %v the least delay is %v, want %v", now, l.value, least)
		}
	}
	for _, test := range []struct {
		at    time.Duration
		known bool
	}{{88 * time.Second, true}, {90 * time.Second, false}} {
		if l.roll(test.at); l.known != test.known {
			t.Errorf("the last delay was at 60 s, and at %v known is %t", test.at, l.known)
		}
	}
	l.add(200*time.Second, 5*ms)
	if !l.known || l.value != 5*ms {
		t.Errorf("after a long pause the least delay is %v, known %t", l.value, l.known)
	}
}

func TestSet(t *testing.T) {
	for set, want := range map[Set]string{0: "none", 1: "0", 5: "0+2", 0x80: "7", 0xff: "0+1+2+3+4+5+6+7"} {
		if got := set.String(); got != want {
			t.Errorf("set %08b is %q, want %q", uint8(set), got, want)
		}
	}
	if s := Set(5); s.Len() != 2 || !s.Has(2) || s.Has(1) || !s.contains(4) || s.contains(6) {
		t.Errorf("set %v has %d paths", s, s.Len())
	}
}

func TestProbeShare(t *testing.T) {
	for paths, want := range map[int]uint32{1: 128, 2: 128, 3: 256, 4: 512, 5: 512, 6: 512, 7: 1024, 8: 1024} {
		d := NewSelector(Config{Paths: paths}).Step(0)
		if d.Divisor != want || d.Probes.Len() != paths-1 {
			t.Errorf("%d paths: %d probes every %d packets, want every %d", paths, d.Probes.Len(), d.Divisor, want)
		}
	}
}
