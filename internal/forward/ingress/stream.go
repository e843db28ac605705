package ingress

import (
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/injection"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/switching"
)

// stream is a track that is or was bound to an SSRC, with the state of the reader that survives from one binding to the
// next. The mutex of the ingress with the current or the last binding guards the stream.
type stream struct {
	track *track.Track
	// ingress is nil while the track is unbound.
	ingress atomic.Pointer[Ingress]
	ssrc    uint32
	repair  uint32
	// origin is the Origin of the packets.
	origin uint32
	// arrived is the time of the last packet, zero before the first.
	arrived time.Time
	// lead is the number of packets before the first one that belong to its frame, 0 after the first packet.
	lead int64
	// stops is set if frames after the newest one arrive over another connection (Ingress.Succeed). kept are their
	// packets, until another connection takes the track over or the stream resumes, at the time resumes. That is zero
	// before the first of these packets since Succeed.
	stops   bool
	resumes time.Time
	kept    []keptPacket
	// numbers extends sequence numbers; base is added to the result.
	numbers   feedback.Unwrapper
	base      int64
	reception *feedback.Reception
	// missing decides which packets to request. It is nil for audio, because a repaired audio packet is too late and no
	// NACK is negotiated, and for VR2Gather's peers, which do not answer NACKs.
	missing *feedback.NACKGenerator
	// converter is nil except for tracks of VR2Gather's peers.
	converter *converter
	// injector feeds the stream with frames that arrive over a transport other than RTP. It is nil for RTP.
	injector *injection.Injector
	facts    classifier
	// schedule spreads the packets of frames, if paced is set.
	schedule pacing.Schedule
	paced    bool
	// clock maps timestamps to capture times.
	clock *feedback.CaptureClock
	// keyFrameAsked is the time of the last key frame request to the publisher.
	keyFrameAsked time.Time
}

// streamOf returns the stream of a track, nil before its first binding.
func streamOf(t *track.Track) *stream {
	s, _ := t.Source().(*stream)
	return s
}

// begin prepares the stream for its first binding.
func (s *stream) begin(i *Ingress) {
	t := s.track
	rate := t.Codec().ClockRate
	s.reception, s.clock = feedback.NewReception(rate), feedback.NewCaptureClock(rate)
	s.schedule = pacing.NewSchedule(i.set.cfg.Plan, rate)
	switch {
	case t.Converted():
		s.converter = newConverter(t, i.bindings.groups.captures(t.Group()))
	case !t.Audio():
		s.missing = feedback.NewNACKGenerator(i.nack)
		s.missing.Share(i.requester.noticed)
	}
	s.paced = !t.Audio() && !i.set.cfg.Plan.Off()
	s.facts = classifier{track: t, frames: i.bindings.groups.frameNumbers(t.Group()), clock: s.clock,
		maxBytes: i.set.cfg.MaxFrameBytes}
}

// Unbind implements track.Source.
func (s *stream) Unbind() {
	if i := s.ingress.Load(); i != nil {
		i.Unbind(s.track)
	}
}

// RequestKeyFrame implements track.Source.
func (s *stream) RequestKeyFrame() {
	if i := s.ingress.Load(); i != nil {
		i.waker.wake()
	}
}

// RTT implements track.Source.
func (s *stream) RTT() time.Duration {
	if i := s.ingress.Load(); i != nil {
		return i.peer.RTT()
	}
	return 0
}

// ParityShare implements track.Source.
func (s *stream) ParityShare() float64 {
	if i := s.ingress.Load(); i != nil {
		return i.uplink.protection.Share()
	}
	return 0
}

// establish returns the facts of a packet with an extended number. Packets of VR2Gather's peers are converted first.
func (s *stream) establish(p *rtp.Packet, sequence int64, now time.Time) (switching.Packet, packetlog.Class, error) {
	if s.converter != nil {
		body, err := s.converter.convert(&p.Header, p.Payload, now)
		if err != nil {
			return switching.Packet{}, packetlog.Media, err
		}
		p.Payload = body
	}
	return s.facts.classify(&p.Header, p.Payload, sequence)
}

// move prepares the stream for another SSRC or connection. Numbers continue in a later cycle for two reasons: they must
// exceed all numbers known to the cache and the slots, and by so much that slots do not take the distance for loss.
// Their low 16 bits must remain the publisher's sequence numbers.
func (s *stream) move(to *Ingress) {
	const cycle = 1 << 16
	s.base += s.numbers.Highest()&^(cycle-1) + cycle
	s.numbers = feedback.Unwrapper{}
	s.arrived, s.lead = time.Time{}, 0
	s.restart()
	s.facts.frames, s.facts.newest = to.bindings.groups.frameNumbers(s.track.Group()), 0
	if s.track.Converted() {
		s.converter = newConverter(s.track, to.bindings.groups.captures(s.track.Group()))
	}
	if s.missing != nil {
		s.missing.Share(to.requester.noticed)
	}
}

// end ends the injector of the stream, and drops the packets that are kept.
func (s *stream) end() {
	s.kept = nil
	if s.injector != nil {
		s.injector.End()
		s.injector = nil
	}
}

// restart resets the state that depends on former sequence numbers: the publisher has restarted at unrelated numbers.
func (s *stream) restart() {
	s.reception.Reset()
	s.clock.Reset()
	s.schedule.Reset()
	s.facts.restart()
	if s.converter != nil {
		s.converter.restart()
	}
	s.track.Losses().Forget()
	if s.missing != nil {
		s.missing.Forget()
	}
}

// due returns the time at which an arrived packet is to leave, since the engine's start.
func (s *stream) due(p *packetlog.Packet) time.Duration {
	arrived := time.Duration(p.Order)
	if !s.paced {
		return arrived
	}
	f := &p.Facts
	due := s.schedule.Due(pacing.Packet{
		Framed: f.Framed, Frame: f.Frame, Index: int(f.Sequence - f.FrameStart), Packets: f.FramePackets,
		Timestamp: f.Timestamp,
	}, arrived)
	if f.Opens {
		s.track.SetInterval(s.schedule.Interval())
	}
	return due
}

// reported processes a sender report of the publisher.
func (s *stream) reported(report *rtcp.SenderReport, now time.Time) {
	s.reception.SenderReport(report.NTPTime, now)
	s.clock.SenderReport(report)
	if timestamp, capture, known := s.clock.Mapping(); known {
		s.track.Map(track.Mapping{Timestamp: timestamp, Capture: capture, Arrived: now})
	}
}

// keyFrameDue reports whether to request a key frame now. Otherwise it returns the time of the next request, zero if no
// request is pending.
func (s *stream) keyFrameDue(now time.Time, interval time.Duration) (ask bool, at time.Time) {
	if !s.track.KeyFrameWanted() {
		return false, time.Time{}
	}
	if at = s.keyFrameAsked.Add(interval); !s.keyFrameAsked.IsZero() && now.Before(at) {
		return false, at
	}
	s.keyFrameAsked = now
	s.track.KeyFrameAsked()
	return true, time.Time{}
}
