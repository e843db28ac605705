package feedback

import "time"

// FramePacket is what a packet of payload v1 says about its place in a frame.
type FramePacket struct {
	// Sequence is the packet's extended sequence number.
	Sequence int64
	// Frame is the number of its frame, which wraps around.
	Frame uint32
	// Index is its own number within the frame. Source and Packets are the numbers of source packets and of all packets, parity included, that the
	// frame was published with.
	Index, Source, Packets int
	// Marker says that no more packets of the frame were sent on this stream.
	Marker bool
}

// start is the sequence number of the frame's first packet.
func (p *FramePacket) start() int64 { return p.Sequence - int64(p.Index) }

// FrameRepair tells the NACKGenerator of a stream of payload v1 what the frames need. The zero value is ready.
//
// A server forwards a part of a frame's parity only, so a packet tells how many packets its frame has at least, the source packets, and not how many were
// sent. That shows by the marker, or by where the next frame begins. No parity is expected before.
//
// Where the frames of a stream come with parity, nothing is asked for before the frame's last packet was there, or should have been: most losses are made up
// for by then. If the frame is not complete, all that is missing of it is asked for, parity too, since any packet may be the one that completes it: there is
// often time for one request only. Once a frame is complete, what is missing of it is spared.
type FrameRepair struct {
	frames [repairFrames]frameState
	count  int // of all frames ever; the newest is at count-1
	// parity says that parity was sent of the last frame whose end is known.
	parity bool
}

// repairFrames is how many frames are remembered, a power of two: 23 are under way at 90 frames per second and a deadline of 250 ms.
const repairFrames = 32

// frameState is what is known of a frame.
type frameState struct {
	number uint32
	// start is the number of its first packet, source that of its last source packet.
	start, source int64
	// last is the last number that is known to belong to it; ended says that there are no others.
	last  int64
	ended bool
	// done says that the frame is complete.
	done bool
}

func (r *FrameRepair) back(i int) *frameState { return &r.frames[(r.count-1-i)&(repairFrames-1)] }

// find returns the state of the packet's frame, nil where it is not known.
func (r *FrameRepair) find(p *FramePacket) *frameState {
	for i := range min(r.count, repairFrames) {
		if f := r.back(i); f.start == p.start() && f.number == p.Frame {
			return f
		}
	}
	return nil
}

// Received takes a packet that g was told of just before.
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

// follow takes note of a newer frame that begins with the packet. If the frames follow each other, the one before ends where this one begins.
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

// Complete tells that the frame of the packet is complete.
func (r *FrameRepair) Complete(g *NACKGenerator, p FramePacket) {
	if f := r.find(&p); f != nil {
		f.done = true
		g.Spare(f.start, f.last)
	}
}
