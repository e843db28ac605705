package browser

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
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
	// judgedFor is how long memory is to be watched before its slope says anything: the browser's goes up and down by some MB all the time.
	judgedFor = 5 * time.Minute
	// A heap that grows by 0.25 MB per minute keeps 17 bytes of each of 240 frames per second. The browser's memory is known less well: from the 31 looks of the
	// last five of ten minutes, 5 MB off each, follows a slope that is 0.6 MB per minute off.
	heapSlope     = 0.25
	residentSlope = 3
)

// memoryLooks is how often the script looks at memory, the beginning included.
func memoryLooks(seconds int) int { return max(6, (seconds+5)/10) + 1 }

// tellMemory holds memory to being flat: it grows little from the beginning to the end, and not at all in the second half, when everything is there that is needed.
func tellMemory(t *testing.T, looks []memoryLook) {
	t.Helper()
	last := looks[len(looks)-1]
	for _, of := range []struct {
		name         string
		growth, rate float64
		pick         func(memoryLook) float64
	}{
		{"the page's heap", 10, heapSlope, func(l memoryLook) float64 { return l.Heap }},
		{"the browser's memory", 60, residentSlope, func(l memoryLook) float64 { return l.resident }},
	} {
		told(t, lab.AtMost(fmt.Sprintf("growth of %s in %d s", of.name, *seconds), (of.pick(last)-of.pick(looks[0]))/1e6, "MB", of.growth))
		name, slope := "slope of "+of.name+" in the second half", slopeOf(looks[len(looks)/2:], of.pick)
		if time.Duration(*seconds)*time.Second < judgedFor {
			told(t, lab.Information(name+", too short to judge", slope, "MB/min"))
			continue
		}
		told(t, lab.AtMost(name, slope, "MB/min", of.rate))
	}
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
