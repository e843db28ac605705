package transcode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/libopus"
	"github.com/volsfu/volsfu/cmd/volbridge/internal/libspeex"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// ErrSound is returned for a malformed frame of VR2Gather's audio.
var ErrSound = errors.New("malformed VR2Gather sound")

const (
	// bitrate is the bitrate of Opus in bit/s: fullband speech without audible loss. VR2Gather's own audio uses 50
	// kbit/s.
	bitrate = 64_000
	// maxLost is the largest number of consecutive concealed frames. The concealment of a decoder fades out within 100
	// to 200 ms.
	maxLost = 10
	// maxSound is the largest number of samples of a VR2Gather frame: one second.
	maxSound = libopus.Rate
	// sampleBytes is the size of an uncompressed sample.
	sampleBytes = 4
)

// SoundAvailable returns nil if this program was built with the audio codecs, and the error of the missing codec
// otherwise.
func SoundAvailable() error {
	switch {
	case !libopus.Available():
		return libopus.ErrUnavailable
	case !libspeex.Available():
		return libspeex.ErrUnavailable
	}
	return nil
}

// Speaker converts one client's audio to Opus. A Speaker is owned by one goroutine.
type Speaker struct {
	decoder *libspeex.Decoder
	encoder *libopus.Encoder
	reel    reel
	// number is the number of the newest frame and step its number of samples. begun is set after the first frame.
	number uint32
	step   int
	begun  bool
	// fresh and packet are memory for decoded samples and encoded packets.
	fresh     []float32
	packet    []byte
	came      time.Time
	concealed int64
}

// Said is a frame of VR2Gather's audio.
type Said struct {
	// Number is the frame's number. A gap in the numbers is a loss.
	Number uint32
	Codec  codec.FourCC
	// Data is the frame without VR2Gather's header.
	Data []byte
	// End is the capture time of the last sample, as in the header.
	End time.Time
	// Came is the time at which the bridge received the frame.
	Came time.Time
}

// Spoken is an Opus packet of 20 ms.
type Spoken struct {
	// Packet is valid until the next call.
	Packet []byte
	// Capture is the capture time of the first sample, by the clock of the frames' times.
	Capture time.Time
	// Came is the arrival time of the last frame in the packet.
	Came time.Time
}

// NewSpeaker returns a speaker. NewSpeaker fails with the error of SoundAvailable, or if there is not enough memory.
func NewSpeaker() (*Speaker, error) {
	decoder, err := libspeex.NewDecoder()
	if err != nil {
		return nil, err
	}
	encoder, err := libopus.NewEncoder(bitrate)
	if err != nil {
		return nil, err
	}
	return &Speaker{decoder: decoder, encoder: encoder}, nil
}

// Speaks reports whether a codec can be converted to Opus.
func Speaks(fourCC codec.FourCC) bool {
	return fourCC == vr2gather.CodecVoice || fourCC == vr2gather.CodecRawVoice
}

// Push adds a frame. Next returns its packets and must be called until it returns false before the next Push. Up to
// maxLost lost frames are concealed, which preserves the timing. Errors wrap ErrSound; a malformed frame counts as
// lost.
func (s *Speaker) Push(in Said) error {
	samples := s.fresh[:0]
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
	s.fresh, s.step, s.number, s.begun = samples, len(samples)-before, in.Number, true
	s.concealed += int64(lost)
	if len(samples) > 0 {
		s.reel.add(samples, in.End)
		s.came = in.Came
	}
	return nil
}

// decode appends the samples of a frame.
func (s *Speaker) decode(dst []float32, fourCC codec.FourCC, data []byte) ([]float32, error) {
	if fourCC == vr2gather.CodecVoice {
		samples, err := s.decoder.Decode(dst, data)
		if err != nil {
			return dst, fmt.Errorf("%w: %w", ErrSound, err)
		}
		return samples, nil
	}
	if len(data)%sampleBytes != 0 || len(data) > sampleBytes*maxSound {
		return dst, fmt.Errorf("%w: %d bytes of samples, expected a multiple of %d and at most %d", ErrSound, len(data),
			sampleBytes, sampleBytes*maxSound)
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
func (s *Speaker) conceal(dst []float32, fourCC codec.FourCC, samples int) []float32 {
	if fourCC == vr2gather.CodecVoice {
		return s.decoder.Conceal(dst, samples/libspeex.FrameSamples)
	}
	return append(dst, make([]float32, samples)...)
}

// Next returns the next packet, if there is one.
func (s *Speaker) Next() (Spoken, bool) {
	if !s.reel.full() {
		return Spoken{}, false
	}
	samples, begin := s.reel.frame()
	s.packet = s.encoder.Encode(s.packet[:0], samples)
	s.reel.wind()
	return Spoken{Packet: s.packet, Capture: begin, Came: s.came}, true
}

// Concealed returns the number of concealed frames.
func (s *Speaker) Concealed() int64 { return s.concealed }

// Lookahead returns the delay of Opus, without processing time.
func (s *Speaker) Lookahead() time.Duration { return lasting(s.encoder.Lookahead()) }
