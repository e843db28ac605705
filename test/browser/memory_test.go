package browser

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/lab"
)

// memoryLook is what page and browser take of the memory at an instant.
type memoryLook struct {
	// At is in milliseconds since the beginning, Heap the page's after a collection, in bytes.
	At, Heap float64
	resident float64
}

const (
	// warmUp is when everything is there that is needed: caches, workers' memory, compiled code. What is taken until then says nothing of what is kept.
	warmUp = time.Minute
	// judgedFor is how long memory is to be watched before its growth says anything: the browser's goes up and down by some MB all the time.
	judgedFor = 5 * time.Minute
)

// memoryBound is how much memory of one kind may grow and still be called flat.
type memoryBound struct {
	name string
	pick func(memoryLook) float64
	// growth is in MB, from the end of the warm-up to the end. rate is in MB per minute, over the second half.
	growth, rate float64
}

// memoryBounds are for ten minutes. A heap that grows by 0.25 MB per minute keeps 17 bytes of each of 240 frames per second. The browser's memory is known less well: single looks are 5 MB
// off, so that growth between two of them is 7 MB off, and the slope that follows from the 31 looks of the last five of ten minutes is 0.6 MB per minute off.
var memoryBounds = []memoryBound{
	{"the page's heap", func(l memoryLook) float64 { return l.Heap }, 10, 0.25},
	{"the browser's memory", func(l memoryLook) float64 { return l.resident }, 20, 3},
}

// memoryLooks is how often the script looks at memory, the beginning included.
func memoryLooks(seconds int) int { return max(6, (seconds+5)/10) + 1 }

// memoryFigures hold memory to being flat once the browser has warmed up: from then to the end it hardly grows, and not at all in the second half. What the warm-up takes is told, and so
// is everything where memory was watched too briefly to judge.
func memoryFigures(looks []memoryLook, watched time.Duration) (lines []lab.Line) {
	last := len(looks) - 1
	warm := slices.IndexFunc(looks, func(l memoryLook) bool { return l.At >= float64(warmUp.Milliseconds()) })
	if warm < 0 {
		warm = last
	}
	for _, b := range memoryBounds {
		judge := func(name string, figure float64, unit string, bound float64) {
			if watched < judgedFor {
				lines = append(lines, lab.Information(name+", too short to judge", figure, unit))
				return
			}
			lines = append(lines, lab.AtMost(name, figure, unit, bound))
		}
		growth := func(from, to int) float64 { return (b.pick(looks[to]) - b.pick(looks[from])) / 1e6 }
		lines = append(lines, lab.Information(fmt.Sprintf("growth of %s in the first %.0f s", b.name, looks[warm].At/1000), growth(0, warm), "MB"))
		if warm < last {
			judge(fmt.Sprintf("growth of %s from then to the end of %.0f s", b.name, watched.Seconds()), growth(warm, last), "MB", b.growth)
		}
		judge("slope of "+b.name+" in the second half", slopeOf(looks[len(looks)/2:], b.pick), "MB/min", b.rate)
	}
	return lines
}

// slopeOf is that of the line through looks with the least squares, in MB per minute.
func slopeOf(looks []memoryLook, pick func(memoryLook) float64) float64 {
	n, at, value := float64(len(looks)), 0.0, 0.0
	for _, l := range looks {
		at, value = at+l.At/n, value+pick(l)/n
	}
	together, spread := 0.0, 0.0
	for _, l := range looks {
		together += (l.At - at) * (pick(l) - value)
		spread += (l.At - at) * (l.At - at)
	}
	return together / spread * 60_000 / 1e6
}

// percentile is that of a histogram by whole milliseconds.
func percentile(counts []int64, share float64) float64 {
	all := int64(0)
	for _, n := range counts {
		all += n
	}
	left := int64(math.Ceil(share * float64(all)))
	for ms, n := range counts {
		if left -= n; left <= 0 && all > 0 {
			return float64(ms)
		}
	}
	return math.NaN()
}

// TestMemoryIsJudged has memory be flat, or not, once the browser has warmed up.
func TestMemoryIsJudged(t *testing.T) {
	const minutes = 10
	// looked has heap and browser grow by so many MB in the first minute, so many in each of the others, and so many at once in the fourth.
	looked := func(warming, creeping, leap float64) []memoryLook {
		looks := make([]memoryLook, memoryLooks(60*minutes))
		for i := range looks {
			at := float64(i) / 6
			grown := warming*min(at, 1) + creeping*max(0, at-1)
			if at >= 4 {
				grown += leap
			}
			looks[i] = memoryLook{At: at * 60_000, Heap: 50e6 + 1e6*grown, resident: 600e6 + 1e6*grown}
		}
		return looks
	}
	for name, test := range map[string]struct {
		warming, creeping, leap float64
		missed                  int
	}{
		"warms up":             {warming: 70},
		"grows and shrinks":    {warming: 70, creeping: -0.5},
		"creeps a little":      {warming: 5, creeping: 0.2},
		"creeps":               {creeping: 1, missed: 1}, // 9 MB in all, which is the heap's slope
		"creeps fast":          {creeping: 4, missed: 4},
		"leaps, and stands so": {leap: 15, missed: 1},
		"leaps far":            {leap: 25, missed: 2},
	} {
		missed := 0
		lines := memoryFigures(looked(test.warming, test.creeping, test.leap), minutes*time.Minute)
		for _, l := range lines {
			if l.Missed() {
				missed++
			}
		}
		if len(lines) != 6 || missed != test.missed || lines[0].Target != "" || math.Abs(lines[0].Figure-test.warming) > 1e-9 {
			t.Errorf("%s: %+v, expected %d of 6 to be missed", name, lines, test.missed)
		}
	}
	for seconds, want := range map[int]int{30: 4, 120: 6, 299: 6} {
		lines := memoryFigures(looked(70, 50, 0)[:memoryLooks(seconds)], time.Duration(seconds)*time.Second)
		if len(lines) != want {
			t.Errorf("%d s: %d lines, expected %d", seconds, len(lines), want)
		}
		for _, l := range lines {
			if l.Target != "" {
				t.Errorf("%d s: %s is held to %s, expected nothing to be judged", seconds, l.Name, l.Target)
			}
		}
	}
}

// TestFiguresOfMemory holds the arithmetic of what is told of memory and delays.
func TestFiguresOfMemory(t *testing.T) {
	var looks []memoryLook
	for i, noise := range []float64{0, 1e5, -1e5, -1e5, 1e5} {
		looks = append(looks, memoryLook{At: float64(i) * 30_000, Heap: 50e6 + float64(i)*1e6 + noise})
	}
	if slope := slopeOf(looks, func(l memoryLook) float64 { return l.Heap }); math.Abs(slope-2) > 1e-9 {
		t.Errorf("slope is %g MB/min, expected 2", slope)
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

// residentOf sums the resident memory of all processes of a program, in bytes. What they share is counted once for each.
func residentOf(program string) float64 {
	sum := 0.0
	names, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, name := range names {
		comm, err := os.ReadFile(name)
		if err != nil || !strings.HasPrefix(string(comm), program) {
			continue
		}
		statm, err := os.ReadFile(filepath.Join(filepath.Dir(name), "statm"))
		if fields := strings.Fields(string(statm)); err == nil && len(fields) > 1 {
			pages, _ := strconv.ParseFloat(fields[1], 64)
			sum += pages * float64(os.Getpagesize())
		}
	}
	return sum
}
