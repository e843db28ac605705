package egress

import "time"

const (
	// keyFramesPerSlot is how many requests for a key frame of each of its slots a receiver may make within the interval in which a publisher is asked once at most: browsers
	// make one, and a packet may be lost that would have answered it.
	keyFramesPerSlot = 4
	// leastKeyFrames is what receivers of few slots may ask for beyond that.
	leastKeyFrames = 32
)

// keyFrameBudget bounds how many requests for key frames of one receiver are looked at: one packet may name some hundred SSRCs (RFC 5104 section 4.3.1), or hold as many
// PLI, and each costs a slot's mail and perhaps a writer's waking.
type keyFrameBudget struct {
	since time.Time
	taken int
}

// take gives how many of so many requests may be looked at now, by a receiver with so many slots.
func (b *keyFrameBudget) take(requests, slots int, interval time.Duration, now time.Time) int {
	if now.Sub(b.since) >= interval {
		b.since, b.taken = now, 0
	}
	granted := max(min(requests, keyFramesPerSlot*slots+leastKeyFrames-b.taken), 0)
	b.taken += granted
	return granted
}
