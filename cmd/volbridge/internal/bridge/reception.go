package bridge

import (
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// maxStreams is how many tiles and sounds of others one session brings at most: as many clients as have a number at a
// time, of four tiles each.
const maxStreams = 4 * maxClients

// Reception puts together what a server sends by VR2Gather's dialect, whose packets are those that publishers made. It
// belongs to one session: clients, tiles and numbers may be others in the next.
type Reception struct {
	tally   *Tally
	frames  *Assembly
	streams map[outletStream]*receivedStream
}

// receivedStream is one tile or sound. Its frames are numbered here in the order in which they were complete.
type receivedStream struct {
	index   int
	quality uint32
	next    uint32
}

// NewReception has received nothing yet.
func NewReception(tally *Tally) *Reception {
	return &Reception{tally: tally, frames: NewAssembly(maxStreams, tally),
		streams: make(map[outletStream]*receivedStream)}
}

// Push takes the payload of a packet, and returns the frame that it completes, or nil. Publishers number the frames of
// each quality for themselves, and not every server makes one count of them: where a stream goes on in another quality,
// its numbers may begin anew.
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
			r.frames.Anew(s.index)
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

// stream is the packet's, nil where its tile or quality is none, or there are too many.
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
