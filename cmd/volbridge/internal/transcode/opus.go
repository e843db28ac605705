package transcode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/libspeex"
	"github.com/volsfu/volsfu/internal/voice"
	"github.com/volsfu/volsfu/internal/voice/libopus"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// ErrAudio is returned for a malformed frame of VR2Gather's audio.
var ErrAudio = errors.New("malformed VR2Gather audio")

const (
	// bitrate is the bitrate of Opus in bit/s: fullband speech without audible loss. VR2Gather's own audio uses 50
	// kbit/s.
	bitrate = 64_000
	// maxLost is the largest number of consecutive concealed frames. The concealment of a decoder fades out within 100
	// to 200 ms.
	maxLost = 10
	// maxSamples is the largest number of samples of a VR2Gather frame: one second.
	maxSamples = libopus.Rate
	// sampleBytes is the size of an uncompressed sample.
	sampleBytes = 4
)

// AudioAvailable returns nil if this program was built with the audio codecs, and the error of the missing codec
// otherwise.
func AudioAvailable() error {
	switch {
	case !libopus.Available():
		return libopus.ErrUnavailable
	case !libspeex.Available():
		return libspeex.ErrUnavailable
	}
	return nil
}

// OpusTranscoder converts one client's audio to Opus. An OpusTranscoder is owned by one goroutine.
type OpusTranscoder struct {
	decoder *libspeex.Decoder
	encoder *libopus.Encoder
	buffer  voice.Framer
	// number is the number of the newest frame and step its number of samples. begun is set after the first frame.
	number uint32
	step   int
	begun  bool
	// decoded and packet are memory for decoded samples and encoded packets.
	decoded   []float32
	packet    []byte
	arrival   time.Time
	concealed int64
}

// VoiceFrame is a frame of VR2Gather's audio.
type VoiceFrame struct {
	// Number is the frame's number. A gap in the numbers is a loss.
	Number uint32
	Codec  codec.FourCC
	// Data is the frame without VR2Gather's header.
	Data []byte
	// End is the capture time of the last sample, as in the header.
	End time.Time
	// Arrival is the time at which the bridge received the frame.
	Arrival time.Time
}

// OpusPacket is an Opus packet of 20 ms.
type OpusPacket struct {
	// Packet is valid until the next call.
	Packet []byte
	// Capture is the capture time of the first sample, by the clock of the frames' times.
	Capture time.Time
	// Arrival is the arrival time of the last frame in the packet.
	Arrival time.Time
}

// NewOpusTranscoder returns a transcoder. The error is that of AudioAvailable, or means that there is not enough
// memory.
func NewOpusTranscoder() (*OpusTranscoder, error) {
	decoder, err := libspeex.NewDecoder()
	if err != nil {
		return nil, err
	}
	encoder, err := libopus.NewEncoder(bitrate)
	if err != nil {
		return nil, err
	}
	return &OpusTranscoder{decoder: decoder, encoder: encoder}, nil
}

// IsVoice reports whether a codec can be converted to Opus.
func IsVoice(fourCC codec.FourCC) bool {
	return fourCC == vr2gather.CodecVoice || fourCC == vr2gather.CodecRawVoice
}

// Push adds a frame. Next returns its packets and must be called until it returns false before the next Push. Up to
// maxLost lost frames are concealed, which preserves the timing. Errors wrap ErrAudio; a malformed frame counts as
// lost.
func (s *OpusTranscoder) Push(in VoiceFrame) error {
	samples := s.decoded[:0]
	lost := 0
	if missing := int32(in.Number - s.number - 1); s.begun && missing > 0 && missing <= maxLost {
		lost = int(missing)
		samples = s.conceal(samples, in.Codec, lost*s.step)
	}
	before := len(samples)
	samples, err := s.decode(samples, in.Codec, in.Data)
	if err != nil {
		return err
	}
	s.decoded, s.step, s.number, s.begun = samples, len(samples)-before, in.Number, true
	s.concealed += int64(lost)
	if len(samples) > 0 {
		s.buffer.Add(samples, in.End)
		s.arrival = in.Arrival
	}
	return nil
}

// decode appends the samples of a frame.
func (s *OpusTranscoder) decode(dst []float32, fourCC codec.FourCC, data []byte) ([]float32, error) {
	if fourCC == vr2gather.CodecVoice {
		samples, err := s.decoder.Decode(dst, data)
		if err != nil {
			return dst, fmt.Errorf("%w: %w", ErrAudio, err)
		}
		return samples, nil
	}
	if len(data)%sampleBytes != 0 || len(data) > sampleBytes*maxSamples {
		return dst, fmt.Errorf("%w: %d bytes of samples, expected a multiple of %d and at most %d", ErrAudio, len(data),
			sampleBytes, sampleBytes*maxSamples)
	}
	for ; len(data) > 0; data = data[sampleBytes:] {
		v := math.Float32frombits(binary.LittleEndian.Uint32(data))
		// NaN becomes silence.
		if v != v {
			v = 0
		}
		dst = append(dst, min(max(v, -1), 1))
	}
	return dst, nil
}

// conceal appends samples for lost frames: concealment by Speex, or silence for uncompressed audio.
func (s *OpusTranscoder) conceal(dst []float32, fourCC codec.FourCC, samples int) []float32 {
	if fourCC == vr2gather.CodecVoice {
		return s.decoder.Conceal(dst, samples/libspeex.FrameSamples)
	}
	return append(dst, make([]float32, samples)...)
}

// Next returns the next packet, if there is one.
func (s *OpusTranscoder) Next() (OpusPacket, bool) {
	if !s.buffer.Full() {
		return OpusPacket{}, false
	}
	samples, begin := s.buffer.Frame()
	s.packet = s.encoder.Encode(s.packet[:0], samples)
	s.buffer.Pop()
	return OpusPacket{Packet: s.packet, Capture: begin, Arrival: s.arrival}, true
}

// Concealed returns the number of concealed frames.
func (s *OpusTranscoder) Concealed() int64 { return s.concealed }

// Lookahead returns the delay of Opus, without processing time.
func (s *OpusTranscoder) Lookahead() time.Duration { return libopus.Duration(s.encoder.Lookahead()) }
