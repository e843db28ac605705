package egress

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/internal/forward/track"
)

// FrameTimes are the time stamps of one frame of payload v1 on its way through the server to one slot.
type FrameTimes = trace.Times[*Slot, *track.Track]

// TraceFrames sets whether the times of the receiver's frames are wanted.
func (r *Receiver) TraceFrames(wanted bool) { r.frames.Want(wanted) }

// FrameTimesReady is signalled when times of frames are available to TakeFrameTimes.
func (r *Receiver) FrameTimesReady() <-chan struct{} { return r.frames.Ready() }

// TakeFrameTimes appends the times of the frames since the last call to buf.
func (r *Receiver) TakeFrameTimes(buf []FrameTimes) []FrameTimes {
	return r.frames.Take(buf, r.writer.set.clock)
}

// PacketSent adds the requested send stamps of a packet. hardware is the zero time if the network card does not report
// its time.
func (r *Receiver) PacketSent(ssrc uint32, sequence uint16, kernel, hardware time.Time) {
	clock := r.writer.set.clock
	now := clock.Now()
	r.frames.Sent(ssrc, sequence, clock.Stamp(kernel, now), clock.Stamp(hardware, now))
}

// traced reports whether the receiver's frames are traced.
func (r *Receiver) traced() bool { return r.writer.set.cfg.FrameTimes || r.frames.Wanted() }

// trace records a packet at the edge of a frame that was queued on a slot.
func (a *attachment) trace(p *packetlog.Packet, sequence uint16, marker bool) {
	w := a.writer
	s := a.slot
	s.frames.Note(&s.receiver.frames, &w.stats.frames, &trace.Passage[*Slot, *track.Track]{
		Slot: s, Track: a.follower.track, Packet: p, SSRC: s.header.SSRC, Sequence: sequence, Marker: marker, At: w.at,
	})
}

// handTimes ends the final frames of the receiver, and hands over their times when it is time.
func (r *Receiver) handTimes() {
	w := r.writer
	if !r.traced() && !r.frames.Waits() {
		return
	}
	for _, s := range r.slots.all() {
		s.frames.Sweep(&r.frames, &w.stats.frames, w.at)
	}
	r.frames.Hand(&w.stats.frames, w.at)
}
