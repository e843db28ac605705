package forward

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/fault"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/transport"
)

// Ingress is what one publisher's peer connection brings in. The goroutine that reads the connection calls RTP for each packet of a batch, and Flush after the
// last one; a goroutine of its own asks the publisher for what is missing, once for all receivers, and sends reports.
type Ingress struct {
	engine *Engine
	peer   Peer
	// ssrc is what the publisher knows the server by in RTCP.
	ssrc    uint32
	stats   shard
	wakeup  chan struct{}
	stopped chan struct{}

	mu     sync.Mutex
	closed bool
	// changing is set while the state below is being changed. If a change panics, changing stays set, and the ingress does
	// nothing any more.
	changing bool
	streams  map[uint32]*stream
	// repairs are the same streams by the SSRC of their retransmissions.
	repairs map[uint32]*stream
	groups  map[uint64]*frameNumbers
	// instants are those of the groups of converted tracks.
	instants map[uint64]*instants
	packet   rtp.Packet
	// original is a retransmitted packet as it was first sent.
	original [maxOriginal]byte
	// order is that of the last packet.
	order int64
	// unsignalled are the tracks of the packets that those who follow them have not been told of, at most signalAfter.
	unsignalled []*Track
	// roused are the writers that are to be woken, for so many packets.
	roused  []*writer
	rousing int
	// budget bounds what the publisher is asked for, noticed what is noticed as missing, and chunks what is held of frames that come in chunks.
	budget  requestBudget
	noticed *feedback.MissingBudget
	chunks  allotment
	// loss is what the publisher's path loses, and protection the share of parity that it calls for.
	loss       feedback.Loss
	protection protection
	// arrivals are what the publisher is told of its packets as a whole.
	arrivals arrivals
	// stepped is when the goroutine last looked at what is missing, scheduled when it does next.
	stepped, scheduled time.Time
	reportDue          time.Time
}

// maxOriginal is the largest packet that is taken from a retransmission: the largest payload and a header of 512 bytes.
const maxOriginal = packetlog.MaxPayload + 512

// NewIngress adds a publisher's peer connection. The caller ends it with Close.
func (e *Engine) NewIngress(p Peer) *Ingress {
	i := e.newIngress(p)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		i.closed = true
		close(i.stopped)
		return i
	}
	e.ingresses[i] = struct{}{}
	e.running.Go(func() {
		if !e.cfg.Guard.Try(placeIngress, i.run) {
			// What it closes may be half changed.
			e.cfg.Guard.Try(placeIngress, i.fail)
		}
	})
	return i
}

// fail ends what the publisher sends. Its connection's owner ends the rest.
func (i *Ingress) fail() {
	i.peer.Fail()
	i.Close()
}

// newIngress makes an ingress whose goroutine does not run.
func (e *Engine) newIngress(p Peer) *Ingress {
	return &Ingress{
		chunks:   allotment{pieces: &e.pieces},
		noticed:  feedback.NewMissingBudget(requestRate, requestBurst),
		engine:   e,
		peer:     p,
		ssrc:     rand.Uint32(),
		wakeup:   make(chan struct{}, 1),
		stopped:  make(chan struct{}),
		streams:  make(map[uint32]*stream),
		repairs:  make(map[uint32]*stream),
		groups:   make(map[uint64]*frameNumbers),
		instants: make(map[uint64]*instants),
		budget:   newRequestBudget(),
		arrivals: newArrivals(),
	}
}

// Close unbinds all tracks and ends the goroutine. It does not wait for a packet that the peer is being sent.
func (i *Ingress) Close() {
	if i.unbindAll() {
		close(i.stopped)
		i.engine.retire(i)
	}
}

// unbindAll unbinds all tracks, for good. It returns false if it has done so before.
func (i *Ingress) unbindAll() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return false
	}
	i.closed = true
	i.wakeWriters()
	for _, s := range i.streams {
		s.track.ingress.Store(nil)
		s.end()
	}
	clear(i.streams)
	clear(i.repairs)
	clear(i.groups)
	clear(i.instants)
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

// RTP takes a decrypted RTP packet. The packet and its info are valid only during the call. One goroutine calls RTP.
// The packet may wait for the next Flush, which must follow as soon as no other packet is at hand.
func (i *Ingress) RTP(ssrc uint32, packet []byte, info *transport.PacketInfo) {
	if fault.Injected && fault.Delays() {
		i.postpone(ssrc, packet, *info)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.begin() {
		return
	}
	i.take(ssrc, packet, info)
	i.end()
}

// postpone is RTP and Flush for a faulty server that delays packets.
func (i *Ingress) postpone(ssrc uint32, packet []byte, info transport.PacketInfo) {
	packet = slices.Clone(packet)
	fault.Later(func() {
		i.mu.Lock()
		if i.begin() {
			i.take(ssrc, packet, &info)
			i.end()
		}
		i.mu.Unlock()
		i.Flush()
	})
}

// take is RTP. The caller holds the mutex.
func (i *Ingress) take(ssrc uint32, packet []byte, info *transport.PacketInfo) {
	i.arrived(ssrc, packet, info.At)
	if s := i.streams[ssrc]; s != nil {
		i.receive(s, packet, info, false)
		return
	}
	s := i.repairs[ssrc]
	if s == nil {
		i.stats.add(unknownSSRC, 1)
		return
	}
	i.repair(s, packet, info)
}

// repair takes a packet of the RTX stream that belongs to a stream.
func (i *Ingress) repair(s *stream, packet []byte, info *transport.PacketInfo) {
	p := &i.packet
	if err := p.Unmarshal(packet); err != nil || p.SSRC != s.repair || len(packet) > maxOriginal {
		i.stats.add(malformedRTP, 1)
		return
	}
	kind := packetlog.Retransmission
	size, err := feedback.UnpackRTX(i.original[:], packet, s.ssrc, 0)
	if err != nil {
		// Browsers probe with packets of padding only.
		kind = packetlog.Probe
	}
	i.stats.add(receivedPackets+counter(kind), 1)
	i.stats.add(receivedBytes+counter(kind), uint64(len(p.Payload)))
	if err == nil {
		i.receive(s, i.original[:size], info, true)
	}
}

// receive takes a packet of a stream, as it was first sent.
func (i *Ingress) receive(s *stream, packet []byte, info *transport.PacketInfo, repaired bool) {
	p, now := &i.packet, info.At
	if err := p.Unmarshal(packet); err != nil || p.Version != 2 || p.SSRC != s.ssrc || len(p.Payload) > packetlog.MaxPayload {
		i.stats.add(malformedRTP, 1)
		return
	}
	sequence, ok := i.admit(s, now, repaired)
	if !ok {
		return
	}
	facts, kind, err := s.establish(p, sequence, now)
	if err != nil {
		i.stats.add(malformedPayload, 1)
		return
	}
	stored := i.engine.packets.Get(p.Payload)
	i.order = max(i.order+1, i.engine.since(now))
	stored.Class, stored.Facts, stored.Order, stored.Ordinal = kind, facts, i.order, s.facts.opened
	stored.Edge = facts.Framed && (facts.Opens || sequence != s.facts.highest || facts.Sequence-facts.FrameStart+1 >= int64(facts.SourcePackets))
	stored.Kernel, stored.Hardware = i.engine.stamp(info.Kernel, now), i.engine.stamp(info.Hardware, now)
	stored.Due = s.due(stored)
	i.count(s, stored)
	if s.missing != nil {
		if facts.Framed {
			s.missing.Expect(facts.FrameStart+int64(facts.FramePackets)-1, now)
		}
		i.schedule(s.missing.Next())
	}
	s.track.publish(stored)
	i.noteArrival(s.track)
}

// admit gives the packet at hand its extended number, and tells whether it is news.
func (i *Ingress) admit(s *stream, now time.Time, repaired bool) (sequence int64, ok bool) {
	h := &i.packet.Header
	sequence, continuity := s.numbers.Unwrap(h.SequenceNumber)
	switch continuity {
	case feedback.Stray:
		i.stats.add(latePackets, 1)
		return 0, false
	case feedback.Reset:
		s.restart()
	}
	sequence += s.base
	if !repaired {
		s.reception.Received(sequence, h.Timestamp, now)
	}
	switch log := s.track.log; {
	case log.Has(sequence):
		i.stats.add(duplicatePackets, 1)
		return 0, false
	case sequence <= log.Gone():
		i.stats.add(latePackets, 1)
		return 0, false
	}
	if s.missing != nil {
		switch s.missing.Received(sequence, now) {
		case feedback.Recovered:
			if repaired {
				i.stats.add(recoveredPackets, 1)
			} else {
				i.stats.add(delayedPackets, 1)
			}
		case feedback.Old:
			s.came(sequence)
		}
		i.overlook()
	}
	return sequence, true
}

// overlook counts what was not noticed as missing, because it was too much.
func (i *Ingress) overlook() {
	if n := i.noticed.TakeRefused(); n > 0 {
		i.stats.add(requestsLimited, uint64(n))
	}
}

// count adds a packet that is about to be published.
func (i *Ingress) count(s *stream, p *packetlog.Packet) {
	size := uint64(len(p.Payload))
	i.budget.earn()
	i.noticed.Earn()
	i.stats.add(receivedPackets+counter(p.Class), 1)
	i.stats.add(receivedBytes+counter(p.Class), size)
	t := s.track
	t.packets.Add(1)
	t.bytes.Add(size)
	if p.Class == packetlog.Media || p.Class == packetlog.Audio {
		t.rate.add(len(p.Payload), p.Facts.Opens, time.Duration(p.Order))
	}
	if !p.Facts.Opens || t.audio {
		return
	}
	t.frames.Add(1)
	i.stats.add(framesReceived, 1)
	if t.needsKey && p.Facts.Key {
		// Whoever asked before is served.
		t.keyFrameWanted.Store(false)
	}
}

// RTCP takes one decrypted RTCP packet, and the sender report from it.
func (i *Ingress) RTCP(packet []byte, now time.Time) {
	packets, err := rtcp.Unmarshal(packet)
	if err != nil {
		i.stats.add(malformedRTCP, 1)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.begin() {
		return
	}
	for _, p := range packets {
		if report, ok := p.(*rtcp.SenderReport); ok {
			if s := i.streams[report.SSRC]; s != nil {
				s.reported(report, now)
			}
		}
	}
	i.end()
}
