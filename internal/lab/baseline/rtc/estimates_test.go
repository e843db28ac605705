package rtc

import (
	"testing"
	"time"
)

// TestEstimatesSince: estimates are told by their time since the instant that is asked for, not since the publisher listened.
func TestEstimatesSince(t *testing.T) {
	listened := time.Unix(1000, 0)
	p := &Publisher{begun: listened, estimates: []estimate{{listened.Add(5 * time.Second), 12.5}, {listened.Add(7 * time.Second), 20}}}
	got := p.Estimates(listened.Add(6 * time.Second))
	if len(got) != 2 || got[0].At != -1 || got[0].Mbps != 12.5 || got[1].At != 1 || got[1].Mbps != 20 {
		t.Errorf("got %+v, expected 12.5 Mbit/s at -1 s and 20 at 1 s", got)
	}
}
