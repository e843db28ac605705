// Package voice decodes streams of Opus packets to samples: it orders packets, conceals lost ones, and keeps samples
// for programs that play them.
//
// A Stream takes explicit times. A Stream and a Playout are each used by one goroutine at a time.
package voice

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/voice/libopus"
)

const (
	// orderWait is the time for which a packet waits for missing earlier ones: two packets of 20 ms. Audio is not
	// retransmitted, so that later arrival is unlikely.
	orderWait = 40 * time.Millisecond
	// orderPackets is the number of packets after a missing one by which it is declared lost.
	orderPackets = 2
	// lateWindow is the largest distance of a late packet, aheadWindow the largest distance of an early one. Any other
	// sequence number restarts the stream.
	lateWindow, aheadWindow = 64, 512
	// maxFilled is the largest number of consecutive concealed samples, 200 ms: the concealment of a decoder fades out
	// within 100 to 200 ms. A longer gap is a pause.
	maxFilled = 10 * libopus.FrameSamples
	// concealStep is the granularity of Opus concealment: 2.5 ms (RFC 6716 section 2.1.4).
	concealStep = libopus.Rate / 400
)

// Packet is an Opus packet.
type Packet struct {
	Sequence  uint16
	Timestamp uint32
	// Payload is owned by the stream.
	Payload []byte
	// Capture is the capture time of the first sample, or the arrival time if the capture time is unknown.
	Capture time.Time
	// Arrival is the time at which the packet was received.
	Arrival time.Time
}

// Counts counts irregular packets.
type Counts struct {
	// Concealed is the number of concealed packets. Late is the number of packets that arrived after concealment or
	// twice. Malformed is the number of packets that are not valid Opus.
	Concealed, Late, Malformed int64
}

// Sound is a decoded packet, with the samples that conceal the lost packets before it.
type Sound struct {
	// Samples is valid until the next call.
	Samples []float32
	// End is the capture time of the end of the last sample.
	End time.Time
	// Arrival is the time at which the packet was received.
	Arrival time.Time
}

// Stream decodes one Opus stream.
type Stream struct {
	decoder *libopus.Decoder
	// waiting has the received packets in order. next is the sequence number of the packet that is decoded next.
	waiting []Packet
	next    uint16
	begun   bool
	// expected is the timestamp of the next packet and step the number of samples of the newest one. known is set after
	// the first packet. broken is set if the newest packet could not be decoded.
	expected uint32
	step     int
	known    bool
	broken   bool
	decoded  []float32
	counts   Counts
}

// NewStream returns a stream. The error is libopus.ErrUnavailable, or means that there is not enough memory.
func NewStream() (*Stream, error) {
	decoder, err := libopus.NewDecoder()
	if err != nil {
		return nil, err
	}
	return &Stream{decoder: decoder}, nil
}

// Close frees the stream, which must not be used afterwards.
func (s *Stream) Close() { s.decoder.Close() }

// Push adds a packet. Next returns its samples.
func (s *Stream) Push(p Packet) {
	ahead := int16(p.Sequence - s.next)
	switch {
	case s.begun && ahead < 0 && ahead >= -lateWindow:
		s.counts.Late++
		return
	case !s.begun || ahead < 0 || ahead > aheadWindow:
		s.waiting, s.next, s.begun, s.known, s.broken = s.waiting[:0], p.Sequence, true, false, false
	}
	at, twice := slices.BinarySearchFunc(s.waiting, p.Sequence,
		func(h Packet, sequence uint16) int { return int(int16(h.Sequence - sequence)) })
	if twice {
		s.counts.Late++
		return
	}
	s.waiting = slices.Insert(s.waiting, at, p)
}

// Due returns the time at which the first waiting packet is decoded even if earlier packets are missing.
func (s *Stream) Due() (time.Time, bool) {
	if len(s.waiting) == 0 {
		return time.Time{}, false
	}
	return s.waiting[0].Arrival.Add(orderWait), true
}

// Waiting returns the number of packets that are not decoded yet.
func (s *Stream) Waiting() int { return len(s.waiting) }

// Next decodes the next packet, unless earlier packets can still arrive. A malformed packet counts as lost.
func (s *Stream) Next(now time.Time) (Sound, bool) {
	for len(s.waiting) > 0 {
		p := s.waiting[0]
		lost := p.Sequence != s.next
		if lost && len(s.waiting) < orderPackets && now.Before(p.Arrival.Add(orderWait)) {
			return Sound{}, false
		}
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.next = p.Sequence + 1
		samples := s.fill(s.decoded[:0], &p, lost || s.broken)
		before := len(samples)
		samples, err := s.decoder.Decode(samples, p.Payload)
		if s.broken = err != nil; s.broken {
			s.counts.Malformed++
			continue
		}
		s.decoded, s.step = samples, len(samples)-before
		s.expected, s.known = p.Timestamp+uint32(s.step), true
		return Sound{Samples: samples, End: p.Capture.Add(libopus.Duration(s.step)), Arrival: p.Arrival}, true
	}
	return Sound{}, false
}

// fill appends the samples between the newest packet and the next one: concealed samples for lost packets, silence if
// the publisher sent none. After a pause it appends nothing.
func (s *Stream) fill(dst []float32, next *Packet, lost bool) []float32 {
	missing := int(int32(next.Timestamp - s.expected))
	if !s.known || missing <= 0 || missing > maxFilled {
		return dst
	}
	end := len(dst) + missing
	if lost && s.step > 0 {
		s.counts.Concealed += int64((missing + s.step - 1) / s.step)
		// The last lost packet is recovered from the next one, if the publisher uses forward error correction.
		last := min(missing, s.step) / concealStep * concealStep
		for rest := (missing - last) / concealStep * concealStep; rest > 0; {
			n := min(rest, libopus.MaxSamples)
			dst = s.decoder.Conceal(dst, n)
			rest -= n
		}
		if last > 0 {
			dst = s.decoder.Recover(dst, next.Payload, last)
		}
	}
	return append(dst, make([]float32, end-len(dst))...)
}

// Counts returns the counters.
func (s *Stream) Counts() Counts { return s.counts }
