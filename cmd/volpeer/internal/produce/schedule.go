package produce

import (
	"cmp"
	"slices"
	"time"
)

// schedule decides what of a capture is encoded where there is not enough time for all of it. It is pure.
type schedule struct {
	// limit is how long after its capture a frame is to be encoded, 0 for no limit.
	limit   time.Duration
	workers int
	// passed is for how many frames in a row each quality was left out, admitted what is encoded of this frame.
	passed   []int
	admitted []bool
	order    []int
	// first is what is encoded in any case, -1 for nothing.
	first int
}

func newSchedule(qualities, workers int, limit time.Duration) *schedule {
	return &schedule{limit: limit, workers: workers, passed: make([]int, qualities), admitted: make([]bool, qualities),
		order: make([]int, qualities), first: -1}
}

// admit decides about a capture of that age, of which each quality takes so much time of one worker, 0 where it is not
// wanted. It is false where the capture is to be dropped: a newer one will be encoded in time.
//
// Where not even a new capture would be, qualities are left out. Those that were left out for longest come first and
// lower ones before higher ones, so that all take turns, and the first is encoded in any case: what is known of times
// may be out of date.
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
