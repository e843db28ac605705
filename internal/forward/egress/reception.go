package egress

import (
	"net/netip"
	"time"
)

// Reception has the counts of the packets on the path to a receiver, by the reports and requests of the receiver. The
// counts begin with the connection, and begin again if the peers negotiate another form of reports.
type Reception struct {
	// Receiver is the number of the receiver, which no later receiver has.
	Receiver uint64
	// Remote is the receiver's address, the zero Addr if it is not known.
	Remote netip.Addr
	// Sent counts packets. Arrived and Lost count the sent packets by their last report. Reports counts the reports of
	// arrivals.
	Sent, Reports, Arrived, Lost uint64
	// Requested counts packets that were sent again because the receiver has requested them. Packets that were lost on
	// the publisher's path are not included. KeyFrames counts requests for key frames of tracks that the receiver had
	// been sent for at least settledAfter.
	Requested, KeyFrames uint64
	// QueueDelay is the minimum queueing delay on the path over the last tenth of a second.
	QueueDelay time.Duration
}

// settledAfter is the time for which a slot has carried a track when a request for a key frame shows a loss. Every
// decoder begins with a request. A key frame arrives within a round trip and a frame interval, so that a second
// contains the repetitions of the first request.
const settledAfter = time.Second

// reception are the counts of one receiver. A server that does not read them needs no memory for them.
type reception struct {
	// The writer owns these counts.
	sent, requested, keyFrames uint64
	// fedAt are the times, since the engine's start, at which the present tracks began to feed the slots, by the slots'
	// SSRCs. The writer owns it.
	fedAt map[uint32]time.Duration
	// published are the last published counts. The mutex of the path guards them. known is set once there are any.
	published Reception
	known     bool
}

// fed records that a track begins to feed the slot with an SSRC.
func (c *reception) fed(ssrc uint32, at time.Duration) {
	if c.fedAt == nil {
		c.fedAt = make(map[uint32]time.Duration)
	}
	c.fedAt[ssrc] = at
}

// settled reports whether the slot with an SSRC has had its track for settledAfter.
func (c *reception) settled(ssrc uint32, at time.Duration) bool {
	began, known := c.fedAt[ssrc]
	return known && at-began >= settledAfter
}
