package client

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// little is a path of whose estimate the sender uses little, in bit/s.
func little(estimate int64) pacing.Path {
	return pacing.Path{Estimate: estimate, ApplicationLimited: true}
}

// leaveWithin adds a frame of 20 packets of 1,000 bytes with a spread of 13 ms, changes the path after a time, and tells when the last packet leaves.
func leaveWithin(t *testing.T, before, after pacing.Path, change time.Duration) time.Duration {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 4))
	start := time.Unix(100, 0)
	m.pacer.limit(before, start)
	begin := start.Add(time.Second)
	f := pacedTrack(p, 0, 20, begin, 0)
	f.spread = 13 * time.Millisecond
	m.pacer.add(f)
	now := begin
	for ; len(m.pacer.frames) > 0; now = now.Add(tick) {
		if now.Sub(begin) >= change {
			m.pacer.limit(after, now)
		}
		m.pacer.due(now, nil)
	}
	return now.Sub(begin) - tick
}

// TestLead: at 40 Mbit/s a frame takes 4 ms, where it may leave before its spread says so. One that is under way when that changes goes on by its spread, or at the estimate.
func TestLead(t *testing.T) {
	used := pacing.Path{Estimate: 40e6}
	even := little(40e6)
	even.Evenly = true
	narrow, short := pacing.Path{Estimate: 3e6}, pacing.Path{Estimate: 3e6, Evenly: true}
	for _, test := range []struct {
		name          string
		before, after pacing.Path
		least, most   time.Duration
	}{
		{"the estimate is used", used, used, 12 * time.Millisecond, 14 * time.Millisecond},
		{"little of it is used", little(40e6), little(40e6), 2 * time.Millisecond, 5 * time.Millisecond},
		{"they had better leave evenly", even, even, 12 * time.Millisecond, 14 * time.Millisecond},
		{"a frame of more than the estimate", narrow, narrow, 15 * time.Millisecond, 18 * time.Millisecond},
		{"and they had better leave evenly", short, short, 36 * time.Millisecond, 40 * time.Millisecond},
		{"it is used from 2 ms on", little(40e6), used, 12 * time.Millisecond, 14 * time.Millisecond},
		{"little of it is used from 2 ms on", used, little(40e6), 3 * time.Millisecond, 7 * time.Millisecond},
	} {
		if took := leaveWithin(t, test.before, test.after, 2*time.Millisecond); took < test.least || took > test.most {
			t.Errorf("%s: the last packet left after %v, want %v to %v", test.name, took, test.least, test.most)
		}
	}
}

// TestLeadOwes: what leaves by its spread faster than the estimate allows is owed by what leads after it.
func TestLeadOwes(t *testing.T) {
	m := newRig(t, Config{})
	p, _ := published(t, m, described("body", volumetric.MIMEVolumetric, 1, 4))
	start := time.Unix(100, 0)
	m.pacer.limit(pacing.Path{Estimate: 8e6}, start)
	// 20 ms at the estimate.
	f := pacedTrack(p, 0, 20, start, 0)
	f.spread = 8 * time.Millisecond
	m.pacer.add(f)
	for ms := range 10 {
		m.pacer.due(start.Add(time.Duration(ms)*time.Millisecond), nil)
	}
	now := start.Add(10 * time.Millisecond)
	m.pacer.limit(little(8e6), now)
	f = pacedTrack(p, 1, 4, now, 0)
	f.spread = 100 * time.Millisecond
	m.pacer.add(f)
	for sent := 0; now.Before(start.Add(18 * time.Millisecond)); now = now.Add(tick) {
		if sent += len(m.pacer.due(now, nil)); sent > 1 {
			t.Fatalf("%d packets of a frame have left %v after one that takes 20 ms began, want the first", sent, now.Sub(start))
		}
	}
}

// TestUplinkTellsWhetherFramesLead publishes little and much of what the uplink may take at most, while the estimate is just that.
func TestUplinkTellsWhetherFramesLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 40e6
		r := newUplinkRig(t, 200, Config{MaxUplink: most, StartUplink: most}, described("body", volumetric.MIMEVolumetric, 1, 1))
		// 33 kB take 7 ms at 40 Mbit/s and 13 ms by their spread, and frames of them 8 Mbit/s; the way takes 10 ms.
		const size = 33_000
		expect := func(what string, leads bool) {
			t.Helper()
			r.settle()
			r.run(30*time.Millisecond, size)
			if got := r.m.uplink.estimate(); got != most || len(r.frames) != 1 {
				t.Fatalf("%s: the estimate is %v, %d frames came; want %v and one", what, got, len(r.frames), volumetric.Bitrate(most))
			}
			if took := r.latency(1) - r.delay; (took < 11*time.Millisecond) != leads {
				t.Errorf("%s: a frame took %v, want it to lead: %v", what, took, leads)
			}
		}
		r.run(200*time.Millisecond, size)
		expect("nothing is known of the use yet", false)
		r.run(2*time.Second, size)
		expect("8 of 40 Mbit/s", true)
		r.run(time.Second, 36e6/8/30)
		expect("36 of 40 Mbit/s", false)
		r.run(2*time.Second, size)
		expect("8 of 40 Mbit/s again", true)
	})
}
