package produce

import (
	"cmp"
	"slices"
	"time"
)

// schedule selects the qualities of a capture that are encoded if there is not enough time for all. The schedule is a
// pure function of the inputs.
type schedule struct {
	// limit is the time from capture to the end of encoding. 0 means no limit.
	limit   time.Duration
	workers int
	// passed has the number of consecutive frames in which each quality was omitted. admitted has the qualities that
	// are encoded in this frame.
	passed   []int
	admitted []bool
	order    []int
	// first is the quality that is encoded in any case, or -1.
	first int
}

func newSchedule(qualities, workers int, limit time.Duration) *schedule {
	return &schedule{limit: limit, workers: workers, passed: make([]int, qualities), admitted: make([]bool, qualities),
		order: make([]int, qualities), first: -1}
}

// admit decides about a capture of the given age. costs has the time of one worker for each quality, 0 if the quality
// is not wanted. admit returns false if the capture is to be dropped, because a newer one can be encoded in time.
//
// If even a new capture could not be encoded in time, qualities are omitted. The quality that was omitted for the
// largest number of frames comes first, and lower qualities come before higher qualities, so that all take turns. The
// first is encoded in any case, because the predicted times may be outdated.
func (s *schedule) admit(age time.Duration, costs []time.Duration) bool {
	total := time.Duration(0)
	for q, cost := range costs {
		total += cost
		s.order[q] = q
	}
	total /= time.Duration(s.workers)
	left := s.limit - age
	s.first = -1
	switch {
	case s.limit == 0 || total <= left:
		for q := range costs {
			s.admitted[q], s.passed[q] = true, 0
		}
		return true
	case total <= s.limit:
		return false
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(s.passed[b], s.passed[a]) })
	sum := time.Duration(0)
	for _, q := range s.order {
		if costs[q] == 0 {
			s.admitted[q], s.passed[q] = true, 0
			continue
		}
		sum += costs[q]
		if s.first < 0 {
			s.first = q
		}
		if s.admitted[q] = s.first == q || sum/time.Duration(s.workers) <= left; s.admitted[q] {
			s.passed[q] = 0
			continue
		}
		sum -= costs[q]
		s.passed[q]++
	}
	return true
}
