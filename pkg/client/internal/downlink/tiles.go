package downlink

import (
	"cmp"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// MaxTiles is the number of tiles whose counts are kept: four times a server's default number of slots. Other
// participants choose the names of their publications, and may publish under new names without end.
const MaxTiles = 4096

// tile has the counts of one tile or, in volumetric.ModeDescriptions, of one description.
type tile struct {
	track volumetric.TrackRef
	// assigned is the number of assignments of all tiles up to the last assignment of this tile.
	assigned uint64
	ledger   ledger
	packets  uint64
	bytes    uint64
	breaks   breaks
	// replaced is the number of source packets that parity replaced.
	replaced uint64
	// nacks sums former assignments.
	nacks feedback.NACKStats
	// delivered are the frames that were delivered, captured is the latest of their capture times.
	delivered delivered
	captured  time.Time
	// begins counts down from lateFrames with the complete frames after an assignment to a slot. It is 0 after a frame
	// that was captured later than all before, or that has no capture time. A slot begins with the newest frame that
	// its server has. Another slot or another connection may have carried that frame: until 0 a frame may come again.
	begins int
	// renewed is set if the publication has begun or ended since the last assignment. The next assignment is of another
	// publication, whose numbers begin again. Until then frames of the former publication may arrive.
	renewed bool
	// source is the stream of the last packet without payload v1, which arrived at sourceAt.
	source   *stream
	sourceAt time.Time
}

// requests returns the counts of the tile's former assignments and of the stream since the present assignment.
func (s *stream) requests() feedback.NACKStats {
	before, now, sum := s.before, s.nacks.Stats(), s.tile.nacks
	return feedback.NACKStats{
		Reordered: sum.Reordered + now.Reordered - before.Reordered,
		Recovered: sum.Recovered + now.Recovered - before.Recovered,
		Lost:      sum.Lost + now.Lost - before.Lost,
		Spared:    sum.Spared + now.Spared - before.Spared,
		Asked:     sum.Asked + now.Asked - before.Asked,
	}
}

// handOver is the time without packets after which another stream delivers a tile's packets. Packets of Opus come every
// 20 ms.
const handOver = 50 * time.Millisecond

// takenFrom reports whether the packets of a tile come from another stream than s. Without payload v1, packets have no
// number that two servers share.
func (t *tile) takenFrom(s *stream, now time.Time) bool {
	if t.source != nil && t.source != s && now.Sub(t.sourceAt) < handOver {
		return true
	}
	t.source, t.sourceAt = s, now
	return false
}

// delivered has the numbers of the last 64 frames that were delivered. The zero value is empty.
type delivered struct {
	newest int64
	// last has bit i if frame newest-i was delivered.
	last uint64
}

// has reports whether a frame was delivered. Frames long before the newest count as delivered, unless the numbers have
// started again.
func (d *delivered) has(number int64) bool {
	switch behind := d.newest - number; {
	case d.last == 0, behind < 0, behind > maxStretch:
		return false
	case behind < 64:
		return d.last&(1<<behind) != 0
	}
	return true
}

// add adds a frame, and reports whether it was delivered before.
func (d *delivered) add(number int64) bool {
	repeated := d.has(number)
	switch behind := d.newest - number; {
	case d.last == 0, behind > maxStretch, behind <= -64:
		d.newest, d.last = number, 1
	case behind < 0:
		d.newest, d.last = number, d.last<<-behind|1
	case behind < 64:
		d.last |= 1 << behind
	}
	return repeated
}

// remove removes a frame that was added and could not be delivered.
func (d *delivered) remove(number int64) {
	if behind := d.newest - number; behind >= 0 && behind < 64 {
		d.last &^= 1 << behind
	}
}

// complete adds a complete frame, and reports whether the frame was delivered before. captured is its capture time,
// zero if unknown. shared is set if another receiver has delivered frames of the tile. A publication of the same name
// may replace the tile's publication without a message to this client. Its numbers begin again, and its frames are
// captured later: the counts begin again with the first complete frame.
func (t *tile) complete(number int64, captured time.Time, shared bool) (repeated bool) {
	// The qualities of one frame may have different capture times.
	later := captured.After(t.captured) && number != t.delivered.newest
	if captured.After(t.captured) {
		t.captured = captured
	}
	if later && t.begins > 0 && number < t.delivered.newest {
		// The ledger has begun again if the numbers are far from one another.
		if t.ledger.newest >= t.delivered.newest {
			t.ledger.restart()
			t.ledger.begin(number)
		}
		t.delivered = delivered{}
	}
	switch {
	case later, captured.IsZero():
		t.begins = 0
	case t.begins > 0:
		t.begins--
	}
	return t.delivered.add(number) && t.mayRepeat(number, shared)
}

// repeats reports whether a frame that has expired was delivered before. shared is that of complete.
func (t *tile) repeats(number int64, shared bool) bool {
	return t.delivered.has(number) && t.mayRepeat(number, shared)
}

// mayRepeat reports whether a frame may come again.
func (t *tile) mayRepeat(number int64, shared bool) bool {
	return shared || t.begins > 0 && t.delivered.newest-number < lateFrames
}

// extend extends a frame number to 64 bits by the tile's newest frame, so that the qualities and slots of a tile agree.
func (t *tile) extend(number uint32) int64 {
	if t.ledger.newest == 0 {
		return int64(number)
	}
	return payload.ExtendFrame(t.ledger.newest, number)
}

// tiles has every received tile by name, up to MaxTiles, so that counts outlive assignments. In
// volumetric.ModeAlternatives the quality in the name is off. The zero value is empty.
type tiles struct {
	byName map[volumetric.TrackRef]*tile
	// assignments is the number of assignments of tiles to slots.
	assignments uint64
	// left are the tiles that a stream has left while their frames were not all counted.
	left map[*tile]struct{}
	// shared is set while two receivers deliver the tiles. Until the given time, frames may come that the receiver that
	// has ended had delivered.
	shared bool
	until  time.Time
}

// repeats reports whether frames may come that another receiver has delivered.
func (ts *tiles) repeats(now time.Time) bool { return ts.shared || now.Before(ts.until) }

// assign returns the tile for a slot's assignment. If there are too many tiles, it removes the tile with the oldest
// assignment, except tiles that streams use.
func (ts *tiles) assign(track volumetric.TrackRef, streams map[string]*stream) *tile {
	t := ts.byName[track]
	if t == nil {
		if len(ts.byName) >= MaxTiles {
			ts.removeOldest(streams)
		}
		if ts.byName == nil {
			ts.byName = make(map[volumetric.TrackRef]*tile)
		}
		t = &tile{track: track}
		ts.byName[track] = t
	}
	if t.renewed {
		t.renewed, t.delivered, t.captured = false, delivered{}, time.Time{}
		t.ledger.restart()
	}
	ts.assignments++
	t.assigned, t.begins = ts.assignments, lateFrames
	return t
}

// leave records that a stream has left a tile.
func (ts *tiles) leave(t *tile) {
	if t.ledger.settled() {
		return
	}
	if ts.left == nil {
		ts.left = make(map[*tile]struct{})
	}
	ts.left[t] = struct{}{}
}

// settle counts the frames whose deadline has passed of the tiles that streams have left.
func (ts *tiles) settle(now time.Time, deadline time.Duration) {
	for t := range ts.left {
		if t.ledger.settle(now, deadline); t.ledger.settled() {
			delete(ts.left, t)
		}
	}
}

// removeOldest removes the tile with the oldest assignment, except tiles that streams use.
func (ts *tiles) removeOldest(streams map[string]*stream) {
	kept := make(map[*tile]bool, len(streams))
	for _, s := range streams {
		kept[s.tile] = true
	}
	var oldest *tile
	for _, t := range ts.byName {
		if !kept[t] && (oldest == nil || t.assigned < oldest.assigned) {
			oldest = t
		}
	}
	if oldest != nil {
		delete(ts.byName, oldest.track)
	}
}

// TileStats are the counts of one received tile.
type TileStats struct {
	// Track names the tile. In volumetric.ModeDescriptions its quality names the description. In other modes the
	// quality is volumetric.QualityOff.
	Track  volumetric.TrackRef
	Frames FrameCounts
	// Packets counts received RTP packets, retransmissions included, and Bytes the bytes of their payloads.
	Packets, Bytes uint64
	// NACKs are the counts of lost packets.
	NACKs feedback.NACKStats
	// Replaced counts the source packets that parity replaced.
	Replaced uint64
	// Gaps counts sequence numbers that the media stream skipped at first. Repeats counts packets that arrived again on
	// the media stream.
	Gaps, Repeats uint64
}

// Stats returns the counts of every tile, sorted by name.
func (r *Receiver) Stats() []TileStats {
	var list []TileStats
	for _, t := range r.tiles.byName {
		nacks := t.nacks
		for _, s := range r.streams {
			if s.tile == t {
				nacks = s.requests()
			}
		}
		list = append(list, TileStats{
			Track:    t.track,
			Frames:   t.ledger.counts,
			Packets:  t.packets,
			Bytes:    t.bytes,
			NACKs:    nacks,
			Replaced: t.replaced,
			Gaps:     t.breaks.gaps,
			Repeats:  t.breaks.repeats,
		})
	}
	slices.SortFunc(list, func(a, b TileStats) int { return compareTracks(a.Track, b.Track) })
	return list
}

func compareTracks(a, b volumetric.TrackRef) int {
	return cmp.Or(
		cmp.Compare(a.Participant, b.Participant),
		cmp.Compare(a.Publication, b.Publication),
		cmp.Compare(a.Tile, b.Tile),
		cmp.Compare(a.Quality, b.Quality),
	)
}
