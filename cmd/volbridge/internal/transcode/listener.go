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
	// orderWait is how long a packet waits for the ones before it: two of 20 ms. Sound is not repaired, so what has not
	// come by then will hardly come.
	orderWait = 40 * time.Millisecond
	// orderPackets is how many packets behind a missing one say that it is lost.
	orderPackets = 2
	// lateWindow is how far behind a packet may be and be late, and aheadWindow how far ahead and be of the same
	// stream. Anything else is a stream that begins anew.
	lateWindow, aheadWindow = 64, 512
	// maxFilled is how many samples in a row are made up, 200 ms. More is a pause.
	maxFilled = maxLost * libopus.FrameSamples
	// concealStep is the step in which Opus makes up sound: 2.5 ms (RFC 6716 section 2.1.4).
	concealStep = libopus.Rate / 400
)

// Listener makes VR2Gather's sound of one stream of Opus. It is stepped with the time, and belongs to one goroutine.
type Listener struct {
	decoder *libopus.Decoder
	encoder *libspeex.Encoder
	reel    reel
	// waiting are packets that came, in their order; next is the number of the one that is decoded next.
	waiting []Heard
	next    uint16
	begun   bool
	// expected is the timestamp of what comes next, step the samples of the newest packet; known says that there was
	// one. broken says that it could not be read.
	expected uint32
	step     int
	known    bool
	broken   bool
	// fresh, encoded and frame are memory for what is decoded and encoded.
	fresh     []float32
	frame     []byte
	lookahead time.Duration
	came      time.Time
	counts    ListenerCounts
}

// ListenerCounts are what became of packets that were not as they should be.
type ListenerCounts struct {
	// Concealed is how many were made up, Late how many came when that had been done already or twice, Malformed how
	// many are no Opus.
	Concealed, Late, Malformed int64
}

// Heard is a packet of Opus.
type Heard struct {
	Sequence  uint16
	Timestamp uint32
	// Payload is the listener's to keep.
	Payload []byte
	// Capture is when its first sample was captured, or when the packet came where that is not known.
	Capture time.Time
	// Came is when the bridge had it.
	Came time.Time
}

// Made is a frame of VR2Gather's sound of 20 ms.
type Made struct {
	// Frame begins with VR2Gather's header. It is valid until the next call.
	Frame []byte
	// Came is when the last packet that is in it came.
	Came time.Time
}

// NewListener makes a listener. It fails with what SoundAvailable gives, and where there is no memory.
func NewListener() (*Listener, error) {
	decoder, err := libopus.NewDecoder()
	if err != nil {
		return nil, err
	}
	encoder, err := libspeex.NewEncoder()
	if err != nil {
		return nil, err
	}
	// VR2Gather's decoder is like this one.
	theirs, err := libspeex.NewDecoder()
	if err != nil {
		return nil, err
	}
	return &Listener{decoder: decoder, encoder: encoder, lookahead: lasting(encoder.Lookahead() + theirs.Lookahead())},
		nil
}

// Push takes a packet. Its frames are had by Next.
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

// Due is when a packet will have waited for long enough, whatever comes.
func (l *Listener) Due() (time.Time, bool) {
	if len(l.waiting) == 0 {
		return time.Time{}, false
	}
	return l.waiting[0].Came.Add(orderWait), true
}

// Next gives the next frame, if there is one by now: with raw in VR2Gather's format without compression (VR2a), else
// with it (VR2A).
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

// listen decodes the next packet, and tells whether there is one by now.
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

// fill appends what belongs between the newest packet and the next: made up where packets are lost, silence where the
// publisher sent none. It is nothing after a pause.
func (l *Listener) fill(dst []float32, next *Heard, lost bool) []float32 {
	missing := int(int32(next.Timestamp - l.expected))
	if !l.known || missing <= 0 || missing > maxFilled {
		return dst
	}
	end := len(dst) + missing
	if lost && l.step > 0 {
		l.counts.Concealed += int64((missing + l.step - 1) / l.step)
		// The packet that is lost last is in the next one, if the publisher cared.
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

// Counts is what became of packets that were not as they should be.
func (l *Listener) Counts() ListenerCounts { return l.counts }

// Lookahead is how much later VR2Gather's decoder has what goes in, beside the time that the work takes.
func (l *Listener) Lookahead() time.Duration { return l.lookahead }
