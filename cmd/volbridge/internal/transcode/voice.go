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

// VoiceTranscoder converts one Opus stream to VR2Gather's audio. A VoiceTranscoder takes explicit times and is owned by
// one goroutine.
type VoiceTranscoder struct {
	decoder *libopus.Decoder
	encoder *libspeex.Encoder
	buffer  frameBuffer
	// waiting has the received packets in order. next is the sequence number of the packet that is decoded next.
	waiting []ReceivedPacket
	next    uint16
	begun   bool
	// expected is the timestamp of the next packet and step the number of samples of the newest one. known is set after
	// the first packet. broken is set if the newest packet could not be decoded.
	expected uint32
	step     int
	known    bool
	broken   bool
	// decoded and frame are memory for decoded samples and encoded frames.
	decoded   []float32
	frame     []byte
	lookahead time.Duration
	arrival   time.Time
	counts    VoiceCounts
}

// VoiceCounts counts irregular packets.
type VoiceCounts struct {
	// Concealed is the number of concealed packets. Late is the number of packets that arrived after concealment or
	// twice. Malformed is the number of packets that are not valid Opus.
	Concealed, Late, Malformed int64
}

// ReceivedPacket is an Opus packet.
type ReceivedPacket struct {
	Sequence  uint16
	Timestamp uint32
	// Payload is owned by the transcoder.
	Payload []byte
	// Capture is the capture time of the first sample, or the arrival time if the capture time is unknown.
	Capture time.Time
	// Arrival is the time at which the bridge received the packet.
	Arrival time.Time
}

// EncodedFrame is an audio frame of 20 ms in VR2Gather's format.
type EncodedFrame struct {
	// Frame begins with VR2Gather's header. Frame is valid until the next call.
	Frame []byte
	// Arrival is the arrival time of the last packet in the frame.
	Arrival time.Time
}

// NewVoiceTranscoder returns a transcoder. The error is that of AudioAvailable, or means that there is not enough
// memory.
func NewVoiceTranscoder() (*VoiceTranscoder, error) {
	decoder, err := libopus.NewDecoder()
	if err != nil {
		return nil, err
	}
	encoder, err := libspeex.NewEncoder()
	if err != nil {
		return nil, err
	}
	// The connector's decoder has the same lookahead as this one.
	remote, err := libspeex.NewDecoder()
	if err != nil {
		return nil, err
	}
	lookahead := durationOf(encoder.Lookahead() + remote.Lookahead())
	return &VoiceTranscoder{decoder: decoder, encoder: encoder, lookahead: lookahead}, nil
}

// Push adds a packet. Next returns its frames.
func (l *VoiceTranscoder) Push(p ReceivedPacket) {
	ahead := int16(p.Sequence - l.next)
	switch {
	case l.begun && ahead < 0 && ahead >= -lateWindow:
		l.counts.Late++
		return
	case !l.begun || ahead < 0 || ahead > aheadWindow:
		l.waiting, l.next, l.begun, l.known, l.broken = l.waiting[:0], p.Sequence, true, false, false
	}
	at, twice := slices.BinarySearchFunc(l.waiting, p.Sequence,
		func(h ReceivedPacket, sequence uint16) int { return int(int16(h.Sequence - sequence)) })
	if twice {
		l.counts.Late++
		return
	}
	l.waiting = slices.Insert(l.waiting, at, p)
}

// Due returns the time at which the first waiting packet is decoded even if earlier packets are missing.
func (l *VoiceTranscoder) Due() (time.Time, bool) {
	if len(l.waiting) == 0 {
		return time.Time{}, false
	}
	return l.waiting[0].Arrival.Add(orderWait), true
}

// Next returns the next frame, if one is available: uncompressed (VR2a) if raw is set, otherwise compressed (VR2A).
func (l *VoiceTranscoder) Next(now time.Time, raw bool) (EncodedFrame, bool) {
	for !l.buffer.full() {
		if !l.decodeNext(now) {
			return EncodedFrame{}, false
		}
	}
	samples, begin := l.buffer.frame()
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
	end := begin.Add(durationOf(len(samples)))
	header := vr2gather.NewFrameHeader(fourCC, len(l.frame)-vr2gather.FrameHeaderSize, end)
	header.Append(l.frame[:0])
	l.buffer.pop()
	return EncodedFrame{Frame: l.frame, Arrival: l.arrival}, true
}

// decodeNext decodes the next packet, and reports whether there was a packet.
func (l *VoiceTranscoder) decodeNext(now time.Time) bool {
	if len(l.waiting) == 0 {
		return false
	}
	p := l.waiting[0]
	lost := p.Sequence != l.next
	if lost && len(l.waiting) < orderPackets && now.Before(p.Arrival.Add(orderWait)) {
		return false
	}
	l.waiting = slices.Delete(l.waiting, 0, 1)
	l.next = p.Sequence + 1
	samples := l.fill(l.decoded[:0], &p, lost || l.broken)
	before := len(samples)
	samples, err := l.decoder.Decode(samples, p.Payload)
	if l.broken = err != nil; l.broken {
		l.counts.Malformed++
		return true
	}
	l.decoded, l.step = samples, len(samples)-before
	l.expected, l.known = p.Timestamp+uint32(l.step), true
	l.buffer.add(samples, p.Capture.Add(durationOf(l.step)))
	l.arrival = p.Arrival
	return true
}

// fill appends the samples between the newest packet and the next one: concealed samples for lost packets, silence if
// the publisher sent none. After a pause it appends nothing.
func (l *VoiceTranscoder) fill(dst []float32, next *ReceivedPacket, lost bool) []float32 {
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
func (l *VoiceTranscoder) Counts() VoiceCounts { return l.counts }

// Lookahead returns the delay of VR2Gather's codec, without processing time.
func (l *VoiceTranscoder) Lookahead() time.Duration { return l.lookahead }
