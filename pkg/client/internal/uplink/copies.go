package uplink

import (
	"time"

	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// copies selects the packets that leave on a second path to the server, too.
type copies struct {
	// selector is nil before the first packet with a second path.
	selector *redundancy.Selector
	// active is set while packets may be copied. primary is the number of the path on which every packet leaves.
	active  bool
	primary uint8
	// failed is set if there was a second path, and there is none now.
	failed bool
	// estimates are those of the congestion control for each path when it was last the primary one, 0 if it was not.
	estimates [redundancy.Paths]volumetric.Bitrate
	// repairs is the stream of all retransmissions.
	repairs redundancy.Stream
}

// Copies describes the copies on second paths.
type Copies struct {
	// Used is set while packets may be copied. Second is valid if it is set.
	Used bool
	redundancy.Second
	redundancy.Stats
}

// SetRedundancy sets which packets leave on a second path, too. Without a second path the mode has no effect.
func (u *Uplink) SetRedundancy(mode redundancy.Mode) { u.mode = mode }

// SetRoutes sets whether packets can leave on a second path, and the number of the path on which every packet leaves.
func (u *Uplink) SetRoutes(second bool, primary uint8, now time.Time) {
	c := &u.queue.copies
	before := c.active
	if c.selector != nil && primary != c.primary {
		u.queue.move(primary, now)
	}
	c.active, c.primary = second && u.mode != redundancy.Off, primary
	c.failed = !c.active && c.selector != nil && u.mode != redundancy.Off
	switch {
	case !c.active:
		return
	case c.selector == nil:
		c.selector = redundancy.New(u.mode, now)
	case !before:
		c.selector.Resume(now)
	}
	c.selector.SetMode(u.mode)
}

// move makes the congestion control estimate the path that is the first one now. It begins with its last estimate of
// that path, or the rate of copies on it if that is higher.
func (q *queue) move(primary uint8, now time.Time) {
	c := &q.copies
	if !q.sender.Reported() || primary >= redundancy.Paths || c.primary >= redundancy.Paths {
		return
	}
	c.estimates[c.primary] = q.sender.Stats().Estimate
	q.sender.Move(max(c.estimates[primary], volumetric.Bitrate(c.selector.Rate(primary))), now)
}

// Copies returns the state of the copies. The counts include those of former connections.
func (u *Uplink) Copies() Copies {
	result := Copies{Used: u.queue.copies.active, Stats: u.copied}
	if selector := u.queue.copies.selector; selector != nil {
		result.Second = selector.Second()
		result.Stats.Add(selector.Stats())
	}
	return result
}

// PathReport processes a report of the server about the paths, and reports whether packets are to be retransmitted at
// once. The limit of Report includes such reports.
func (u *Uplink) PathReport(packet []byte, now time.Time) bool {
	q := &u.queue
	if !q.copies.active {
		// The selector has not seen the packets that left without a second path.
		return false
	}
	if !q.reportLimit.Take(now) {
		q.reportsDropped++
		return false
	}
	began, err := q.copies.selector.Report(packet, now)
	if err != nil || !began {
		return false
	}
	q.copies.selector.Stranded(now, func(ssrc uint32, sequence uint16) {
		if l := u.lineBySSRC[ssrc]; l != nil && l.repeats() && !l.carriesAudio() {
			q.sender.HoldRepair(repair{l, sequence})
		}
	})
	return true
}

// suspended reports whether the congestion control reads no reports, because of an outage of the first path.
func (c *copies) suspended(now time.Time) bool { return c.active && c.selector.Suspended(now) }

// carriesAudio reports whether the line carries a track of audio.
func (l *line) carriesAudio() bool {
	return l.publication != nil && l.publication.description.Kind == volumetric.KindAudio
}

// limit returns the rate in bit/s that limits the tracks, 0 for none: during an outage of the first path, no more than
// the second path carries.
func (q *queue) limit() float64 {
	limit := float64(q.sender.Limit())
	if !q.copies.active {
		return limit
	}
	if rate, outage := q.copies.selector.Outage(); outage && (limit == 0 || rate < limit) {
		return rate
	}
	return limit
}

// SetLowestTaken sets for each tile whether a receiver takes the lowest quality, which is then copied on the second
// path. nil is unknown: the lowest quality of every tile is copied.
func (p *Publication) SetLowestTaken(taken []bool) { p.lowestTaken = taken }

// takesLowest reports whether a track is the lowest quality of its tile and a receiver may take the track.
func (p *Publication) takesLowest(track int) bool {
	tile, quality := track/len(p.description.Qualities), track%len(p.description.Qualities)
	return quality == 0 && (tile >= len(p.lowestTaken) || p.lowestTaken[tile])
}

// copyMedia decides whether a packet of a frame is copied.
func (q *queue) copyMedia(p heldPacket, o *Outgoing, now time.Time) {
	f := p.frame
	class := redundancy.Other
	switch {
	case f.isAudio():
		class = redundancy.Audio
	case f.publication.takesLowest(f.track):
		class = redundancy.Lowest
	}
	packet := redundancy.Packet{
		SSRC: o.Header.SSRC, Sequence: o.Header.SequenceNumber, Size: o.size(), Class: class, Begins: p.index == 0,
		Ends: p.index == len(f.payloads)-1,
	}
	o.Copied = q.copies.selector.Select(&packet, &f.line.copied, q.copies.primary, now)
	o.Doubled = packet.Doubled
}

// copyRepair decides whether a retransmission, or padding, is copied.
func (q *queue) copyRepair(o *Outgoing, class redundancy.Class, now time.Time) {
	o.Copied = q.copies.selector.Select(&redundancy.Packet{
		SSRC: o.Header.SSRC, Sequence: o.Header.SequenceNumber, Size: o.size(), Class: class,
	}, &q.copies.repairs, q.copies.primary, now)
}
