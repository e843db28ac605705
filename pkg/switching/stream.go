package switching

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/payload"
)

// stream is one outgoing stream of a peer connection, with the Switcher for the packets that the
// application writes.
type stream struct {
	ssrc, rtxSSRC uint32
	rtxType       uint8
	transportCC   uint8 // ID of the extension, 0 if not negotiated
	codec         codec
	options       options
	writer        interceptor.RTPWriter

	// mu keeps packets in order until they are written, and guards the fields below.
	mu       sync.Mutex
	switcher *Switcher // nil before the first packet
	current  *reader
	previous *reader
	tracks   uint64 // number of tracks seen so far
	// swapped reports that the next packet comes from another track. gates is the number of swaps
	// in progress.
	swapped    bool
	gates      int
	keyTill    time.Time
	copies     *copies
	header     rtp.Header
	descriptor payload.Descriptor
	packets    uint32
	octets     uint32

	// rtxMu orders retransmissions. Lock order: rtxMu before mu.
	rtxMu     sync.Mutex
	rtxNumber uint16
	rtxBuffer []byte
}

func newStream(info *interceptor.StreamInfo, writer interceptor.RTPWriter, o options) *stream {
	s := &stream{
		ssrc:    info.SSRC,
		codec:   newCodec(info.MimeType, info.ClockRate),
		options: o,
		writer:  writer,
		copies:  newCopies(0),
		// Random, as RFC 3550 section 5.1 requires.
		rtxNumber: uint16(rand.Uint32()),
	}
	if info.SSRCRetransmission != 0 && info.PayloadTypeRetransmission != 0 {
		s.rtxSSRC, s.rtxType = info.SSRCRetransmission, info.PayloadTypeRetransmission
		s.copies = newCopies(o.copyBytes)
	}
	for _, extension := range info.RTPHeaderExtensions {
		if extension.URI == transportCCURI {
			s.transportCC = uint8(extension.ID)
		}
	}
	return s
}

// Write implements interceptor.RTPWriter for the packets of the application and of the interceptors
// above.
func (s *stream) Write(h *rtp.Header, body []byte, attributes interceptor.Attributes) (int, error) {
	size := h.MarshalSize() + len(body)
	if h.SSRC == s.rtxSSRC && s.rtxSSRC != 0 {
		// Two sources of numbers on one SSRC would use an SRTP index twice, and the numbers known
		// to the sender of this packet are not those of the receiver.
		return size, nil
	}
	if h.SSRC != s.ssrc {
		return s.writer.Write(h, body, attributes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gates > 0 {
		return size, nil
	}
	now := s.options.now()
	p := s.read(h, body, now)
	v := s.switcher.Packet(&p, now)
	if v.Action == Drop {
		return size, nil
	}
	if v.Switched {
		// After its beginning the track continues at any frame after an interruption, because
		// nothing here requests another key frame from its publisher.
		src := s.switcher.Active()
		src.NeedsKey = false
		s.switcher.Select(src, now)
	}
	s.copyHeader(h)
	s.header.SequenceNumber, s.header.Timestamp, s.header.Marker = v.Sequence, v.Timestamp, v.Marker
	s.copies.add(s.switcher.extended(v.Sequence), &s.header, body)
	s.packets++
	s.octets += uint32(len(body))
	return s.writer.Write(&s.header, body, attributes)
}

// copyHeader copies the header before it is changed: the application may be writing the same header
// to other peers.
func (s *stream) copyHeader(h *rtp.Header) {
	csrc, extensions := append(s.header.CSRC[:0], h.CSRC...), append(s.header.Extensions[:0], h.Extensions...)
	s.header = *h
	s.header.CSRC, s.header.Extensions = csrc, extensions
}

// read determines the track of the packet and the facts about the packet.
func (s *stream) read(h *rtp.Header, body []byte, now time.Time) Packet {
	var d *payload.Descriptor
	if s.codec.framed {
		// Padding and malformed packets are forwarded like packets of a foreign codec.
		if _, err := s.descriptor.Unmarshal(body); err == nil {
			d = &s.descriptor
		}
	}
	from := s.current
	switch {
	case from == nil:
		// A stream whose track is never replaced keeps its numbers and timestamps.
		cfg := Config{ClockRate: uint32(s.codec.rate), FirstSequence: h.SequenceNumber, FirstTimestamp: h.Timestamp}
		if d != nil {
			cfg.FirstSequence -= d.Index
		}
		s.switcher = New(cfg)
		from = s.adopt(h, d, now)
	case s.swapped:
		from = s.adopt(h, d, now)
	case from.continues(h, d, s.options.jump, now):
	case s.previous != nil && s.previous.continues(h, d, s.options.jump, now):
		if from = s.previous; from.newer(h) {
			s.current, s.previous = s.previous, s.current
			s.setCurrent(now)
		}
	default:
		from = s.adopt(h, d, now)
	}
	s.expire(now)
	return from.read(h, body, d, s.tracks == 1, now)
}

// adopt makes a new track feed the stream. The track begins with this packet.
func (s *stream) adopt(h *rtp.Header, d *payload.Descriptor, now time.Time) *reader {
	s.tracks++
	r := &reader{codec: s.codec, source: Source{Track: TrackID(s.tracks), Group: s.tracks}}
	r.follows(s.current, h, d)
	s.current, s.previous, s.swapped = r, s.current, false
	s.setCurrent(now)
	return r
}

// setCurrent selects the track of the current reader. The rest of the previous track's current frame will
// not arrive.
func (s *stream) setCurrent(now time.Time) {
	s.switcher.Overrun(now)
	src := s.current.source
	// The first track is forwarded from its first packet on.
	src.NeedsKey = s.tracks > 1 && s.codec.needsKey && s.options.keyWait > 0
	s.keyTill = now.Add(s.options.keyWait)
	s.switcher.Select(src, now)
}

// expire lets a track begin without a key frame if none arrived in time.
func (s *stream) expire(now time.Time) {
	if src, pending := s.switcher.Pending(); pending && src.NeedsKey && now.After(s.keyTill) {
		src.NeedsKey = false
		s.switcher.Select(src, now)
	}
}

// gate holds the stream while its track is being replaced.
func (s *stream) gate() {
	s.mu.Lock()
	s.gates++
	s.mu.Unlock()
}

// ungate ends a replacement. If the replacement failed, the track continues at its next frame,
// because some of its packets may have been dropped.
func (s *stream) ungate(swapped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gates--
	s.swapped = s.swapped || swapped
	if s.switcher == nil {
		s.swapped = false
		return
	}
	s.switcher.Overrun(s.options.now())
}

// close releases the copies.
func (s *stream) close() {
	s.mu.Lock()
	s.copies.clear()
	s.mu.Unlock()
}

// report corrects a sender report that an interceptor above made from the packets of the
// application: the timestamps and counts of the outgoing stream differ.
func (s *stream) report(sr *rtcp.SenderReport) *rtcp.SenderReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.switcher == nil || s.switcher.time.arrived.IsZero() {
		return sr
	}
	corrected := *sr
	elapsed := ntpTime(sr.NTPTime).Sub(s.switcher.time.arrived)
	corrected.RTPTime = s.switcher.time.newest + uint32(int64(elapsed.Seconds()*s.codec.rate))
	corrected.PacketCount, corrected.OctetCount = s.packets, s.octets
	return &corrected
}

// ntpTime converts an NTP timestamp (RFC 5905 section 6): seconds since 1900 and their fraction, 32
// bits each.
func ntpTime(ntp uint64) time.Time {
	const from1900To1970 = 2_208_988_800
	fraction := (ntp & 0xffffffff) * uint64(time.Second) >> 32
	return time.Unix(int64(ntp>>32)-from1900To1970, int64(fraction))
}
