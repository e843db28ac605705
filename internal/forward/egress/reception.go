package egress

import (
	"net/netip"
	"time"
)

// located is a Peer that knows the address to which its media leaves.
type located interface {
	// RemoteAddress returns the address, the zero Addr while media passes through ICE. RemoteAddress takes no lock.
	RemoteAddress() netip.Addr
}

// Reception has the counts of the packets on the path to a receiver, by the reports and requests of the receiver. The
// counts begin with the connection, and begin again if the peers negotiate another form of reports.
type Reception struct {
	// Receiver is the number of the receiver, which no later receiver has.
	Receiver uint64
	// Remote is the receiver's address, the zero Addr if it is not known.
	Remote netip.Addr
	// Sent counts packets, Arrived and Lost those of them by their last report, and Reports the reports of arrivals.
	Sent, Reports, Arrived, Lost uint64
	// Requested counts packets that were sent again because the receiver has requested them. It does not include
	// packets that were lost on the publisher's path. KeyFrames counts requests for key frames of tracks that the
	// receiver had been sent for at least settledAfter.
	Requested, KeyFrames uint64
	// QueueDelay is the minimum queueing delay on the path over the last tenth of a second.
	QueueDelay time.Duration
}

// settledAfter is the time for which a slot has carried a track when a request for a key frame shows a loss. Earlier
// requests are those with which every decoder begins. A key frame arrives within a round trip and a frame interval, so
// that a second contains the repetitions of the first request.
const settledAfter = time.Second

// Receptions appends the receptions of all receivers, in no particular order, up to a tenth of a second old. The
// packets of a receiver are counted from the first call of Receptions, which does not include the receiver yet.
func (s *Set) Receptions(to []Reception) []Reception {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.open {
		if reception, ok := r.reception(); ok {
			to = append(to, reception)
		}
	}
	return to
}

// reception are the counts of one receiver. A server that does not read them needs no memory for them.
type reception struct {
	// The writer owns these counts.
	sent, requested, keyFrames uint64
	// fedAt are the times, since the engine's start, at which the present tracks began to feed the slots. The writer
	// owns it.
	fedAt map[*Slot]time.Duration
	// published are the last published counts. The mutex of the path guards them. known is set once there are any.
	published Reception
	known     bool
}

// fed records that a track begins to feed a slot.
func (c *reception) fed(s *Slot, at time.Duration) {
	if c.fedAt == nil {
		c.fedAt = make(map[*Slot]time.Duration)
	}
	c.fedAt[s] = at
}

// settled reports whether a slot has had its track for settledAfter.
func (c *reception) settled(s *Slot, at time.Duration) bool {
	began, known := c.fedAt[s]
	return known && at-began >= settledAfter
}

// reception returns the last published counts, and reports whether there are any.
func (r *Receiver) reception() (latest Reception, known bool) {
	p := &r.path
	c := p.reception.Load()
	if c == nil {
		p.reception.CompareAndSwap(nil, &reception{})
		return Reception{}, false
	}
	p.mu.Lock()
	latest, known = c.published, c.known
	latest.QueueDelay = p.latest.QueueDelay
	p.mu.Unlock()
	latest.Receiver = r.serial
	if peer, ok := p.peer.(located); ok {
		latest.Remote = peer.RemoteAddress()
	}
	return latest, known
}

// publishReception publishes the counts. The writer calls it.
func (p *path) publishReception() {
	c := p.reception.Load()
	if c == nil {
		return
	}
	now := Reception{Sent: c.sent, Requested: c.requested, KeyFrames: c.keyFrames}
	if p.departures != nil {
		// Lost packets that arrived late are in both counts of the history.
		history := p.departures.history.Stats()
		now.Reports, now.Arrived, now.Lost = history.Reports, history.Received, history.Lost-history.Late
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.published, c.known = now, true
}
