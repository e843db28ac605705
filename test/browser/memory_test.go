package browser

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/test/claim"
)

// heapLook is the size of the page's heap at an instant.
type heapLook struct {
	// At is in milliseconds since the beginning, Heap is the size after a collection, in bytes.
	At, Heap float64
}

const (
	// warmUp is the time by which everything needed is present: caches, workers' memory, compiled code. Memory
	// allocated until then does not indicate a leak.
	warmUp = time.Minute
	// judgedFor is the minimum time of observation for judging the growth of memory.
	judgedFor = 5 * time.Minute
	// settled is the minimum time over which a slope is measured, if so much remains after the warm-up: five minutes of
	// samples determine it to 0.2 MB per minute, half the time to 0.5.
	settled = 5 * time.Minute
	// floorSpan contains three of the samples before which the script collected garbage: frames that are being
	// processed at that moment count, but rarely in all three.
	floorSpan = 30 * time.Second
)

// Limits of growth in MB from the warm-up to the end, and of the slope after it in MB per minute. A heap that grows by
// 0.25 MB per minute keeps 17 bytes of each of 240 frames per second. The memory of processes is known less precisely,
// to 0.2 MB per minute: with a limit twice as far from a growth of 1 MB per minute as that, such a growth is detected,
// and constant memory passes.
const (
	heapGrowth, heapSlope       = 10, 0.25
	processGrowth, processSlope = 20, 0.6
	// 6.6 MB of frames arrive per second, and each exists twice, as received and as passed to the script: a page that
	// never collected them itself would have 130 MB after ten seconds.
	processGarbage = 96
)

// memoryLooks is the number of times that the script samples memory, including the beginning.
func memoryLooks(seconds int) int { return max(6, (seconds+5)/10) + 1 }

// judge compares a figure of memory with its limit, or only reports it if memory was observed too briefly.
func judge(watched time.Duration, name string, figure float64, unit string, bound float64) claim.Line {
	if watched < judgedFor {
		return claim.Information(name+", too short to judge", figure, unit)
	}
	return claim.AtMost(name, figure, unit, bound)
}

// slopeFrom returns the start of the measurement of a slope: the second half, or earlier, so that it lasts five
// minutes, but not before the end of the warm-up.
func slopeFrom(watched time.Duration) time.Duration {
	return max(warmUp, min(watched/2, watched-settled))
}

// heapFigures check that the page's heap is constant once the page has warmed up. The growth during the warm-up is
// reported.
func heapFigures(looks []heapLook, watched time.Duration) []claim.Line {
	var points []point
	for _, l := range looks {
		points = append(points, point{l.At / 60_000, l.Heap / 1e6})
	}
	first, last := points[0].value, points[len(points)-1].value
	warm := last
	if after := since(points, warmUp); len(after) > 0 {
		warm = after[0].value
	}
	return []claim.Line{
		claim.Information("growth of the page's heap while it warms up", warm-first, "MB"),
		judge(watched, "growth of the page's heap from then on", last-warm, "MB", heapGrowth),
		judge(watched, fmt.Sprintf("slope of the page's heap from minute %.3g on", slopeFrom(watched).Minutes()),
			slopeOf(since(points, slopeFrom(watched))), "MB/min", heapSlope),
	}
}

// processFigures check that the memory of the browser's processes is constant once they have warmed up, and report it
// for each kind of process. A reduction in one kind does not offset the growth in another. A process that starts later
// grows from zero.
//
// Garbage comes and goes: tens of MB of frames in a page's renderer, within seconds. What is kept is what is there when
// it has just gone, so that the least of each half minute counts; and of what comes and goes in between, the most.
func processFigures(looks []processLook, watched time.Duration) (lines []claim.Line) {
	from := slopeFrom(watched)
	var growing, growth, slope, garbage float64
	kept := floors(looks)
	for _, kind := range slices.Sorted(maps.Keys(kept)) {
		points := kept[kind]
		last := points[len(points)-1].value
		warm := last
		if after := since(points, warmUp); len(after) > 0 {
			warm = after[0].value
		}
		growing += warm - points[0].value
		growth += max(0, last-warm)
		steep := slopeOf(lasting(since(points, from)))
		slope += max(0, steep)
		for _, l := range looks {
			if l.At >= warmUp {
				garbage = max(garbage, l.Own[kind]/1e6-points[floorOf(l)].value)
			}
		}
		lines = append(lines, claim.Information("memory of "+kind+" at the end", last, "MB"),
			claim.Information(fmt.Sprintf("slope of memory of %s from minute %.3g on", kind, from.Minutes()),
				steep, "MB/min"))
	}
	first, last := looks[0], looks[len(looks)-1]
	return append(lines,
		claim.Information("growth of the browser's memory while it warms up", growing, "MB"),
		judge(watched, "growth of the browser's memory from then on", growth, "MB", processGrowth),
		judge(watched, fmt.Sprintf("slope of the browser's memory from minute %.3g on", from.Minutes()), slope,
			"MB/min", processSlope),
		judge(watched, "garbage of one kind of processes at most", garbage, "MB", processGarbage),
		claim.Information(fmt.Sprintf("growth with programs' files, counted for each of %d, then %d processes",
			first.Processes, last.Processes), (last.Resident-first.Resident)/1e6, "MB"))
}

// point is a value in MB after a time in minutes.
type point struct{ minutes, value float64 }

// since returns the points from an instant on.
func since(points []point, from time.Duration) []point {
	at := slices.IndexFunc(points, func(p point) bool { return p.minutes >= from.Minutes() })
	if at < 0 {
		return nil
	}
	return points[at:]
}

// lasting returns the points of a kind since it exists; none if that is less than two minutes, in which a process has
// not warmed up itself.
func lasting(points []point) []point {
	there := slices.DeleteFunc(slices.Clone(points), func(p point) bool { return p.value == 0 })
	if len(there) < int(2*time.Minute/floorSpan) {
		return nil
	}
	return there
}

// floorOf returns the half minute to which a sample belongs. The first one is shorter by half, so that the last one has
// its collections as well.
func floorOf(l processLook) int { return int((l.At + floorSpan/2) / floorSpan) }

// floors returns the minimum of the processes of each kind in each half minute.
func floors(looks []processLook) map[string][]point {
	kinds := map[string][]point{}
	for _, l := range looks {
		for kind := range l.Own {
			kinds[kind] = nil
		}
	}
	for kind := range kinds {
		var least []point
		for _, l := range looks {
			value := l.Own[kind] / 1e6
			for len(least) <= floorOf(l) {
				least = append(least, point{float64(len(least)) * floorSpan.Minutes(), value})
			}
			last := &least[len(least)-1]
			last.value = min(last.value, value)
		}
		kinds[kind] = least
	}
	return kinds
}

// slopeOf returns the slope of the least-squares line through points, in MB per minute, or 0 with too few points.
func slopeOf(points []point) float64 {
	n, at, value := float64(len(points)), 0.0, 0.0
	for _, p := range points {
		at, value = at+p.minutes/n, value+p.value/n
	}
	together, spread := 0.0, 0.0
	for _, p := range points {
		together += (p.minutes - at) * (p.value - value)
		spread += (p.minutes - at) * (p.minutes - at)
	}
	if spread == 0 {
		return 0
	}
	return together / spread
}

// percentile returns a percentile of a histogram with bins of one millisecond.
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
