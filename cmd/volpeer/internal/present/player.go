package present

import (
	"maps"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Arrival is one decoded tile, in volumetric.ModeDescriptions one description of it.
type Arrival struct {
	Tile    int
	Quality volumetric.Quality
	Number  int64
	// Capture is when it was captured, First when its first packet came, Decoded when it was ready.
	Capture, First, Decoded time.Time
	// Cloud is nil where clouds are not kept.
	Cloud *pointcloud.Cloud
}

// Shown is what a publication shows from now on.
type Shown struct {
	Number  int64
	Capture time.Time
	// Decoded is when the last of the frame's tiles that have come was ready.
	Decoded time.Time
	// Clouds are of all tiles and descriptions, of this frame and, where it has none, of an earlier one.
	Clouds []*pointcloud.Cloud
	// Held is, for each tile that was missing, in how many of the frame numbers since the frame shown before. It is
	// valid until the next step.
	Held map[int]int
}

// Player shows one publication.
type Player struct {
	descriptions bool
	deadline     time.Duration
	tiles        map[int]*tile
	// frames are those that still come or wait to be shown, by number.
	frames map[int64]*frame
	newest int64
	shown  int64
	// playing says that a frame was shown.
	playing bool
	held    map[int]int
}

// tile is what is shown of a tile.
type tile struct {
	// on says that frames of it are expected, from number since on; off is when the server stopped sending it.
	on    bool
	since int64
	off   time.Time
	// number and parts are what is shown.
	number int64
	parts  parts
}

// parts are the clouds of one tile in one frame, by quality; in volumetric.ModeAlternatives there is one.
type parts map[volumetric.Quality]*pointcloud.Cloud

// frame is what has come of one frame number.
type frame struct {
	capture time.Time
	// first is when the first of its packets came, decoded when the first and last of its tiles were ready.
	first, firstDecoded, lastDecoded time.Time
	tiles                            map[int]parts
	observed                         bool
}

const (
	// history is how many frame numbers back late tiles are still noticed: what is repaired for 250 ms comes within 30
	// numbers at 120 per second.
	history = 32
	// maxStretch is the largest jump of frame numbers that is taken for missing frames, ten seconds at 100 per second.
	maxStretch = 1000
	// anewAfter is how much later a lower number must be captured to belong to a new beginning. Where captures are
	// unknown, arrivals stand for them, which repairs put out of order by less.
	anewAfter = 250 * time.Millisecond
)

// NewPlayer makes the player of a publication. Nothing waits for longer than the deadline once it is decoded, whatever
// its capture time says.
func NewPlayer(mode volumetric.Mode, deadline time.Duration) *Player {
	p := &Player{descriptions: mode == volumetric.ModeDescriptions, deadline: deadline, held: make(map[int]int)}
	p.restart()
	return p
}

func (p *Player) restart() {
	p.tiles, p.frames = make(map[int]*tile), make(map[int64]*frame)
	p.playing = false
}

// Off tells that the server stopped sending a tile. The tile is on again with the first frame captured afterwards. Its
// first frame may still be on its way.
func (p *Player) Off(number int, now time.Time) {
	t := p.tiles[number]
	if t == nil {
		t = &tile{number: -1}
		p.tiles[number] = t
	}
	t.on, t.off = false, now
}

// Passed tells whether a newer frame of the tile is shown already, so that decoding this one would be in vain.
func (p *Player) Passed(number int, frame int64, capture time.Time) bool {
	t := p.tiles[number]
	return p.playing && t != nil && t.number > frame && !p.begunAnew(frame, capture)
}

// begunAnew tells whether a lower number is later all the same, since the publication was ended and begun again.
func (p *Player) begunAnew(number int64, capture time.Time) bool {
	newest := p.frames[p.newest]
	return newest != nil && number < p.newest && capture.Sub(newest.capture) > anewAfter
}

// Decoded takes a decoded tile.
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

// expect notes that frames of the tile come.
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

// keep makes the frame's tiles those that are shown, unless newer ones are.
func (p *Player) keep(number int64, f *frame) {
	for i, parts := range f.tiles {
		if t := p.tiles[i]; number >= t.number {
			t.number, t.parts = number, parts
		}
	}
}

// due is when a frame is to be shown.
func (p *Player) due(f *frame, delay time.Duration) time.Time {
	return earliest(f.capture.Add(delay), f.firstDecoded.Add(p.deadline))
}

// Next is when Step has something to show, if nothing else comes; it tells false where nothing waits.
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

// Step shows the newest frame that is due and was not shown. Numbers between it and the one shown before are passed
// over.
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

// hold passes on to a frame number: tiles that it has are shown, the others are kept and counted.
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

// clouds are what is shown, by tile and quality. Tiles that are switched off are not.
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

// observe tells the delay how late frames were: once all tiles that are on have come, or when no more are waited for.
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

// complete tells whether every tile that is on has come. How many descriptions of a tile come cannot be known.
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
