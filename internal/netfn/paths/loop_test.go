package paths

import (
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/race"
)

// constant returns a path whose delay varies by 1 ms and which loses a share of its packets.
func constant(delay time.Duration, loss float64) func(time.Duration) conditions {
	return func(time.Duration) conditions {
		return conditions{rate: 400e6, low: delay, high: delay + ms, loss: loss}
	}
}

// between returns a path that is as bad between two times, and as good otherwise.
func between(from, to time.Duration, bad, good func(time.Duration) conditions) func(time.Duration) conditions {
	return func(now time.Duration) conditions {
		if now >= from && now < to {
			return bad(now)
		}
		return good(now)
	}
}

// TestDeadPrimary checks that copies start within 100 ms (p95) after the first packet that the dead primary path loses,
// at any moment of a frame, that nothing is lost afterwards, and that the path returns within 2 s and stays alone
// within 4 s.
func TestDeadPrimary(t *testing.T) {
	race.SkipSequential(t)
	var reactions []time.Duration
	for seed := range uint64(40) {
		dies := 4*time.Second + time.Duration(seed)*5*ms
		revives := dies + time.Second
		o := simulate(scenario{seed: seed, rate: 8e6, duration: 10 * time.Second, deadline: 50 * ms,
			paths: []func(time.Duration) conditions{
				between(dies, revives, constant(20*ms, 1), constant(20*ms, 0)), constant(30*ms, 0), constant(35*ms, 0),
			}})
		grown, _ := o.grown(dies)
		first, last := o.lost[0], o.lost[len(o.lost)-1]
		reactions = append(reactions, grown-first)
		back := o.joins(0, revives)
		t.Logf("seed %d: copies %v after the onset and %v after the first lost packet, %d packets lost, back %v after "+
			"the recovery", seed, grown-dies, grown-first, len(o.lost), back-revives)
		if last >= grown {
			t.Errorf("seed %d: a packet is lost %v after copies have started", seed, last-grown)
		}
		if back == 0 || back-revives > 2*time.Second {
			t.Errorf("seed %d: the path returns %v after its recovery:%s", seed, back-revives, o.story())
		}
		if end := o.sets[len(o.sets)-1]; end.set != of(0) || end.at > revives+4*time.Second {
			t.Errorf("seed %d: the set is %v from %v on", seed, end.set, end.at)
		}
	}
	slices.Sort(reactions)
	p95 := reactions[len(reactions)*95/100]
	t.Logf("copies start after p50 %v, p95 %v, at most %v", reactions[len(reactions)/2], p95,
		reactions[len(reactions)-1])
	if p95 > 100*ms {
		t.Errorf("copies start %v after the first lost packet (p95), the limit is 100 ms", p95)
	}
}

// TestDeadPrimaryInSet checks that a dead path costs nothing while another path of the set lives.
func TestDeadPrimaryInSet(t *testing.T) {
	race.SkipSequential(t)
	o := simulate(scenario{rate: 8e6, duration: 6 * time.Second, deadline: 50 * ms, fixed: 3,
		paths: []func(time.Duration) conditions{
			between(2*time.Second, 3*time.Second, constant(20*ms, 1), constant(20*ms, 0)), constant(30*ms, 0),
		}})
	if len(o.lost) > 0 {
		t.Errorf("%d packets are lost", len(o.lost))
	}
}

// TestUselessPathsLeave checks that paths of which nothing is known join at a start, and leave within 300 ms if they
// are late.
func TestUselessPathsLeave(t *testing.T) {
	race.SkipSequential(t)
	for seed := range uint64(5) {
		s := tableScenario(8e6, 100*ms, seed)
		s.duration, s.start = 3*time.Second, 10*ms
		o := simulate(s)
		t.Logf("seed %d:%s", seed, o.story())
		for path := 2; path <= 3; path++ {
			if in := o.during(path, 0, s.duration); in == 0 || in > 300*ms {
				t.Errorf("seed %d: path %d was in the set for %v, want up to 300 ms:%s", seed, path, in, o.story())
			}
		}
	}
}

// TestSharedBottleneck checks that copies which make every path later end, and that retries stay rare.
func TestSharedBottleneck(t *testing.T) {
	race.SkipSequential(t)
	for seed := range uint64(3) {
		narrow := func(low time.Duration) func(time.Duration) conditions {
			return func(now time.Duration) conditions {
				c := conditions{rate: 12e6, low: low, high: low + ms}
				if now%(5*time.Second) < 300*ms && now > 4*time.Second {
					c.high = low + 80*ms // trouble on all paths starts copies
				}
				return c
			}
		}
		o := simulate(scenario{seed: seed, rate: 8e6, duration: 30 * time.Second, deadline: 50 * ms, shared: true,
			paths: []func(time.Duration) conditions{narrow(20 * ms), narrow(22 * ms), narrow(24 * ms)}})
		cost := o.cost(0, 30*time.Second)
		t.Logf("seed %d: cost %.3f, frames within 150 ms %.2f %%:%s", seed, cost,
			100*o.inTime(0, 29*time.Second, 150*ms), o.story())
		crowded := false
		for _, c := range o.changes {
			crowded = crowded || c.Reason == ReasonCrowded
		}
		if !crowded || cost > 1.25 {
			t.Errorf("seed %d: crowded %t, cost %.3f:%s", seed, crowded, cost, o.story())
		}
	}
}

// TestIndependentLosses checks that three paths with 20 % loss each stay together: each delivers what the others lose,
// and 0.8 % remains.
func TestIndependentLosses(t *testing.T) {
	race.SkipSequential(t)
	lossy := constant(20*ms, 0.2)
	o := simulate(scenario{rate: 8e6, duration: 20 * time.Second, deadline: 50 * ms,
		paths: []func(time.Duration) conditions{lossy, lossy, lossy}})
	all := Set(7)
	var together time.Duration
	for i, s := range o.sets {
		until := 20 * time.Second
		if i+1 < len(o.sets) {
			until = o.sets[i+1].at
		}
		if s.set == all {
			together += until - s.at
		}
	}
	t.Logf("%d of %d packets lost:%s", len(o.lost), o.sent, o.story())
	if together < 19*time.Second {
		t.Errorf("the paths are together for %v of 20 s:%s", together, o.story())
	}
}

// TestFewLosses checks that a loss of 0.5 %, too small for the trigger, adds a path, and one of 0.05 % does not.
func TestFewLosses(t *testing.T) {
	race.SkipSequential(t)
	for _, test := range []struct {
		loss  float64
		grows bool
	}{{0.005, true}, {0.0005, false}} {
		o := simulate(scenario{rate: 8e6, duration: 30 * time.Second, deadline: 50 * ms,
			paths: []func(time.Duration) conditions{constant(20*ms, test.loss), constant(30*ms, test.loss)}})
		two := o.during(1, 0, 30*time.Second)
		t.Logf("loss %.2f %%: both paths for %v, cost %.3f", 100*test.loss, two, o.cost(0, 30*time.Second))
		if grows := two > 10*time.Second; grows != test.grows {
			t.Errorf("loss %.2f %%: both paths for %v of 30 s:%s", 100*test.loss, two, o.story())
		}
	}
}

// TestReportsLost checks that the loss of half of the reports on all paths at once, and from 20 to 20.9 s of all
// reports, does no harm.
func TestReportsLost(t *testing.T) {
	race.SkipSequential(t)
	s := tableScenario(8e6, 100*ms, 3)
	s.duration = 25 * time.Second
	s.reports = func(now time.Duration) bool {
		return now/(7*ms)%2 == 0 && (now < 20*time.Second || now > 20*time.Second+900*ms)
	}
	o := simulate(s)
	t.Logf("cost %.3f, frames within 150 ms %.2f %%:%s", o.cost(0, 20*time.Second),
		100*o.inTime(onset, 24*time.Second, 150*ms), o.story())
	if share := o.inTime(onset, 24*time.Second, 150*ms); share < 0.995 {
		t.Errorf("%.2f %% of the frames are complete within 150 ms", 100*share)
	}
	if cost := o.cost(0, 20*time.Second); cost > 1.15 {
		t.Errorf("the cost is %.3f:%s", cost, o.story())
	}
}

// TestLowRate checks readmission at 50 packets/s, where hellos are the only probes.
func TestLowRate(t *testing.T) {
	race.SkipSequential(t)
	revives := 6 * time.Second
	o := simulate(scenario{rate: 50 * packetSize * 8, duration: 12 * time.Second, deadline: 50 * ms,
		paths: []func(time.Duration) conditions{
			between(4*time.Second, revives, constant(20*ms, 1), constant(20*ms, 0)), constant(30*ms, 0),
		}})
	t.Logf("%d packets lost:%s", len(o.lost), o.story())
	if back := o.joins(0, revives); back == 0 || back > revives+2*time.Second {
		t.Errorf("the path returns %v after its recovery:%s", back-revives, o.story())
	}
}
