package transcode

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/libopus"
	"github.com/volsfu/volsfu/cmd/volbridge/internal/libspeex"
	"github.com/volsfu/volsfu/pkg/vr2gather"
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
	// maxFilled is the largest number of consecutive concealed samples, 200 ms. A longer gap is a pause.
	maxFilled = maxLost * libopus.FrameSamples
	// concealStep is the granularity of Opus concealment: 2.5 ms (RFC 6716 section 2.1.4).
	concealStep = libopus.Rate / 400
)

// Listener converts one Opus stream to VR2Gather's audio. A Listener takes explicit times and is owned by one
// goroutine.
type Listener struct {
	decoder *libopus.Decoder
	encoder *libspeex.Encoder
	reel    reel
	// waiting has the received packets in order. next is the sequence number of the packet that is decoded next.
	waiting []Heard
	next    uint16
	begun   bool
	// expected is the timestamp of the next packet and step the number of samples of the newest one. known is set after
	// the first packet. broken is set if the newest packet could not be decoded.
	expected uint32
	step     int
	known    bool
	broken   bool
	// fresh and frame are memory for decoded samples and encoded frames.
	fresh     []float32
	frame     []byte
	lookahead time.Duration
	came      time.Time
	counts    ListenerCounts
}

// ListenerCounts counts irregular packets.
type ListenerCounts struct {
	// Concealed is the number of concealed packets. Late is the number of packets that arrived after concealment or
	// twice. Malformed is the number of packets that are not valid Opus.
	Concealed, Late, Malformed int64
}

// Heard is an Opus packet.
type Heard struct {
	Sequence  uint16
	Timestamp uint32
	// Payload is owned by the listener.
	Payload []byte
	// Capture is the capture time of the first sample, or the arrival time if the capture time is unknown.
	Capture time.Time
	// Came is the time at which the bridge received the packet.
	Came time.Time
}

// Made is an audio frame of 20 ms in VR2Gather's format.
type Made struct {
	// Frame begins with VR2Gather's header. Frame is valid until the next call.
	Frame []byte
	// Came is the arrival time of the last packet in the frame.
	Came time.Time
}

// NewListener returns a listener. NewListener fails with the error of SoundAvailable, or if there is not enough memory.
func NewListener() (*Listener, error) {
	decoder, err := libopus.NewDecoder()
	if err != nil {
		return nil, err
	}
	encoder, err := libspeex.NewEncoder()
	if err != nil {
		return nil, err
	}
	// The connector's decoder has the same lookahead as this one.
	theirs, err := libspeex.NewDecoder()
	if err != nil {
		return nil, err
	}
	return &Listener{decoder: decoder, encoder: encoder, lookahead: lasting(encoder.Lookahead() + theirs.Lookahead())},
		nil
}

// Push adds a packet. Next returns its frames.
func (l *Listener) Push(p Heard) {
	ahead := int16(p.Sequence - l.next)
	switch {
	case l.begun && ahead < 0 && ahead >= -lateWindow:
		l.counts.Late++
		return
	case !l.begun || ahead < 0 || ahead > aheadWindow:
		l.waiting, l.next, l.begun, l.known, l.broken = l.waiting[:0], p.Sequence, true, false, false
	}
	at, twice := slices.BinarySearchFunc(l.waiting, p.Sequence,
		func(h Heard, sequence uint16) int { return int(int16(h.Sequence - sequence)) })
	if twice {
		l.counts.Late++
		return
	}
	l.waiting = slices.Insert(l.waiting, at, p)
}

// Due returns the time at which the first waiting packet is decoded even if earlier packets are missing.
func (l *Listener) Due() (time.Time, bool) {
	if len(l.waiting) == 0 {
		return time.Time{}, false
	}
	return l.waiting[0].Came.Add(orderWait), true
}

// Next returns the next frame, if one is available: uncompressed (VR2a) if raw is set, otherwise compressed (VR2A).
func (l *Listener) Next(now time.Time, raw bool) (Made, bool) {
	for !l.reel.full() {
		if !l.listen(now) {
			return Made{}, false
		}
	}
	samples, begin := l.reel.frame()
	l.frame = slices.Grow(l.frame[:0], vr2gather.FrameHeaderSize)[:vr2gather.FrameHeaderSize]
	fourCC := vr2gather.CodecVoice
	if raw {
		fourCC = vr2gather.CodecRawVoice
		for _, v := range samples {
			l.frame = binary.LittleEndian.AppendUint32(l.frame, math.Float32bits(v))
		}
	} else {
		l.frame = l.encoder.Encode(l.frame, samples)
	}
	header := vr2gather.NewFrameHeader(fourCC, len(l.frame)-vr2gather.FrameHeaderSize, begin.Add(lasting(len(samples))))
	header.Append(l.frame[:0])
	l.reel.wind()
	return Made{Frame: l.frame, Came: l.came}, true
}

// listen decodes the next packet. listen reports whether there was one.
func (l *Listener) listen(now time.Time) bool {
	if len(l.waiting) == 0 {
		return false
	}
	p := l.waiting[0]
	lost := p.Sequence != l.next
	if lost && len(l.waiting) < orderPackets && now.Before(p.Came.Add(orderWait)) {
		return false
	}
	l.waiting = slices.Delete(l.waiting, 0, 1)
	l.next = p.Sequence + 1
	samples := l.fill(l.fresh[:0], &p, lost || l.broken)
	before := len(samples)
	samples, err := l.decoder.Decode(samples, p.Payload)
	if l.broken = err != nil; l.broken {
		l.counts.Malformed++
		return true
	}
	l.fresh, l.step = samples, len(samples)-before
	l.expected, l.known = p.Timestamp+uint32(l.step), true
	l.reel.add(samples, p.Capture.Add(lasting(l.step)))
	l.came = p.Came
	return true
}

// fill appends the samples between the newest packet and the next one: concealed samples for lost packets, silence if
// the publisher sent none. After a pause it appends nothing.
func (l *Listener) fill(dst []float32, next *Heard, lost bool) []float32 {
	missing := int(int32(next.Timestamp - l.expected))
	if !l.known || missing <= 0 || missing > maxFilled {
		return dst
	}
	end := len(dst) + missing
	if lost && l.step > 0 {
		l.counts.Concealed += int64((missing + l.step - 1) / l.step)
		// The last lost packet is recovered from the next one, if the publisher uses forward error correction.
		last := min(missing, l.step) / concealStep * concealStep
		for rest := (missing - last) / concealStep * concealStep; rest > 0; {
			n := min(rest, libopus.MaxSamples)
			dst = l.decoder.Conceal(dst, n)
			rest -= n
		}
		if last > 0 {
			dst = l.decoder.Recover(dst, next.Payload, last)
		}
	}
	return append(dst, make([]float32, end-len(dst))...)
}

// Counts returns the counters.
func (l *Listener) Counts() ListenerCounts { return l.counts }

// Lookahead returns the delay of VR2Gather's codec, without processing time.
func (l *Listener) Lookahead() time.Duration { return l.lookahead }
