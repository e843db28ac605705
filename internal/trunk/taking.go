package trunk

import (
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// graceTime is the time for which packets of a track may still arrive after its demand has ended: a round trip and
	// the time until the origin reads the message.
	graceTime = 2 * time.Second
	// MaxUntaken is the number of packets of tracks that were not taken after which a trunk is closed.
	MaxUntaken = 1000
)

// taking is the state of the tracks that this node takes from another node.
type taking struct {
	mirrors map[publication]*taker
	// permitted are the SSRCs whose packets may arrive, with the time until which they may, 0 without a limit, in
	// nanoseconds since 1970. SSRCs of retransmissions always may: probes repeat packets of streams at rest. permitted
	// is replaced, never changed.
	permitted map[uint32]int64
	// stale is set while permitted does not follow the state.
	stale bool
}

// taker is a publication of the other node.
type taker struct {
	qualities, tracks int
	tiles             []allocate.QualitySet
	streams           map[int]stream
}

// binding is a stream to bind to a track, or to unbind.
type binding struct {
	stream
	unbind bool
}

func newTaking() *taking {
	return &taking{mirrors: map[publication]*taker{}, permitted: map[uint32]int64{}}
}

// mirror adds a publication of the other node.
func (t *taking) mirror(p publication, qualities, tracks int) {
	t.mirrors[p] = &taker{qualities: qualities, tracks: tracks, streams: map[int]stream{}}
}

// remove removes a publication of the other node.
func (t *taking) remove(p publication) {
	delete(t.mirrors, p)
	t.stale = true
}

// demand sets the demand for a publication.
func (t *taking) demand(p publication, tiles []allocate.QualitySet) {
	if k := t.mirrors[p]; k != nil {
		k.tiles, t.stale = tiles, true
	}
}

// offered returns the changes of bindings that an offer requires. known is false for a publication that is not
// mirrored.
func (t *taking) offered(m *offer) (changes []binding, known bool) {
	k := t.mirrors[m.publication]
	if k == nil {
		return nil, false
	}
	streams := make(map[int]stream, len(m.Streams))
	for _, s := range m.Streams {
		if s.Track < k.tracks {
			streams[s.Track] = s
		}
	}
	for track, s := range k.streams {
		if streams[track] != s {
			changes = append(changes, binding{s, true})
		}
	}
	for track, s := range streams {
		if k.streams[track] != s {
			changes = append(changes, binding{s, false})
		}
	}
	k.streams, t.stale = streams, true
	return changes, true
}

// permit returns the SSRCs that may arrive: those of taken tracks, and of others until their grace time has passed. It
// reports whether they have changed since the last call.
func (t *taking) permit(now time.Time) (permitted map[uint32]int64, changed bool) {
	if !t.stale {
		return t.permitted, false
	}
	t.stale = false
	next := make(map[uint32]int64, len(t.permitted))
	for ssrc, until := range t.permitted {
		if until == 0 {
			until = now.Add(graceTime).UnixNano()
		}
		if until > now.UnixNano() {
			next[ssrc] = until
		}
	}
	for _, k := range t.mirrors {
		for track, s := range k.streams {
			if tile := track / k.qualities; tile < len(k.tiles) &&
				k.tiles[tile].Has(volumetric.Quality(track%k.qualities)) {
				next[s.SSRC] = 0
			}
			if s.Retransmission != 0 && len(next) < 4*maxStreams {
				next[s.Retransmission] = math.MaxInt64
			}
		}
	}
	t.permitted = next
	return next, true
}
