package ingress

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/fault"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/turn"
	"github.com/volsfu/volsfu/internal/transport"
)

// Ingress is the receiving side of one publisher's peer connection. The goroutine that reads the connection calls RTP
// for each packet of a batch and Flush after the last. The ingress's own goroutine requests lost packets from the
// publisher, once for all receivers, and sends reports.
type Ingress struct {
	set  *Set
	peer Peer
	// ssrc is the server's SSRC in RTCP to the publisher.
	ssrc  uint32
	stats counters.Shard
	// nack configures the requests for packets of streams that are bound for the first time.
	nack    feedback.NACKConfig
	waker   waker
	stopped chan struct{}

	mu     sync.Mutex
	closed bool
	// changing is set while the state below is being changed. If a change panics, changing stays set, and the ingress
	// no longer does anything.
	changing bool
	bindings bindings
	// takeovers are the streams that wait for their first packet.
	takeovers takeovers
	// early has the packets that arrived before the first tracks were bound.
	early early
	// names is nil unless tracks are bound by the names in packets.
	names  *names
	packet rtp.Packet
	// original is the buffer for the original packet of a retransmission, nil before the first one: most connections
	// only receive.
	original []byte
	// order is the Order of the last packet.
	order     int64
	signals   signals
	requester requester
	// chunks bounds the memory of chunked frames during reassembly.
	chunks *packetlog.Allotment
	uplink uplink
	// arrivals is the state of the reports of arrivals to the publisher.
	arrivals arrivals
	paths    paths
	// codepoints counts the packets of all streams.
	codepoints codepointWindows
	// reportDue is the time of the next receiver report, zero without streams and injectors.
	reportDue time.Time
}

// maxOriginal is the maximum size of the original packet of a retransmission: the largest payload and a header of 512
// bytes.
const maxOriginal = packetlog.MaxPayload + 512

// RequestOncePerTrip makes the ingress of another server request a lost packet once per round trip. It must be called
// before Bind.
func (i *Ingress) RequestOncePerTrip() { i.nack.OncePerTrip = true }

// Close unbinds all tracks and ends the goroutine. Close does not wait for a packet that is being sent to the peer.
func (i *Ingress) Close() {
	if i.unbindAll() {
		close(i.stopped)
		i.set.retire(i)
	}
}

// unbindAll unbinds all tracks permanently. unbindAll returns false if the tracks were unbound before.
func (i *Ingress) unbindAll() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return false
	}
	i.closed = true
	i.signals.wake()
	i.bindings.clear()
	i.takeovers.waiting.clear()
	i.early = early{}
	return true
}

// begin begins a change of the ingress's state, unless an earlier change has panicked. The caller holds the mutex until
// the end of the change.
func (i *Ingress) begin() bool {
	if i.changing {
		return false
	}
	i.changing = true
	return true
}

// end ends a change of the ingress's state.
func (i *Ingress) end() { i.changing = false }

// RTP processes a decrypted RTP packet. The packet and its info are valid only during the call. One goroutine calls
// RTP. The packet may wait for the next Flush, which must follow as soon as no further packet is available.
func (i *Ingress) RTP(ssrc uint32, packet []byte, info *transport.PacketInfo) {
	if fault.Injected && fault.Delays() {
		i.postpone(ssrc, packet, *info)
		return
	}
	if i.accept(ssrc, packet, info) {
		i.takeovers.settle(i.takeovers.list(time.Time{}), i.set.clock.Now())
	}
}

// accept is take for a caller without the mutex.
func (i *Ingress) accept(ssrc uint32, packet []byte, info *transport.PacketInfo) (held bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.begin() {
		held = i.take(ssrc, packet, info)
		i.end()
	}
	return held
}

// postpone is RTP and Flush for fault injection that delays packets.
func (i *Ingress) postpone(ssrc uint32, packet []byte, info transport.PacketInfo) {
	packet = slices.Clone(packet)
	fault.Later(func() {
		if i.accept(ssrc, packet, &info) {
			i.takeovers.settle(i.takeovers.list(time.Time{}), i.set.clock.Now())
		}
		i.Flush()
	})
}

// take processes a packet for a caller that holds the mutex. take reports whether the packet is held: settle decides
// about the packet.
func (i *Ingress) take(ssrc uint32, packet []byte, info *transport.PacketInfo) (held bool) {
	i.codepoints.add(info.ECN, info.At)
	if i.nack.OncePerTrip && i.requester.arrived(info.At) {
		i.waker.wake()
	}
	i.record(ssrc, packet, info)
	switch {
	case i.process(ssrc, packet, info):
	case i.takeovers.hold(ssrc, packet, info):
		return true
	case !i.bindNamed(ssrc, packet):
		i.stats.Add(counters.UnknownSSRC, 1)
		i.early.keep(ssrc, packet, info)
	case !i.process(ssrc, packet, info):
		return i.takeovers.hold(ssrc, packet, info)
	}
	return false
}

// record records the arrival of a packet of any stream for the reports to the publisher. If the due time of a report
// moves forward, record wakes the goroutine.
func (i *Ingress) record(ssrc uint32, packet []byte, info *transport.PacketInfo) {
	const sequenceEnd = 4
	sooner := false
	extension, byStream := i.peer.TransportSequenceID(), i.peer.AcceptsReportsByStream()
	if extension != 0 || byStream {
		codepoint := i.paths.codepoints.Reported(info.Path, info.ECN)
		sooner = i.arrivals.received(ssrc, packet, extension, byStream, codepoint, info.Arrived())
	}
	if (info.Path != 0 || i.paths.recorder != nil) && len(packet) >= sequenceEnd {
		sequence := binary.BigEndian.Uint16(packet[2:])
		sooner = i.paths.received(i.ssrc, ssrc, sequence, info, i.set.clock.Started()) || sooner
	}
	if sooner {
		i.waker.wake()
	}
}

// Repeated records a packet that has arrived before, mostly on another path. The goroutine that calls RTP calls
// Repeated.
func (i *Ingress) Repeated(ssrc uint32, sequence uint16, info *transport.PacketInfo) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.begin() {
		return
	}
	if (info.Path != 0 || i.paths.recorder != nil) &&
		i.paths.received(i.ssrc, ssrc, sequence, info, i.set.clock.Started()) {
		i.waker.wake()
	}
	i.end()
}

// Codepoints returns the publisher's packets of the last complete second, all zero if none has arrived. Codepoints is
// safe for any goroutine.
func (i *Ingress) Codepoints() Codepoints {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.codepoints.complete(i.set.clock.Now())
}

// process processes a packet of a bound SSRC. It reports false if the SSRC is not bound.
func (i *Ingress) process(ssrc uint32, packet []byte, info *transport.PacketInfo) bool {
	if s := i.bindings.streams[ssrc]; s != nil {
		i.receive(s, packet, info, false)
		return true
	}
	if s := i.bindings.repairs[ssrc]; s != nil {
		i.repair(s, packet, info)
		return true
	}
	return false
}

// repair processes a packet of the RTX stream of a stream.
func (i *Ingress) repair(s *stream, packet []byte, info *transport.PacketInfo) {
	p := &i.packet
	if err := p.Unmarshal(packet); err != nil || p.SSRC != s.repair || len(packet) > maxOriginal {
		i.stats.Add(counters.MalformedRTP, 1)
		return
	}
	if i.original == nil {
		i.original = make([]byte, maxOriginal)
	}
	kind := packetlog.Retransmission
	size, err := feedback.UnpackRTX(i.original, packet, s.ssrc, 0)
	if err != nil {
		// Browsers probe with packets that contain only padding.
		kind = packetlog.Probe
	}
	i.stats.Add(counters.ReceivedPackets+counters.Counter(kind), 1)
	i.stats.Add(counters.ReceivedBytes+counters.Counter(kind), uint64(len(p.Payload)))
	if err == nil {
		i.receive(s, i.original[:size], info, true)
	}
}

// receive processes a packet of a stream in its original form. repaired is set if the packet arrived as a
// retransmission.
func (i *Ingress) receive(s *stream, packet []byte, info *transport.PacketInfo, repaired bool) {
	p, now := &i.packet, info.At
	if err := p.Unmarshal(packet); err != nil || p.Version != 2 || p.SSRC != s.ssrc ||
		len(p.Payload) > packetlog.MaxPayload {
		i.stats.Add(counters.MalformedRTP, 1)
		return
	}
	s.arrived = now
	if i.takeovers.keep(s, packet, info, repaired) {
		return
	}
	sequence, ok := i.admit(s, now, repaired)
	if !ok {
		return
	}
	facts, kind, err := s.establish(p, sequence, now)
	if err != nil {
		i.stats.Add(counters.MalformedPayload, 1)
		return
	}
	stored := i.set.packets.Get(p.Payload)
	i.order = max(i.order+1, i.set.clock.Since(now))
	stored.Class, stored.Facts, stored.Order, stored.Ordinal = kind, facts, i.order, s.facts.opened
	stored.Origin = s.origin
	stored.Edge = facts.Framed && (facts.Opens || sequence != s.facts.highest ||
		facts.Sequence-facts.FrameStart+1 >= int64(facts.SourcePackets))
	stored.Kernel, stored.Hardware = i.set.clock.Stamp(info.Kernel, now), i.set.clock.Stamp(info.Hardware, now)
	stored.Due = s.due(stored)
	i.count(s, stored)
	if s.missing != nil {
		if facts.Framed {
			s.missing.Expect(facts.FrameStart+int64(facts.FramePackets)-1, now)
		}
		if i.requester.schedule(s.missing.Next()) {
			i.waker.wake()
		}
	}
	s.track.Publish(stored)
	i.signals.note(s.track)
}

// admit returns the extended sequence number of i.packet, and reports whether the packet is new.
func (i *Ingress) admit(s *stream, now time.Time, repaired bool) (sequence int64, ok bool) {
	h := &i.packet.Header
	sequence, continuity := s.numbers.Unwrap(h.SequenceNumber)
	switch continuity {
	case feedback.Stray:
		i.stats.Add(counters.LatePackets, 1)
		return 0, false
	case feedback.Reset:
		s.restart()
	}
	sequence += s.base
	if !repaired {
		s.reception.Received(sequence, h.Timestamp, now)
	}
	switch log := s.track.Log(); {
	case log.Has(sequence):
		i.stats.Add(counters.DuplicatePackets, 1)
		return 0, false
	case sequence <= log.Gone():
		i.stats.Add(counters.LatePackets, 1)
		return 0, false
	}
	if s.missing != nil {
		if s.lead > 0 {
			s.missing.Received(sequence-s.lead-1, now)
		}
		switch s.missing.Received(sequence, now) {
		case feedback.Recovered:
			if repaired {
				i.stats.Add(counters.RecoveredPackets, 1)
			} else {
				i.stats.Add(counters.DelayedPackets, 1)
			}
		case feedback.Old:
			s.track.Losses().Came(sequence)
		}
		i.requester.overlook()
	}
	s.lead = 0
	return sequence, true
}

// count counts a packet that is about to be published.
func (i *Ingress) count(s *stream, p *packetlog.Packet) {
	size := uint64(len(p.Payload))
	i.requester.earn()
	i.stats.Add(counters.ReceivedPackets+counters.Counter(p.Class), 1)
	i.stats.Add(counters.ReceivedBytes+counters.Counter(p.Class), size)
	if s.track.Count(p) {
		i.stats.Add(counters.FramesReceived, 1)
	}
}

// Signal signals the packets since the last call to the writers, without waking a writer. Signal is called before Flush
// if packets of several ingresses arrived together. The first writer that runs then finds the packets of all ingresses
// as one burst.
func (i *Ingress) Signal() {
	i.mu.Lock()
	i.signals.send()
	i.mu.Unlock()
}

// Flush signals the packets since the last call, and runs the writers that no other goroutine runs (package turn). The
// goroutine that calls RTP calls Flush.
func (i *Ingress) Flush() {
	i.mu.Lock()
	toWake, packets := i.signals.take()
	i.mu.Unlock()
	if len(toWake) == 0 {
		return
	}
	turn.RunInline(toWake, packets)
	i.mu.Lock()
	i.signals.reuse(toWake)
	i.mu.Unlock()
}

// RTCP processes the sender reports in one decrypted compound RTCP packet.
func (i *Ingress) RTCP(packet []byte, now time.Time) {
	packets, err := rtcp.Unmarshal(packet)
	if err != nil {
		i.stats.Add(counters.MalformedRTCP, 1)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.begin() {
		return
	}
	for _, p := range packets {
		if report, ok := p.(*rtcp.SenderReport); ok {
			if s := i.bindings.streams[report.SSRC]; s != nil {
				s.reported(report, now)
			}
		}
	}
	i.end()
}
