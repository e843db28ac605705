package present

import (
	"maps"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Arrival is one decoded tile, or in volumetric.ModeDescriptions one description of a tile.
type Arrival struct {
	Tile    int
	Quality volumetric.Quality
	Number  int64
	// Capture is the capture time, First the arrival of the first packet, Decoded the end of decoding.
	Capture, First, Decoded time.Time
	// Cloud is nil if clouds are not kept.
	Cloud *pointcloud.Cloud
}

// Shown is the frame that a publication shows from now on.
type Shown struct {
	Number  int64
	Capture time.Time
	// Decoded is the time at which the last tile of the frame that has arrived was decoded.
	Decoded time.Time
	// Clouds has the clouds of all tiles and descriptions. A tile that is missing in this frame has the cloud of an
	// earlier frame.
	Clouds []*pointcloud.Cloud
	// Held has, for each tile that was missing, the number of frame numbers since the frame shown before in which it
	// was missing. The map is valid until the next step.
	Held map[int]int
}

// Player shows one publication.
type Player struct {
	descriptions bool
	deadline     time.Duration
	tiles        map[int]*tile
	// frames has the frames that are incomplete or wait to be shown, by number.
	frames map[int64]*frame
	newest int64
	shown  int64
	// playing is set once a frame was shown.
	playing bool
	held    map[int]int
}

// tile is the state of one tile.
type tile struct {
	// on is set if frames of the tile are expected, from number since on. off is the time at which the server stopped
	// sending the tile.
	on    bool
	since int64
	off   time.Time
	// number and parts describe the frame that is shown.
	number int64
	parts  parts
}

// parts has the clouds of one tile in one frame, by quality. In volumetric.ModeAlternatives there is one entry.
type parts map[volumetric.Quality]*pointcloud.Cloud

// frame has the tiles received for one frame number.
type frame struct {
	capture time.Time
	// first is the arrival of the first packet. firstDecoded and lastDecoded are the times at which the first and the
	// last tile were decoded.
	first, firstDecoded, lastDecoded time.Time
	tiles                            map[int]parts
	observed                         bool
}

const (
	// history is the number of frame numbers in which late tiles are accepted. Repair takes at most 250 ms, which is 30
	// frames at 120 per second.
	history = 32
	// maxStretch is the largest jump of frame numbers that is counted as missing frames: 10 s at 100 per second.
	maxStretch = 1000
	// anewAfter is the minimum difference of capture times by which a lower frame number is recognised as a restart of
	// the publication. If capture times are unknown, arrival times are used; repair reorders arrivals by less than
	// this.
	anewAfter = 250 * time.Millisecond
)

// NewPlayer returns the player of a publication. A decoded frame waits no longer than the deadline, whatever the
// capture time is.
func NewPlayer(mode volumetric.Mode, deadline time.Duration) *Player {
	p := &Player{descriptions: mode == volumetric.ModeDescriptions, deadline: deadline, held: make(map[int]int)}
	p.restart()
	return p
}

func (p *Player) restart() {
	p.tiles, p.frames = make(map[int]*tile), make(map[int64]*frame)
	p.playing = false
}

// Off records that the server stopped sending a tile. The tile is on again with the first frame captured later. The
// first frame of the tile may still be in flight.
func (p *Player) Off(number int, now time.Time) {
	t := p.tiles[number]
	if t == nil {
		t = &tile{number: -1}
		p.tiles[number] = t
	}
	t.on, t.off = false, now
}

// Passed reports whether a newer frame of the tile is already shown, so that this frame need not be decoded.
func (p *Player) Passed(number int, frame int64, capture time.Time) bool {
	t := p.tiles[number]
	return p.playing && t != nil && t.number > frame && !p.begunAnew(frame, capture)
}

// begunAnew reports whether a lower number is newer, because the publication was restarted.
func (p *Player) begunAnew(number int64, capture time.Time) bool {
	newest := p.frames[p.newest]
	return newest != nil && number < p.newest && capture.Sub(newest.capture) > anewAfter
}

// Decoded adds a decoded tile.
func (p *Player) Decoded(a Arrival) {
	if p.begunAnew(a.Number, a.Capture) {
		p.restart()
	}
	if len(p.frames) == 0 || a.Number > p.newest {
		p.newest = a.Number
	}
	if a.Number <= p.newest-history {
		return
	}
	p.expect(&a)
	f := p.frames[a.Number]
	if f == nil {
		f = &frame{capture: a.Capture, first: a.First, firstDecoded: a.Decoded, lastDecoded: a.Decoded,
			tiles: make(map[int]parts)}
		p.frames[a.Number] = f
	}
	f.first = earliest(f.first, a.First)
	f.firstDecoded = earliest(f.firstDecoded, a.Decoded)
	if a.Decoded.After(f.lastDecoded) {
		f.lastDecoded = a.Decoded
	}
	if f.tiles[a.Tile] == nil {
		f.tiles[a.Tile] = make(parts)
	}
	if !p.descriptions {
		clear(f.tiles[a.Tile])
	}
	f.tiles[a.Tile][a.Quality] = a.Cloud
	if p.playing && a.Number <= p.shown {
		p.keep(a.Number, f)
	}
}

// expect records that frames of the tile are being received.
func (p *Player) expect(a *Arrival) {
	t := p.tiles[a.Tile]
	switch {
	case t == nil:
		p.tiles[a.Tile] = &tile{on: true, since: a.Number, number: -1}
	case !t.on && a.Capture.After(t.off):
		t.on, t.since = true, a.Number
	case t.on:
		t.since = min(t.since, a.Number)
	}
}

// keep makes the tiles of the frame the shown ones, except tiles that already show a newer frame.
func (p *Player) keep(number int64, f *frame) {
	for i, parts := range f.tiles {
		if t := p.tiles[i]; number >= t.number {
			t.number, t.parts = number, parts
		}
	}
}

// due returns the time at which a frame is to be shown.
func (p *Player) due(f *frame, delay time.Duration) time.Time {
	return earliest(f.capture.Add(delay), f.firstDecoded.Add(p.deadline))
}

// Next returns the time at which Step has a frame to show if nothing else arrives. Next returns false if no frame is
// waiting.
func (p *Player) Next(delay time.Duration) (next time.Time, ok bool) {
	for number, f := range p.frames {
		if p.playing && number <= p.shown {
			continue
		}
		if due := p.due(f, delay); !ok || due.Before(next) {
			next, ok = due, true
		}
	}
	return next, ok
}

// Step shows the newest frame that is due and was not shown. Frame numbers between the previous frame and this one are
// skipped.
func (p *Player) Step(now time.Time, delay time.Duration) (Shown, bool) {
	number, found := int64(0), false
	for n, f := range p.frames {
		if (!p.playing || n > p.shown) && (!found || n > number) && !p.due(f, delay).After(now) {
			number, found = n, true
		}
	}
	if !found {
		return Shown{}, false
	}
	clear(p.held)
	from := number
	if p.playing && number-p.shown <= maxStretch {
		from = p.shown + 1
	}
	for n := from; n <= number; n++ {
		p.hold(n)
	}
	p.playing, p.shown = true, number
	f := p.frames[number]
	return Shown{Number: number, Capture: f.capture, Decoded: f.lastDecoded, Clouds: p.clouds(), Held: p.held}, true
}

// hold advances to a frame number: the frame's tiles become the shown ones; the other tiles are kept and counted as
// held.
func (p *Player) hold(number int64) {
	f := p.frames[number]
	if f != nil {
		p.keep(number, f)
	}
	for i, t := range p.tiles {
		missing := f == nil || f.tiles[i] == nil
		if t.on && missing && number > t.since {
			p.held[i]++
		}
	}
}

// clouds returns the shown clouds, ordered by tile and quality, without the tiles that are switched off.
func (p *Player) clouds() []*pointcloud.Cloud {
	var list []*pointcloud.Cloud
	for _, i := range slices.Sorted(maps.Keys(p.tiles)) {
		t := p.tiles[i]
		if !t.on && t.number < p.shown {
			continue
		}
		for _, q := range slices.Sorted(maps.Keys(t.parts)) {
			if cloud := t.parts[q]; cloud != nil {
				list = append(list, cloud)
			}
		}
	}
	return list
}

// observe reports the lateness of frames to delay: of a frame with all tiles that are on, or of a frame outside the
// history.
func (p *Player) observe(name string, delay *Delay) {
	for number, f := range p.frames {
		if old := number <= p.newest-history; !f.observed && (old || p.complete(number, f)) {
			f.observed = true
			delay.observe(name, f.first.Sub(f.capture), f.lastDecoded.Sub(f.capture))
		} else if old && p.playing && number <= p.shown {
			delete(p.frames, number)
		}
	}
}

// complete reports whether every tile that is on has arrived. The number of descriptions of a tile is unknown, so that
// frames in volumetric.ModeDescriptions are never complete.
func (p *Player) complete(number int64, f *frame) bool {
	if p.descriptions {
		return false
	}
	for i, t := range p.tiles {
		if t.on && number >= t.since && f.tiles[i] == nil {
			return false
		}
	}
	return true
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
