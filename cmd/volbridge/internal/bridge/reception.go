package bridge

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// maxStreams is the largest number of tiles and audio streams in one session: the largest number of clients, with four
// tiles each.
const maxStreams = 4 * maxClients

// Reception reassembles the packets that a server sends in VR2Gather's dialect. The server forwards the publishers'
// packets unchanged. A Reception belongs to one session, because clients, tiles and numbers may change in the next
// session.
type Reception struct {
	tally   *Tally
	frames  *Assembly
	streams map[outletStream]*receivedStream
}

// receivedStream is one tile or audio stream. The frames are numbered here in the order of their completion.
type receivedStream struct {
	index   int
	quality uint32
	next    uint32
}

// NewReception returns a reception without streams.
func NewReception(tally *Tally) *Reception {
	return &Reception{tally: tally, frames: NewAssembly(maxStreams, tally),
		streams: make(map[outletStream]*receivedStream)}
}

// Push adds the payload of a packet. Push returns the frame that the packet completes, or nil. Publishers number the
// frames of each quality separately, and not every server renumbers them. Therefore the numbers of a stream may restart
// when its quality changes.
func (r *Reception) Push(kind volumetric.Kind, payload []byte, now time.Time) *Received {
	p, err := vr2gather.ParsePacket(kind, payload)
	if err != nil {
		r.tally.Add(DropReceived)
		return nil
	}
	s := r.stream(&p)
	if s == nil {
		r.tally.Add(DropReceived)
		return nil
	}
	if p.Quality != s.quality && p.First() {
		if r.frames.Late(s.index, p.Frame) {
			r.frames.Restart(s.index)
		}
		s.quality = p.Quality
	}
	r.frames.Expire(now)
	data := r.frames.Push(s.index, &p, now)
	if data == nil {
		return nil
	}
	number := s.next
	s.next++
	return &Received{Kind: kind, Client: p.Client, Tile: int(p.Tile), Quality: volumetric.Quality(p.Quality),
		Number: number, Data: data, Arrival: now}
}

// stream returns the stream of a packet. stream returns nil if the tile or quality is out of range or there are too
// many streams.
func (r *Reception) stream(p *vr2gather.Packet) *receivedStream {
	if p.Tile >= volumetric.MaxTiles || p.Quality >= volumetric.MaxQualities {
		return nil
	}
	key := outletStream{p.Kind, p.Client, int(p.Tile)}
	s := r.streams[key]
	if s == nil && len(r.streams) < maxStreams {
		s = &receivedStream{index: len(r.streams), quality: p.Quality}
		r.streams[key] = s
	}
	return s
}
