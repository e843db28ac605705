package egress

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// keyFramesPerSlot is the number of key frame requests per slot that a receiver may make within the interval in
	// which a publisher is asked at most once. A browser makes one request; a lost reply may cause more.
	keyFramesPerSlot = 4
	// leastKeyFrames is the number of additional requests, for receivers with few slots.
	leastKeyFrames = 32
)

// control is the state with which the RTCP of a receiver is processed. Receiver.mu guards it: a mutex and a pointer of
// its own would take a receiver beyond 2 kB.
type control struct {
	// keyFrames limits the receiver's key frame requests, reportLimit its reports of arrivals and of paths.
	keyFrames   keyFrameBudget
	reportLimit feedback.ReportLimit
	// reference replies to the receiver's reference times, nil before the first one.
	reference *feedback.ReferenceTimes
}

// keyFrameBudget bounds the key frame requests of one receiver that are processed. One packet may name some hundred
// SSRCs (RFC 5104 section 4.3.1) or hold as many PLI. Each request adds work for the writer and may wake the writer.
type keyFrameBudget struct {
	since   time.Time
	granted int
}

// take returns how many of the requests may be processed now, for a receiver with that number of slots.
func (b *keyFrameBudget) take(requests, slots int, interval time.Duration, now time.Time) int {
	if now.Sub(b.since) >= interval {
		b.since, b.granted = now, 0
	}
	allowed := max(min(requests, keyFramesPerSlot*slots+leastKeyFrames-b.granted), 0)
	b.granted += allowed
	return allowed
}

// lookupsPerRepair is the number of sequence numbers that a receiver may have looked up per retransmission that it may
// be sent: our own receivers request a packet up to 8 times. A lookup takes 0.2 µs. The 9,600 lookups of a full
// RetransmissionBurst take 2 ms, regardless of slots and outcomes, and the further lookups of a receiver of 10,000
// packets/s take 1.6 % of a core.
const lookupsPerRepair = 8

// repairCredit bounds the retransmissions to one receiver. The writer owns it.
type repairCredit struct {
	// credit is the number of retransmissions that the receiver may be sent, at most most. Each media packet adds one,
	// so that requests at most double the traffic.
	credit, most int
	// lookups is the number of sequence numbers that may be looked up, at most lookupsPerRepair times most. Each media
	// packet adds lookupsPerRepair.
	lookups int
}

func newRepairCredit(burst int) repairCredit {
	return repairCredit{credit: burst, most: burst, lookups: burst * lookupsPerRepair}
}

// earn adds one retransmission and its lookups.
func (c *repairCredit) earn() {
	if c.credit < c.most {
		c.credit++
	}
	c.lookups = min(c.lookups+lookupsPerRepair, c.most*lookupsPerRepair)
}

// spend uses one retransmission and reports whether one was available.
func (c *repairCredit) spend() bool {
	if c.credit == 0 {
		return false
	}
	c.credit--
	return true
}
