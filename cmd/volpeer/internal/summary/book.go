package summary

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/peer/distribution"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Book collects the counters of a watching client. Times are by the server's clock, the clock of capture times.
type Book struct {
	// first is the time at which the first frame was decoded.
	first time.Time
	tiles map[volumetric.TileRef]*page
	skew  map[volumetric.PublicationRef]*distribution.Distribution
	sound map[volumetric.PublicationRef]*soundCounter
	// estimate and allocated are the newest values that the server reported.
	estimate, allocated volumetric.Bitrate
	// l4s is the newest state of L4S that the server reported, empty for none.
	l4s string
}

// page has the counters of one tile that the session does not have.
type page struct {
	decoded, failed, skipped, held, switches int64
	// shots counts decoded frame numbers. All descriptions of one frame number count once.
	shots           shotCounter
	latency, change distribution.Distribution
	// recent is the part of latency since the last TakeRecent.
	recent distribution.Distribution
	// on is the time for which the tile was on before since. since is the time at which the tile was switched on, zero
	// while the tile is off.
	on    time.Duration
	since time.Time
	// off is the time at which the tile was switched off.
	off time.Time
}

// NewBook returns an empty book.
func NewBook() *Book {
	return &Book{
		tiles: make(map[volumetric.TileRef]*page),
		skew:  make(map[volumetric.PublicationRef]*distribution.Distribution),
		sound: make(map[volumetric.PublicationRef]*soundCounter),
	}
}

func (b *Book) page(ref volumetric.TileRef) *page {
	p := b.tiles[ref]
	if p == nil {
		p = &page{}
		b.tiles[ref] = p
	}
	return p
}

// Decoded records a decoded frame with number, capture time and time of decoding. A zero capture time means unknown.
func (b *Book) Decoded(ref volumetric.TileRef, number int64, capture, decoded time.Time) {
	p := b.page(ref)
	p.decoded++
	p.shots.count(number)
	if b.first.IsZero() {
		b.first = decoded
	}
	if p.since.IsZero() && (capture.IsZero() || capture.After(p.off)) {
		p.since = decoded
	}
	if !capture.IsZero() {
		p.latency.Add(decoded.Sub(capture))
		p.recent.Add(decoded.Sub(capture))
	}
}

// Failed records a complete frame that could not be decoded.
func (b *Book) Failed(ref volumetric.TileRef) { b.page(ref).failed++ }

// Skipped records complete frames that were superseded before decoding.
func (b *Book) Skipped(ref volumetric.TileRef, frames int) {
	if frames > 0 {
		b.page(ref).skipped += int64(frames)
	}
}

// Held records that a tile of an earlier frame was shown in the given number of frames.
func (b *Book) Held(ref volumetric.TileRef, frames int) { b.page(ref).held += int64(frames) }

// Bandwidth records the server's estimate of the link, the rate that the server allocated, and the state of L4S.
func (b *Book) Bandwidth(e client.Bandwidth) {
	b.estimate, b.allocated, b.l4s = e.Estimate, e.Allocated, e.L4S
}

// Switched records a change of a tile's quality.
func (b *Book) Switched(ref volumetric.TileRef) { b.page(ref).switches++ }

// Changed records the time from a request to the first frame of the requested quality.
func (b *Book) Changed(ref volumetric.TileRef, latency time.Duration) {
	b.page(ref).change.Add(latency)
}

// Off records that a tile is not sent until the next frame of the tile. The first frame of the tile may still be in
// flight.
func (b *Book) Off(ref volumetric.TileRef, now time.Time) { b.page(ref).switchOff(now) }

// Ended records the end of a publication.
func (b *Book) Ended(ref volumetric.PublicationRef, now time.Time) {
	for tile, p := range b.tiles {
		if tile.PublicationRef == ref {
			p.switchOff(now)
		}
	}
}

func (p *page) switchOff(now time.Time) {
	p.on, p.since, p.off = p.onTime(now), time.Time{}, now
}

// onTime returns the time for which the tile was on, from the first decoded frame on.
func (p *page) onTime(now time.Time) time.Duration {
	if p.since.IsZero() {
		return p.on
	}
	return p.on + max(0, now.Sub(p.since))
}

// Skew records the delay of a displayed frame relative to the sound.
func (b *Book) Skew(ref volumetric.PublicationRef, skew time.Duration) {
	d := b.skew[ref]
	if d == nil {
		d = &distribution.Distribution{}
		b.skew[ref] = d
	}
	d.Add(skew.Abs())
}

// Sound records an audio packet by RTP sequence number and time of arrival.
func (b *Book) Sound(ref volumetric.PublicationRef, sequence uint16, arrived time.Time) {
	c := b.sound[ref]
	if c == nil {
		c = &soundCounter{}
		b.sound[ref] = c
	}
	c.count(sequence, arrived)
}

// Known reports whether a frame of the tile was decoded.
func (b *Book) Known(ref volumetric.TileRef) bool {
	p := b.tiles[ref]
	return p != nil && p.decoded > 0
}

// TakeRecent returns the latencies of a publication since the last call.
func (b *Book) TakeRecent(ref volumetric.PublicationRef) (recent distribution.Distribution) {
	for tile, p := range b.tiles {
		if tile.PublicationRef == ref {
			recent.Merge(&p.recent)
			p.recent.Reset()
		}
	}
	return recent
}

// Shots returns the number of decoded frame numbers, summed over the tiles of a publication.
func (b *Book) Shots(ref volumetric.PublicationRef) (shots int64) {
	for tile, p := range b.tiles {
		if tile.PublicationRef == ref {
			shots += p.shots.shots
		}
	}
	return shots
}

// Sum returns the summary. stats are the session's counters of volumetric tiles only. The counters of a tile's
// descriptions are added up.
func (b *Book) Sum(stats []client.TileStats, now time.Time) Summary {
	byTile := make(map[volumetric.TileRef]*Tile)
	watched := 0.0
	if !b.first.IsZero() {
		watched = now.Sub(b.first).Seconds()
	}
	for i := range stats {
		b.tile(byTile, stats[i].Track.TileRef).received(&stats[i], watched)
	}
	for ref := range b.tiles {
		b.tile(byTile, ref)
	}
	s := Summary{Estimate: int64(b.estimate), Allocated: int64(b.allocated), Publications: []Tile{}}
	if state := b.l4s; state != "" {
		s.ECN.L4S = &state
	}
	measured := 0
	var latency, change, skew distribution.Distribution
	for _, ref := range slices.SortedFunc(maps.Keys(byTile), compareTiles) {
		t := byTile[ref]
		if p := b.tiles[ref]; p != nil {
			t.shown(p, now)
			latency.Merge(&p.latency)
			change.Merge(&p.change)
		}
		if d := b.skew[ref.PublicationRef]; d != nil {
			t.Skew = d.Percentiles()
		}
		t.Expected = t.Decoded + t.Undecodable + t.Missing + t.Skipped + t.DroppedByServer + t.Refused
		s.Add(&t.Figures)
		// Tiles without expected frames were off. Such tiles do not count in the mean.
		if t.Expected > 0 {
			s.FPS += t.FPS
			measured++
		}
		s.Publications = append(s.Publications, *t)
	}
	for _, d := range b.skew {
		skew.Merge(d)
	}
	if measured > 0 {
		s.FPS = round(s.FPS/float64(measured), 3)
	}
	s.Latency, s.QualityChange, s.Skew = latency.Percentiles(), change.Percentiles(), skew.Percentiles()
	for _, c := range b.sound {
		counts := c.counts()
		s.Audio.PacketsReceived += counts.received
		s.Audio.PacketsLost += counts.lost
		s.Audio.LongestGap = max(s.Audio.LongestGap, round(1e3*c.gap.Seconds(), 3))
	}
	return s
}

func (b *Book) tile(byTile map[volumetric.TileRef]*Tile, ref volumetric.TileRef) *Tile {
	t := byTile[ref]
	if t == nil {
		t = &Tile{Participant: ref.Participant, Publication: ref.Publication, Tile: ref.Tile}
		byTile[ref] = t
	}
	return t
}

// received adds the session's counters. Frames that overflowed the session's queue were complete and superseded by
// later frames.
func (t *Tile) received(s *client.TileStats, watched float64) {
	t.Undecodable += s.Undecodable
	t.Missing += s.Missing
	t.Skipped += s.Overflowed
	t.DroppedByServer += s.DroppedByServer
	t.Refused += s.Refused
	t.PacketsReceived += s.Packets
	t.PacketsLost += s.Lost
	t.NACKsSent += s.Requests
	t.PacketsRecovered += s.Recovered
	if watched > 0 {
		t.Bitrate += int64(8 * float64(s.Bytes) / watched)
	}
}

// shown adds the book's counters.
func (t *Tile) shown(p *page, now time.Time) {
	t.Decoded = p.decoded
	t.Undecodable += p.failed
	t.Skipped += p.skipped
	t.Held = p.held
	t.Switches = p.switches
	t.Latency, t.QualityChange = p.latency.Percentiles(), p.change.Percentiles()
	if on := p.onTime(now).Seconds(); on > 0 {
		t.FPS = round(float64(p.shots.shots)/on, 3)
	}
}

func compareTiles(a, b volumetric.TileRef) int {
	return cmp.Or(cmp.Compare(a.Participant, b.Participant), cmp.Compare(a.Publication, b.Publication),
		cmp.Compare(a.Tile, b.Tile))
}
