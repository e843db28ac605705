package trunk

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// maxStreams bounds the streams of one trunk in one direction. An srtp.Opener has room for 16,384 SSRCs, two for
	// each stream.
	maxStreams = 8000
	// maxTakes bounds the publications that a node takes.
	maxTakes = 4096
	// restTime is the time after which a stream may carry another track: late packets and repairs of the former track
	// have arrived, and the slot has left it (egress.Config.LateWindow is 500 ms).
	restTime = 2 * time.Second
	// retryInterval is the interval at which tracks that found no stream are tried again while streams are free.
	retryInterval = 100 * time.Millisecond
)

// origin is the state of the tracks that another node takes from this node.
type origin struct {
	publications map[publication]*offered
	takes        map[publication]*taken
	// free are the streams that carry no track, in the order in which they became free.
	free []*line
	all  []*line
	// lanes is the number of lanes in use.
	lanes int
	// ssrc is the last assigned SSRC.
	ssrc uint32
	// changed are the publications whose streams may have to change.
	changed map[publication]struct{}
	// traced are the publications whose hops the other node wants.
	traced map[publication]struct{}
	// starved are the publications with tracks for which there was no stream.
	starved map[publication]struct{}
	retried time.Time
}

// offered is a publication of this node.
type offered struct {
	qualities int
	// audio has an entry for each track: whether the track is audio.
	audio []bool
}

// line is a stream with its state.
type line struct {
	stream
	audio bool
	// offer is the number of the first offer with the present track. selected is set once the stream carries the track.
	offer    uint64
	selected bool
	freed    time.Time
}

// taken is a publication that the other node takes.
type taken struct {
	tiles  []allocate.QualitySet
	near   []bool
	parity float64
	// masked are the tracks that the trunk does not carry, taken or not. excess counts the decisions in a row at which
	// a track that is not masked did not fit.
	masked map[int]bool
	excess map[int]int
	// streams are the streams by track.
	streams map[int]*line
	// offer is the number of the last offer, bound the number of the last confirmed one. repeat is set if the other
	// node does not know the last offer.
	offer, bound uint64
	repeat       bool
	// held is set while a parent is to send the tracks.
	held bool
}

// action is a consequence of a step. Open precedes the first use of a stream. Track is -1 if the stream is to carry
// nothing.
type action struct {
	open        bool
	line        *line
	publication publication
	track       int
	parity      float64
	// offer is a message to send instead.
	offer *offer
}

func newOrigin(ssrc uint32) *origin {
	return &origin{
		publications: map[publication]*offered{}, takes: map[publication]*taken{}, ssrc: ssrc, lanes: 1,
		changed: map[publication]struct{}{}, starved: map[publication]struct{}{}, traced: map[publication]struct{}{},
	}
}

// publish adds a publication of this node.
func (o *origin) publish(p publication, pub *offered) {
	o.publications[p] = pub
	o.changed[p] = struct{}{}
}

// withdraw removes a publication of this node. Its demand ends: no other publication has the ID.
func (o *origin) withdraw(p publication) {
	delete(o.publications, p)
	if t := o.takes[p]; t != nil {
		t.tiles = nil
	}
	o.changed[p] = struct{}{}
}

// take sets the demand of the other node. It reports false if the node takes too many publications.
func (o *origin) take(m *take) bool {
	t := o.takes[m.publication]
	if t == nil {
		if len(o.takes) >= maxTakes {
			return false
		}
		t = &taken{masked: map[int]bool{}, excess: map[int]int{}, streams: map[int]*line{}}
		o.takes[m.publication] = t
	}
	t.tiles, t.near, t.parity = sets(m.Tiles), m.Near, m.Parity
	delete(o.traced, m.publication)
	if m.Trace {
		o.traced[m.publication] = struct{}{}
	}
	// The other node has lost an offer if it knows none.
	t.repeat = t.repeat || m.Fresh && t.offer > 0
	o.changed[m.publication] = struct{}{}
	return true
}

// confirm records that the other node has bound the streams of an offer.
func (o *origin) confirm(m *bound) {
	if t := o.takes[m.publication]; t != nil && m.Offer > t.bound && m.Offer <= t.offer {
		t.bound = m.Offer
		o.changed[m.publication] = struct{}{}
	}
}

// wants reports whether this node has to send a track.
func (t *taken) wants(track, qualities int) bool {
	tile := track / qualities
	return !t.held && tile < len(t.tiles) && t.tiles[tile].Has(volumetric.Quality(track%qualities))
}

// candidates iterates over the tracks that this node has to send and those that are masked.
func (t *taken) candidates(qualities, tracks int) iter.Seq[int] {
	return func(yield func(track int) bool) {
		if !t.held {
			for tile, set := range t.tiles {
				for q := range set.Each {
					if track := tile*qualities + int(q); int(q) < qualities && track < tracks && !yield(track) {
						return
					}
				}
			}
		}
		for track := range t.masked {
			if track < tracks && !t.wants(track, qualities) && !yield(track) {
				return
			}
		}
	}
}

// step returns what follows from the changes of one publication, and whether others have changed as well.
func (o *origin) step(now time.Time) (actions []action, more bool) {
	if len(o.starved) > 0 && len(o.free) > 0 && now.Sub(o.free[0].freed) >= restTime &&
		now.Sub(o.retried) >= retryInterval {
		o.retried = now
		maps.Copy(o.changed, o.starved)
		clear(o.starved)
	}
	for p := range o.changed {
		delete(o.changed, p)
		if t := o.takes[p]; t != nil {
			return o.settle(nil, p, t, now), len(o.changed) > 0
		}
	}
	return nil, false
}

// settle adapts the streams of a publication to its demand.
func (o *origin) settle(actions []action, p publication, t *taken, now time.Time) []action {
	pub := o.publications[p]
	changed := t.repeat
	t.repeat = false
	for track, l := range t.streams {
		if pub != nil && track < len(pub.audio) && t.wants(track, pub.qualities) && !t.masked[track] {
			continue
		}
		delete(t.streams, track)
		delete(t.excess, track)
		actions = append(actions, action{line: l, track: -1})
		l.freed, l.selected = now, false
		o.free = append(o.free, l)
		changed = true
	}
	if pub != nil {
		for track, audio := range pub.audio {
			if t.streams[track] != nil || !t.wants(track, pub.qualities) || t.masked[track] {
				continue
			}
			l, open := o.assign(audio, now)
			if l == nil {
				o.starved[p] = struct{}{}
				continue
			}
			if open {
				actions = append(actions, action{open: true, line: l})
			}
			l.Track, l.offer = track, t.offer+1
			t.streams[track] = l
			changed = true
		}
	}
	if changed {
		t.offer++
		m := &offer{publication: p, Offer: t.offer, Streams: make([]stream, 0, len(t.streams))}
		for _, l := range t.streams {
			m.Streams = append(m.Streams, l.stream)
		}
		slices.SortFunc(m.Streams, func(a, b stream) int { return a.Track - b.Track })
		actions = append(actions, action{offer: m})
	}
	for track, l := range t.streams {
		if !l.selected && l.offer <= t.bound {
			l.selected = true
			actions = append(actions, action{line: l, publication: p, track: track, parity: t.parity})
		}
	}
	if pub == nil && empty(t.tiles) {
		delete(o.takes, p)
		delete(o.traced, p)
	}
	return actions
}

// assign returns a stream that carries no track, and reports whether it is new. The result is nil if there are too
// many.
func (o *origin) assign(audio bool, now time.Time) (l *line, open bool) {
	for i, l := range o.free {
		if now.Sub(l.freed) < restTime {
			break
		}
		if l.audio == audio {
			o.free = slices.Delete(o.free, i, i+1)
			return l, false
		}
	}
	if len(o.all) == maxStreams {
		return nil, false
	}
	l = &line{audio: audio}
	l.Lane = len(o.all) % o.lanes
	o.ssrc += 2
	if o.ssrc < 2 {
		o.ssrc += 2
	}
	l.SSRC = o.ssrc
	if !audio {
		l.Retransmission = o.ssrc + 1
	}
	o.all = append(o.all, l)
	return l, true
}

// fits applies a decision whether the trunk carries a track, and reports whether that masks or releases the track.
func (o *origin) fits(p publication, track int, fits bool) bool {
	t := o.takes[p]
	if t == nil {
		return false
	}
	if fits || t.masked[track] {
		delete(t.excess, track)
		return o.mask(p, track, !fits)
	}
	t.excess[track]++
	return t.excess[track] >= maskAfter && o.mask(p, track, true)
}

// allFit records a decision that the trunk carries all tracks, none of which is masked.
func (o *origin) allFit() {
	for _, t := range o.takes {
		clear(t.excess)
	}
}

// mask sets whether the trunk does not carry a track. mask reports whether that is a change.
func (o *origin) mask(p publication, track int, masked bool) bool {
	t := o.takes[p]
	if t == nil || t.masked[track] == masked {
		return false
	}
	if masked {
		t.masked[track] = true
	} else {
		delete(t.masked, track)
	}
	o.changed[p] = struct{}{}
	return true
}

// reselect makes the slots of a publication select its tracks again, which have been replaced by others.
func (o *origin) reselect(p publication) {
	if t := o.takes[p]; t != nil {
		for _, l := range t.streams {
			l.selected = false
		}
		o.changed[p] = struct{}{}
	}
}

// maskedTiles returns the tracks of a publication that the trunk does not carry.
func (o *origin) maskedTiles(p publication) []allocate.QualitySet {
	pub, t := o.publications[p], o.takes[p]
	if pub == nil || t == nil {
		return nil
	}
	tiles := make([]allocate.QualitySet, (len(pub.audio)+pub.qualities-1)/pub.qualities)
	for track := range t.masked {
		if tile := track / pub.qualities; tile < len(tiles) {
			tiles[tile] |= allocate.Qualities(volumetric.Quality(track % pub.qualities))
		}
	}
	return tiles
}
