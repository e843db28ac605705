package egress

import (
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TwoRoutes is a Peer with a second path to the receiver, if the receiver has declared one. Its methods take no lock.
type TwoRoutes interface {
	// SecondRoute reports whether copies of packets can leave on a second path.
	SecondRoute() bool
	// PrimaryPath returns the number of the path on which every packet leaves.
	PrimaryPath() uint8
	// SetCopied sets whether packets that are queued from now on leave on both paths.
	SetCopied(bool)
}

// routes decides whether the packets of one receiver leave on a second path, too.
type routes struct {
	peer TwoRoutes
	// mode is the redundancy.Mode that the receiver wants. Any goroutine may change it.
	mode atomic.Uint32
	// active is set while packets may be copied, as of the beginning of the run. The writer owns it.
	active bool
	// copies is nil before the first packet with a second path. The writer owns it.
	copies *copies
}

// newRoutes returns the routes of a peer, nil if the peer never has a second path.
func newRoutes(p Peer) *routes {
	peer, ok := p.(TwoRoutes)
	if !ok {
		return nil
	}
	return &routes{peer: peer}
}

// copying reports whether packets may be copied in the present run.
func (s *routes) copying() bool { return s != nil && s.active }

// suspended reports whether the congestion control reads no reports, because of an outage of the primary path.
func (s *routes) suspended(now time.Time) bool {
	return s.copying() && s.copies.selector.Suspended(now)
}

// copies selects the packets of one receiver that leave on a second path, too. The writer owns it.
type copies struct {
	peer     TwoRoutes
	selector *redundancy.Selector
	// primary is the number of the primary path. copied is the last argument of SetCopied.
	primary uint8
	copied  bool
	// repairs is the stream of all retransmissions.
	repairs redundancy.Stream
	// counted are the statistics that the writer's counters already include.
	counted redundancy.Stats
}

// SecondPath describes the second path to a receiver.
type SecondPath struct {
	State redundancy.State
	// Estimate is the rate that the path is estimated to carry, on the wire.
	Estimate volumetric.Bitrate
	// Outage is set during an outage of the primary path.
	Outage bool
}

// SetRedundancy sets which packets to the receiver leave on its second path, too. Without a second path the mode has no
// effect. SetRedundancy is safe for any goroutine.
func (r *Receiver) SetRedundancy(mode redundancy.Mode) {
	if routes := r.path.routes; routes != nil {
		routes.mode.Store(uint32(mode))
	}
}

// SetSeen sets whether the receiver sees what the slot carries. The lowest quality of an unseen tile is not copied on
// the receiver's second path. Initially everything is seen. SetSeen is safe for any goroutine.
func (s *Slot) SetSeen(seen bool) { s.unseen.Store(!seen) }

// followRoutes updates the state of the second path. It is called once per run.
func (r *Receiver) followRoutes() {
	s := r.path.routes
	if s == nil {
		return
	}
	mode, before := redundancy.Mode(s.mode.Load()), s.active
	s.active = mode != redundancy.Off && s.peer.SecondRoute()
	switch {
	case !s.active && s.copies == nil:
		return
	case !s.active:
		s.copies.set(false)
		return
	case s.copies == nil:
		s.copies = &copies{peer: s.peer, selector: redundancy.New(mode, r.writer.now)}
	case !before:
		s.copies.selector.Resume(r.writer.now)
	}
	s.copies.primary = s.peer.PrimaryPath()
	s.copies.selector.SetMode(mode)
}

// set makes packets that are queued from now on leave on both paths, or on the primary path only.
func (c *copies) set(copied bool) {
	if c.copied != copied {
		c.copied = copied
		c.peer.SetCopied(copied)
	}
}

// copyMedia decides whether the packet that is queued next is copied: a packet of a track with that number of payload
// bytes, which ends its frame in the slot if ends is set.
func (a *attachment) copyMedia(p *packetlog.Packet, payload int, ends bool) {
	s := a.slot
	c := s.receiver.path.routes.copies
	class := redundancy.Other
	switch {
	case p.Class == packetlog.Audio:
		class = redundancy.Audio
	case p.Class == packetlog.Media && a.follower.track.Quality() == 0 && !s.unseen.Load():
		class = redundancy.Lowest
	}
	c.set(c.selector.Select(&redundancy.Packet{
		SSRC: s.header.SSRC, Sequence: s.header.SequenceNumber, Size: congestion.PacketOverhead + payload, Class: class,
		Begins: p.Facts.Opens, Ends: ends,
	}, &s.copied, c.primary, s.receiver.writer.now))
}

// copyRepair decides whether the retransmission or the padding that is queued next is copied.
func (r *Receiver) copyRepair(ssrc uint32, sequence uint16, payload int, kind packetlog.Class) {
	c := r.path.routes.copies
	class := redundancy.Repair
	if kind == packetlog.Probe {
		class = redundancy.Padding
	}
	c.set(c.selector.Select(&redundancy.Packet{
		SSRC: ssrc, Sequence: sequence, Size: congestion.PacketOverhead + payload, Class: class,
	}, &c.repairs, c.primary, r.writer.now))
}

// readPathReport processes a receiver's report of its paths. If the primary path has an outage, the packets in transit
// are retransmitted.
func (r *Receiver) readPathReport(report []byte) {
	if !r.path.routes.active {
		// The selector has not seen the packets that left without a second path.
		return
	}
	w, c := r.writer, r.path.routes.copies
	began, err := c.selector.Report(report, w.now)
	if err != nil {
		w.stats.counts[counters.MalformedRTCP]++
		return
	}
	if began && !r.closed.Load() {
		c.selector.Stranded(w.now, func(ssrc uint32, sequence uint16) {
			if s := r.slots.find(ssrc); s != nil && s.kind == volumetric.KindVideo {
				r.path.sender.HoldRepair(repair{slot: s, number: sequence, unasked: true})
			}
		})
		w.reschedule(r)
	}
	c.count(&w.stats.counts)
	r.path.publish(w.at)
}

// count adds the statistics since the last call to the counters.
func (c *copies) count(counts *counters.Counts) {
	stats := c.selector.Stats()
	for class, copied := range stats.Copied {
		before := c.counted.Copied[class]
		counts[int(counters.CopiedPackets)+class] += copied.Packets - before.Packets
		counts[int(counters.CopiedBytes)+class] += copied.Bytes - before.Bytes
	}
	counts[counters.Outages] += stats.Outages - c.counted.Outages
	c.counted = stats
}

// second returns the state of the second path, nil while there is none.
func (s *routes) second() *SecondPath {
	if !s.copying() {
		return nil
	}
	state := s.copies.selector.Second()
	_, outage := s.copies.selector.Outage()
	return &SecondPath{State: state.State, Estimate: volumetric.Bitrate(state.Rate), Outage: outage}
}
