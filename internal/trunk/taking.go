package trunk

import (
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// graceTime is the time for which packets of a track may still arrive after its demand has ended, and after an
	// offer of a track that is not wanted any longer: a round trip and the time until the origin reads the message.
	graceTime = 2 * time.Second
	// whileTaken permits packets until the demand ends, always for the life of the trunk.
	whileTaken time.Duration = math.MaxInt64 - 1
	always     time.Duration = math.MaxInt64
)

// taking is the state of the tracks that this node takes from another node.
type taking struct {
	began   time.Time
	mirrors map[publication]*taker
	// permitted are the SSRCs whose packets may arrive, with the time since began until which they may. SSRCs of
	// retransmissions always may: probes repeat packets of streams at rest. permitted is replaced, never changed.
	permitted map[uint32]time.Duration
	// announced are the SSRCs of offers since the last permit.
	announced []uint32
	// stale is set while permitted does not follow the state.
	stale bool
}

// taker is a publication of the other node.
type taker struct {
	qualities, tracks int
	tiles             []allocate.QualitySet
	streams           map[int]stream
	// demanded is set once there was a demand.
	demanded bool
	// partial has the parts of an offer that is not complete. offered is set once an offer is complete.
	partial *offer
	offered bool
}

// binding is a stream to bind to a track, or to unbind.
type binding struct {
	stream
	unbind bool
}

func newTaking(now time.Time) *taking {
	return &taking{began: now, mirrors: map[publication]*taker{}, permitted: map[uint32]time.Duration{}}
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
		k.tiles, k.demanded, t.stale = tiles, true, true
	}
}

// demanded reports whether there was a demand for a publication.
func (t *taking) demanded(p publication) bool {
	k := t.mirrors[p]
	return k != nil && k.demanded
}

// fresh reports whether this node has no offer for a publication that it mirrors.
func (t *taking) fresh(p publication) bool {
	k := t.mirrors[p]
	return k != nil && !k.offered
}

// streams returns the streams of a publication by track.
func (t *taking) streams(p publication) map[int]stream {
	if k := t.mirrors[p]; k != nil {
		return k.streams
	}
	return nil
}

// collect adds a part of an offer. The result is the offer when it is complete, and nil before or if the publication is
// not mirrored.
func (t *taking) collect(m *offer) (whole *offer, err error) {
	k := t.mirrors[m.publication]
	if k == nil {
		return nil, nil
	}
	if k.partial == nil || k.partial.Offer != m.Offer {
		k.partial = &offer{publication: m.publication, Offer: m.Offer}
	}
	if n := len(k.partial.Streams) + len(m.Streams); n > maxTracks {
		return nil, fmt.Errorf("%w: an offer of %d streams, the limit is %d", ErrMessage, n, maxTracks)
	}
	k.partial.Streams = append(k.partial.Streams, m.Streams...)
	if m.More {
		return nil, nil
	}
	whole, k.partial = k.partial, nil
	return whole, nil
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
			t.announced = append(t.announced, s.SSRC)
		}
	}
	k.streams, k.offered, t.stale = streams, true, true
	return changes, true
}

// permit returns the SSRCs that may arrive: those of taken tracks, and of others until their grace time has passed.
// permit reports whether they have changed since the last call.
func (t *taking) permit(now time.Time) (permitted map[uint32]time.Duration, changed bool) {
	if !t.stale {
		return t.permitted, false
	}
	t.stale = false
	next := make(map[uint32]time.Duration, len(t.permitted))
	elapsed := now.Sub(t.began)
	for ssrc, until := range t.permitted {
		if until == whileTaken {
			until = elapsed + graceTime
		}
		if until > elapsed {
			next[ssrc] = until
		}
	}
	for _, ssrc := range t.announced {
		next[ssrc] = elapsed + graceTime
	}
	t.announced = nil
	for _, k := range t.mirrors {
		for track, s := range k.streams {
			if tile := track / k.qualities; tile < len(k.tiles) &&
				k.tiles[tile].Has(volumetric.Quality(track%k.qualities)) {
				next[s.SSRC] = whileTaken
			}
			if s.Retransmission != 0 && len(next) < 4*maxStreams {
				next[s.Retransmission] = always
			}
		}
	}
	t.permitted = next
	return next, true
}
