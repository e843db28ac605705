package control

import "time"

// repairFactor is how much faster than the estimate retransmissions leave, as frames do.
const repairFactor = 2.5

// repairs are the retransmissions that wait for their turn. They leave ahead of media, but no faster than frames: what a full queue has dropped would
// fill it again, and be dropped again.
type repairs struct {
	waiting []repair
	due     time.Duration // when the next one may leave
}

// repair is a packet to be sent again.
type repair struct {
	fragment
	sequence int64
}

func (r *repairs) push(p fragment, sequence int64) {
	r.waiting = append(r.waiting, repair{p, sequence})
}

// spend accounts for a packet that leaves at a rate of so many bit/s.
func (r *repairs) spend(size int, rate float64, now time.Duration) {
	r.due = max(r.due, now) + time.Duration(float64(size)*8/(repairFactor*rate)*1e9)
}

// next is when one may leave.
func (r *repairs) next() time.Duration {
	if len(r.waiting) == 0 {
		return never
	}
	return r.due
}
