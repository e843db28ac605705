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
	// Lost falls when a packet that was reported as lost is reported as arrived.
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

// Receptions appends the receptions of all receivers, in no particular order, up to a tenth of a second old.
func (s *Set) Receptions(to []Reception) []Reception {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.open {
		to = append(to, r.reception())
	}
	return to
}

// countedReception has the counts of a receiver that was sent packets. The writer counts Sent, Requested and KeyFrames
// in counts. published is the last published Reception, which the mutex of the path guards.
type countedReception struct{ counts, published Reception }

// counts returns the counts for the writer.
func (p *path) counts() *Reception {
	if p.counted == nil {
		p.mu.Lock()
		p.counted = &countedReception{}
		p.mu.Unlock()
	}
	return &p.counted.counts
}

func (r *Receiver) reception() (reception Reception) {
	p := &r.path
	p.mu.Lock()
	if p.counted != nil {
		reception = p.counted.published
	}
	p.mu.Unlock()
	reception.Receiver = r.serial
	if peer, ok := p.peer.(located); ok {
		reception.Remote = peer.RemoteAddress()
	}
	return reception
}

// receptionNow returns the counts for the next publication, after the first packet. The writer calls it.
func (p *path) receptionNow(queueDelay time.Duration) Reception {
	reception := p.counted.counts
	if p.departures != nil {
		// Lost packets that arrived late are in both counts of the history.
		history := p.departures.history.Stats()
		reception.Arrived, reception.Lost = history.Received, history.Lost-history.Late
		reception.Reports, reception.QueueDelay = history.Reports, queueDelay
	}
	return reception
}
