package browser

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/test/claim"
)

// heapLook is what the page's heap takes at an instant.
type heapLook struct {
	// At is in milliseconds since the beginning, Heap is after a collection, in bytes.
	At, Heap float64
}

const (
	// warmUp is when everything is there that is needed: caches, workers' memory, compiled code. What is taken until then says nothing of what is kept.
	warmUp = time.Minute
	// judgedFor is how long memory is to be watched before its growth says anything.
	judgedFor = 5 * time.Minute
	// settled is how long a slope is looked at, at least, where there is so much after the warm-up: looks of five minutes tell it to 0.2 MB per minute, those of half the time to 0.5.
	settled = 5 * time.Minute
	// floorSpan holds three of the looks for which the script has garbage collected: frames that are under way just then count, and seldom do so in all three.
	floorSpan = 30 * time.Second
)

// Bounds of growth in MB, from the warm-up to the end, and of the slope after that in MB per minute. A heap that grows by 0.25 MB per minute keeps 17 bytes of each of 240 frames per
// second. What processes have is known less well, to 0.2 MB per minute: by a bound twice as far from what grows by 1 MB per minute as that, it is found out, and what does not grow passes.
const (
	heapGrowth, heapSlope       = 10, 0.25
	processGrowth, processSlope = 20, 0.6
	// 6.6 MB of frames come in a second, and each is there twice, as it came and as the script has it: a page that never collected them by itself would have 130 MB after ten seconds.
	processGarbage = 96
)

// memoryLooks is how often the script looks at memory, the beginning included.
func memoryLooks(seconds int) int { return max(6, (seconds+5)/10) + 1 }

// judge holds a figure of memory to its bound, or only tells it where memory was watched too briefly.
func judge(watched time.Duration, name string, figure float64, unit string, bound float64) claim.Line {
	if watched < judgedFor {
		return claim.Information(name+", too short to judge", figure, unit)
	}
	return claim.AtMost(name, figure, unit, bound)
}

// slopeFrom is from when on a slope is looked at: the second half, or more, so that it is five minutes, but nothing before the warm-up has ended.
func slopeFrom(watched time.Duration) time.Duration {
	return max(warmUp, min(watched/2, watched-settled))
}

// heapFigures hold the page's heap to being flat once the page has warmed up. What that takes is told.
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
		judge(watched, fmt.Sprintf("slope of the page's heap from minute %.3g on", slopeFrom(watched).Minutes()), slopeOf(since(points, slopeFrom(watched))), "MB/min", heapSlope),
	}
}

// processFigures hold what the browser's processes have to being flat once they have warmed up, and tell it for each kind of process. What one kind gives back does not make up for what
// another takes. A process that begins later grows from nothing.
//
// Garbage comes and goes: tens of MB of frames in a page's renderer, within seconds. What is kept is what is there when it has just gone, so that the least of each half minute counts;
// and of what comes and goes in between, the most.
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
			claim.Information(fmt.Sprintf("slope of memory of %s from minute %.3g on", kind, from.Minutes()), steep, "MB/min"))
	}
	first, last := looks[0], looks[len(looks)-1]
	return append(lines,
		claim.Information("growth of the browser's memory while it warms up", growing, "MB"),
		judge(watched, "growth of the browser's memory from then on", growth, "MB", processGrowth),
		judge(watched, fmt.Sprintf("slope of the browser's memory from minute %.3g on", from.Minutes()), slope, "MB/min", processSlope),
		judge(watched, "garbage of one kind of processes at most", garbage, "MB", processGarbage),
		claim.Information(fmt.Sprintf("growth with programs' files, counted for each of %d, then %d processes", first.Processes, last.Processes), (last.Resident-first.Resident)/1e6, "MB"))
}

// point is a value in MB after some minutes.
type point struct{ minutes, value float64 }

// since are the points from an instant on.
func since(points []point, from time.Duration) []point {
	at := slices.IndexFunc(points, func(p point) bool { return p.minutes >= from.Minutes() })
	if at < 0 {
		return nil
	}
	return points[at:]
}

// lasting are the points of a kind since it is there; none where that is less than two minutes, in which a process has not warmed up itself.
func lasting(points []point) []point {
	there := slices.DeleteFunc(slices.Clone(points), func(p point) bool { return p.value == 0 })
	if len(there) < int(2*time.Minute/floorSpan) {
		return nil
	}
	return there
}

// floorOf is which half minute a look belongs to. The first one is half of one, so that the last one has its collections, too.
func floorOf(l processLook) int { return int((l.At + floorSpan/2) / floorSpan) }

// floors are the least that processes of each kind had in each half minute.
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

// slopeOf is that of the line through points with the least squares, in MB per minute; 0 where there are too few to have one.
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
