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
	// SetDoubled sets whether packets that are queued from now on leave twice on the primary path.
	SetDoubled(bool)
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
	// primary is the number of the primary path. copied and doubled are the last arguments of SetCopied and SetDoubled.
	primary         uint8
	copied, doubled bool
	// estimates are those of the congestion control for each path when it was last the primary one, 0 if it was not.
	estimates [redundancy.Paths]congestion.Bitrate
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

// follow updates the state of the paths, and reports whether the other path is the primary one now. It is called once
// per run. s may be nil.
func (s *routes) follow(now time.Time) (moved bool) {
	if s == nil {
		return false
	}
	mode, before, primary := redundancy.Mode(s.mode.Load()), s.active, s.peer.PrimaryPath()
	s.active = mode != redundancy.Off && s.peer.SecondRoute()
	c := s.copies
	switch {
	case c != nil:
		moved, c.primary = c.primary != primary, primary
	case s.active:
		c = &copies{peer: s.peer, selector: redundancy.New(mode, now), primary: primary}
		s.copies, before = c, true
	default:
		return false
	}
	switch {
	case !s.active:
		c.set(false, false)
		return moved
	case !before:
		c.selector.Resume(now)
	}
	c.selector.SetMode(mode)
	return moved
}

// move makes the congestion control estimate the path that is the primary one now. It begins with its last estimate of
// that path, or the rate of copies on it if that is higher.
func (p *path) move(now time.Time) {
	c := p.routes.copies
	if p.estimation == nil || !p.sender.Reported() || c.primary >= redundancy.Paths {
		return
	}
	c.estimates[redundancy.Paths-1-c.primary] = p.sender.Stats().Estimate
	p.sender.Move(max(c.estimates[c.primary], congestion.Bitrate(c.selector.Rate(c.primary))), now)
}

// set makes packets that are queued from now on leave on both paths, or on the primary path only, once or twice.
func (c *copies) set(copied, doubled bool) {
	if c.copied != copied {
		c.copied = copied
		c.peer.SetCopied(copied)
	}
	if c.doubled != doubled {
		c.doubled = doubled
		c.peer.SetDoubled(doubled)
	}
}

// double decides whether the packet that is queued next leaves twice on the only path: audio does after the second path
// has failed. s may be nil.
func (s *routes) double(audio bool) {
	if s != nil && s.copies != nil {
		s.copies.set(false, audio && redundancy.Mode(s.mode.Load()) != redundancy.Off)
	}
}

// decide decides whether the packet that is queued next is copied. The packets of one slot have a stream.
func (c *copies) decide(p *redundancy.Packet, stream *redundancy.Stream, now time.Time) {
	copied := c.selector.Select(p, stream, c.primary, now)
	c.set(copied, p.Doubled)
}

// repairsLost reports whether a retransmission would be lost now: see redundancy.Selector.
func (s *routes) repairsLost(now time.Time) bool {
	return s.copying() && s.copies.selector.RepairsLost(now)
}

// copyRepair decides whether the retransmission or the padding that is queued next is copied.
func (c *copies) copyRepair(ssrc uint32, sequence uint16, payload int, kind packetlog.Class, now time.Time) {
	class := redundancy.Repair
	if kind == packetlog.Probe {
		class = redundancy.Padding
	}
	c.decide(&redundancy.Packet{
		SSRC: ssrc, Sequence: sequence, Size: congestion.PacketOverhead + payload, Class: class,
	}, &c.repairs, now)
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
