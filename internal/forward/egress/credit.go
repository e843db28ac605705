package egress

import "time"

const (
	// keyFramesPerSlot is how many requests for a key frame of each of its slots a receiver may make within the
	// interval in which a publisher is asked once at most: browsers make one, and a packet may be lost that would have
	// answered it.
	keyFramesPerSlot = 4
	// leastKeyFrames is what receivers of few slots may ask for beyond that.
	leastKeyFrames = 32
)

// keyFrameBudget bounds how many requests for key frames of one receiver are looked at: one packet may name some
// hundred SSRCs (RFC 5104 section 4.3.1), or hold as many PLI, and each costs a slot's mail and perhaps a writer's
// waking.
type keyFrameBudget struct {
	since   time.Time
	granted int
}

// take gives how many of so many requests may be looked at now, by a receiver with so many slots.
func (b *keyFrameBudget) take(requests, slots int, interval time.Duration, now time.Time) int {
	if now.Sub(b.since) >= interval {
		b.since, b.granted = now, 0
	}
	allowed := max(min(requests, keyFramesPerSlot*slots+leastKeyFrames-b.granted), 0)
	b.granted += allowed
	return allowed
}

// lookupsPerRepair is how many numbers a receiver may have looked up for each retransmission that it may be sent: our
// own receivers ask for a packet up to 8 times. A lookup takes 0.2 µs, so that the numbers of RetransmissionBurst,
// 9,600, take 2 ms, whatever slots they are of and whatever becomes of them, and what a receiver of 10,000 packets/s
// may ask for beyond that takes 1.6 % of a core.
const lookupsPerRepair = 8

// repairCredit bounds the retransmissions to one receiver. The writer owns it.
type repairCredit struct {
	// credit is how many retransmissions the receiver may be sent, at most that many: each media packet earns one, so
	// that requests never more than double what is sent.
	credit, most int
	// lookups is how many numbers may be looked up for the receiver, at most lookupsPerRepair times most. Each media
	// packet earns lookupsPerRepair.
	lookups int
}

func newRepairCredit(burst int) repairCredit {
	return repairCredit{credit: burst, most: burst, lookups: burst * lookupsPerRepair}
}

// earn allows one more retransmission, and the lookups for it.
func (c *repairCredit) earn() {
	if c.credit < c.most {
		c.credit++
	}
	c.lookups = min(c.lookups+lookupsPerRepair, c.most*lookupsPerRepair)
}

// spend takes one retransmission from the credit, and reports whether there was one.
func (c *repairCredit) spend() bool {
	if c.credit == 0 {
		return false
	}
	c.credit--
	return true
}
