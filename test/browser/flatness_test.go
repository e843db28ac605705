package browser

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/claim"
)

// TestHeapIsJudged has heaps of the page that are constant after the warm-up, and others that are not.
func TestHeapIsJudged(t *testing.T) {
	// looked returns a heap that grows by the given numbers of MB in the first minute, in each other minute, and at
	// once in the fourth.
	looked := func(minutes int, warming, creeping, leap float64) []heapLook {
		looks := make([]heapLook, memoryLooks(60*minutes))
		for i := range looks {
			at := float64(i) / 6
			grown := warming*min(at, 1) + creeping*max(0, at-1)
			if at >= 4 {
				grown += leap
			}
			looks[i] = heapLook{At: at * 60_000, Heap: 50e6 + 1e6*grown}
		}
		return looks
	}
	for name, test := range map[string]struct {
		minutes                 int
		warming, creeping, leap float64
		missed                  int
	}{
		"warms up":                     {10, 70, 0, 0, 0},
		"grows and shrinks":            {10, 70, -0.5, 0, 0},
		"creeps a little":              {10, 5, 0.2, 0, 0},
		"creeps":                       {10, 0, 1, 0, 1}, // 9 MB in all
		"creeps fast":                  {10, 0, 4, 0, 2},
		"leaps far":                    {10, 0, 0, 15, 1},
		"creeps for five minutes":      {5, 0, 1, 0, 1},
		"watched too briefly to judge": {4, 70, 50, 0, 0},
	} {
		lines := heapFigures(looked(test.minutes, test.warming, test.creeping, test.leap),
			time.Duration(test.minutes)*time.Minute)
		if len(lines) != 3 || missed(lines) != test.missed || math.Abs(lines[0].Figure-test.warming) > 1e-9 {
			t.Errorf("%s: %+v, expected %d of 3 to be missed", name, lines, test.missed)
		}
	}
}

// creep is the growth of kinds of processes, in MB.
type creep map[string]float64

// collectEvery is the interval at which the script collects garbage.
const collectEvery = 10 * time.Second

// invented is a browser whose page has a varying 40 MB of garbage, collected every ten seconds.
type invented struct {
	minutes int
	// creeping is the growth per minute, and leap a growth at once after some time.
	creeping creep
	after    time.Duration
	leap     creep
	// piling is the garbage in MB per second that remains until it is collected.
	piling float64
}

// looks returns the samples of the browser.
func (b invented) looks(seed uint64) (looks []processLook) {
	random := rand.New(rand.NewPCG(seed, 0))
	for now := time.Duration(0); now <= time.Duration(b.minutes)*time.Minute; now += lookEvery {
		garbage := 0.0
		if now%collectEvery > 0 {
			garbage = 3 + 37*random.Float64() + b.piling*(now%collectEvery).Seconds()
		}
		own := map[string]float64{
			"renderer":    64 + garbage + 0.5*random.NormFloat64(),
			"gpu-process": 79 + 0.1*random.NormFloat64(),
			"browser":     38 + 0.3*random.NormFloat64(),
			// It frees the memory of its start.
			"renderer of the browser's own": 38 + 12*math.Exp(-now.Minutes()),
		}
		for kind, rate := range b.creeping {
			own[kind] += rate * now.Minutes()
		}
		if now >= b.after {
			for kind, size := range b.leap {
				own[kind] += size
			}
		}
		for kind := range own {
			own[kind] *= 1e6
		}
		looks = append(looks, processLook{At: now, Own: own, Processes: len(own)})
	}
	return looks
}

// TestProcessesAreJudged has constant and growing processes: any that grow by 1 MB per minute are detected, also
// several that do so together, both in five and in ten minutes.
func TestProcessesAreJudged(t *testing.T) {
	for name, test := range map[string]struct {
		browser                invented
		growth, slope, garbage bool
	}{
		"as it is":                   {browser: invented{minutes: 10}},
		"as it is, for five minutes": {browser: invented{minutes: 5}},
		"a small service begins": {browser: invented{minutes: 10, after: 3 * time.Minute,
			leap: creep{"utility": 2}}},
		"a small service begins in five minutes": {browser: invented{minutes: 5, after: 160 * time.Second,
			leap: creep{"utility": 2}}},
		"one begins near the end": {browser: invented{minutes: 10, after: 9 * time.Minute,
			leap: creep{"utility": 2}}},
		"all of it while it warms up": {browser: invented{minutes: 10, after: 40 * time.Second,
			leap: creep{"gpu-process": 50}}},
		"a page leaks": {browser: invented{minutes: 10, creeping: creep{"renderer": 1}},
			slope: true},
		"a page leaks for five minutes": {browser: invented{minutes: 5, creeping: creep{"renderer": 1}}, slope: true},
		"a page leaks for twenty minutes": {browser: invented{minutes: 20, creeping: creep{"renderer": 1.2}},
			growth: true, slope: true},
		"graphics leak": {browser: invented{minutes: 10, creeping: creep{"gpu-process": 1}},
			slope: true},
		"graphics leak for five minutes": {browser: invented{minutes: 5, creeping: creep{"gpu-process": 1}},
			slope: true},
		"all leak a little": {browser: invented{minutes: 10,
			creeping: creep{"gpu-process": 0.4, "renderer": 0.3, "browser": 0.3}}, slope: true},
		"another one shrinks": {browser: invented{minutes: 10, creeping: creep{"gpu-process": 1, "browser": -2}},
			slope: true},
		"graphics leap": {browser: invented{minutes: 10, after: 3 * time.Minute,
			leap: creep{"gpu-process": 30}}, growth: true},
		"a large service begins": {browser: invented{minutes: 10, after: 3 * time.Minute, leap: creep{"utility": 30}},
			growth: true},
		"garbage piles up": {browser: invented{minutes: 10, piling: 10}, garbage: true},
	} {
		for seed := range uint64(20) {
			lines := processFigures(test.browser.looks(seed), time.Duration(test.browser.minutes)*time.Minute)
			judged := slices.DeleteFunc(lines, func(l claim.Line) bool { return l.Target == "" })
			if len(judged) != 3 || judged[0].Missed() != test.growth || judged[1].Missed() != test.slope ||
				judged[2].Missed() != test.garbage {
				t.Errorf("%s: %+v, expected growth to be missed: %t, the slope: %t, garbage: %t", name, judged,
					test.growth, test.slope, test.garbage)
				break
			}
		}
	}
	for _, seconds := range []int{0, 10, 29, 120, 299} {
		looks := invented{minutes: 5, creeping: creep{"renderer": 50}}.looks(0)[:seconds/2+1]
		for _, l := range processFigures(looks, time.Duration(seconds)*time.Second) {
			if l.Target != "" {
				t.Errorf("%d s: %s is held to %s, expected nothing to be judged", seconds, l.Name, l.Target)
			}
		}
	}
}

// missed counts the lines that miss their targets.
func missed(lines []claim.Line) (n int) {
	for _, l := range lines {
		if l.Missed() {
			n++
		}
	}
	return n
}

// TestFiguresOfMemory checks the calculation of the figures of memory and delays.
func TestFiguresOfMemory(t *testing.T) {
	var points []point
	for i, noise := range []float64{0, 0.1, -0.1, -0.1, 0.1} {
		points = append(points, point{float64(i) / 2, 50 + float64(i) + noise})
	}
	if slope := slopeOf(points); math.Abs(slope-2) > 1e-9 {
		t.Errorf("slope is %g MB/min, expected 2", slope)
	}
	for watched, want := range map[time.Duration]time.Duration{2: 1, 5: 1, 7: 2, 10: 5, 20: 10} {
		if from := slopeFrom(watched * time.Minute); from != want*time.Minute {
			t.Errorf("of %d minutes, slopes are looked at from %v on, expected minute %d", watched, from, want)
		}
	}
	counts := make([]int64, 100)
	counts[10], counts[20], counts[90] = 50, 44, 6
	for share, want := range map[float64]float64{0.50: 10, 0.51: 20, 0.94: 20, 0.95: 90} {
		if got := percentile(counts, share); got != want {
			t.Errorf("percentile %g is %g, expected %g", share, got, want)
		}
	}
	if got := percentile(make([]int64, 3), 0.5); !math.IsNaN(got) {
		t.Errorf("percentile of nothing is %g", got)
	}
}
