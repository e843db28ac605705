package feedback

import "time"

// FramePacket is the position of a packet of payload v1 in its frame.
type FramePacket struct {
	// Sequence is the packet's extended sequence number.
	Sequence int64
	// Frame is the number of the frame, which wraps around.
	Frame uint32
	// Index is the number of the packet within the frame. Source and Packets are the numbers of source packets and of
	// all packets, parity included, of the published frame.
	Index, Source, Packets int
	// Marker is set on the last packet of the frame on this stream.
	Marker bool
}

// start returns the sequence number of the frame's first packet.
func (p *FramePacket) start() int64 { return p.Sequence - int64(p.Index) }

// FrameRepair informs the NACKGenerator of a stream of payload v1 about the needs of frames. The zero value is ready
// for use.
//
// A server forwards only a part of a frame's parity. A packet therefore shows the minimum number of packets of its
// frame, the source packets, but not the number of packets sent. The end of a frame is known from the marker, or from
// the start of the next frame. Before that no parity is expected.
//
// If the frames of a stream have parity, nothing is requested before the frame's last packet has arrived, or should
// have arrived: parity repairs most losses by then. If the frame is not complete, all its missing packets are
// requested, parity too, because any packet may complete the frame: there is often time for one request only. When a
// frame is complete, its missing packets are spared.
type FrameRepair struct {
	frames [repairFrames]frameState
	count  int // of all frames so far; the newest is at count-1
	// parity is set if parity was sent for the last frame whose end is known.
	parity bool
}

// repairFrames is the number of remembered frames, a power of two: 23 are in transit at 90 frames per second and a
// deadline of 250 ms.
const repairFrames = 32

// frameState is the state of a frame.
type frameState struct {
	number uint32
	// start is the number of the first packet, source that of the last source packet.
	start, source int64
	// last is the highest number known to belong to the frame; ended is set if there are no others.
	last  int64
	ended bool
	// done is set if the frame is complete.
	done bool
}

func (r *FrameRepair) back(i int) *frameState { return &r.frames[(r.count-1-i)&(repairFrames-1)] }

// find returns the state of the packet's frame, or nil if it is unknown.
func (r *FrameRepair) find(p *FramePacket) *frameState {
	for i := range min(r.count, repairFrames) {
		if f := r.back(i); f.start == p.start() && f.number == p.Frame {
			return f
		}
	}
	return nil
}

// Received processes a packet directly after g has received it.
func (r *FrameRepair) Received(g *NACKGenerator, p FramePacket, now time.Time) {
	f := r.find(&p)
	if f == nil {
		if r.count > 0 && p.start() <= r.back(0).start {
			return
		}
		r.follow(g, &p)
		r.count++
		f = r.back(0)
		source := p.start() + int64(p.Source) - 1
		*f = frameState{number: p.Frame, start: p.start(), source: source, last: source}
	}
	f.last, f.ended = max(f.last, p.Sequence), f.ended || p.Marker
	if f == r.back(0) {
		g.Expect(f.source, now)
		if f.ended {
			r.parity = f.last > f.source
		}
		if !f.ended && p.Packets > p.Source && (r.parity || f.last > f.source) {
			g.Hold(f.start)
		} else {
			g.Release()
		}
	}
	if f.done {
		g.Spare(f.start, f.last)
	}
}

// follow processes the start of a newer frame. If the frames are consecutive, the previous one ends before this packet.
func (r *FrameRepair) follow(g *NACKGenerator, p *FramePacket) {
	if r.count == 0 {
		return
	}
	f := r.back(0)
	if p.Frame != f.number+1 || f.ended {
		return
	}
	f.last, f.ended = max(f.last, p.start()-1), true
	r.parity = f.last > f.source
	if f.done {
		g.Spare(f.start, f.last)
	}
}

// Complete records that the frame of the packet is complete.
func (r *FrameRepair) Complete(g *NACKGenerator, p FramePacket) {
	if f := r.find(&p); f != nil {
		f.done = true
		g.Spare(f.start, f.last)
	}
}
