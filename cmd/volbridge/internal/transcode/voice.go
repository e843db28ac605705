package transcode

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/libspeex"
	"github.com/volsfu/volsfu/internal/voice"
	"github.com/volsfu/volsfu/internal/voice/libopus"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// VoiceTranscoder converts one Opus stream to VR2Gather's audio. A VoiceTranscoder takes explicit times and is owned by
// one goroutine.
type VoiceTranscoder struct {
	*voice.Stream
	encoder *libspeex.Encoder
	buffer  voice.Framer
	// frame is memory for encoded frames.
	frame     []byte
	lookahead time.Duration
	arrival   time.Time
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
	stream, err := voice.NewStream()
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
	lookahead := libopus.Duration(encoder.Lookahead() + remote.Lookahead())
	return &VoiceTranscoder{Stream: stream, encoder: encoder, lookahead: lookahead}, nil
}

// Next returns the next frame, if one is available: uncompressed (VR2a) if raw is set, otherwise compressed (VR2A).
func (l *VoiceTranscoder) Next(now time.Time, raw bool) (EncodedFrame, bool) {
	for !l.buffer.Full() {
		sound, ok := l.Stream.Next(now)
		if !ok {
			return EncodedFrame{}, false
		}
		l.buffer.Add(sound.Samples, sound.End)
		l.arrival = sound.Arrival
	}
	samples, begin := l.buffer.Frame()
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
	end := begin.Add(libopus.Duration(len(samples)))
	header := vr2gather.NewFrameHeader(fourCC, len(l.frame)-vr2gather.FrameHeaderSize, end)
	header.Append(l.frame[:0])
	l.buffer.Pop()
	return EncodedFrame{Frame: l.frame, Arrival: l.arrival}, true
}

// Lookahead returns the delay of VR2Gather's codec, without processing time.
func (l *VoiceTranscoder) Lookahead() time.Duration { return l.lookahead }
