package member

import (
	"math"
	"time"
)

const (
	// loadInterval is the minimum time between two measurements, loadAverage the time constant of the average: the
	// placement of joins expects that a join appears in the load after about a second.
	loadInterval = 200 * time.Millisecond
	loadAverage  = time.Second
	// priorJoin is the assumed load of one participant, and priorWeight the number of participants for which the
	// assumption counts: a node without participants knows nothing about them.
	priorJoin   = 1.0 / 200
	priorWeight = 10
)

// load measures the part of this node's capacity that is used.
type load struct {
	// cores is the number of cores that the process uses at most, rooms the maximum number of rooms, 0 for no limit.
	cores, rooms int
	at           time.Time
	used         time.Duration
	share        float64
}

// measure averages the processor time that the process has used since its start.
func (l *load) measure(now time.Time, used time.Duration) {
	elapsed := now.Sub(l.at)
	if elapsed < loadInterval {
		return
	}
	if !l.at.IsZero() {
		share := float64(used-l.used) / (float64(elapsed) * float64(max(l.cores, 1)))
		l.share += (share - l.share) * (1 - math.Exp(-float64(elapsed)/float64(loadAverage)))
	}
	l.at, l.used = now, used
}

// total returns the used part of the capacity, 0 to 1, and the part that one more participant adds.
func (l *load) total(rooms, participants int) (total, join float64) {
	total = min(max(l.share, 0), 1)
	if l.rooms > 0 {
		total = max(total, min(float64(rooms)/float64(l.rooms), 1))
	}
	return total, (total + priorWeight*priorJoin) / float64(participants+priorWeight)
}
