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

// ErrSound says that a frame of VR2Gather's sound cannot be read.
var ErrSound = errors.New("malformed VR2Gather sound")

const (
	// bitrate is that of Opus, in bit/s: a voice of the whole audible spectrum without loss that one hears. VR2Gather's
	// own sound takes 50 kbit/s.
	bitrate = 64_000
	// maxLost is how many frames in a row are made up: the sound that a coder makes up fades out within 100 to 200 ms.
	maxLost = 10
	// maxSound is how many samples a frame of VR2Gather's may have: a second.
	maxSound = libopus.Rate
	// sampleBytes is the size of a sample of sound that is not compressed.
	sampleBytes = 4
)

// SoundAvailable gives nil if this program was built with what transcodes sound, and else why it was not.
func SoundAvailable() error {
	switch {
	case !libopus.Available():
		return libopus.ErrUnavailable
	case !libspeex.Available():
		return libspeex.ErrUnavailable
	}
	return nil
}

// Speaker makes Opus of one client's sound. It belongs to one goroutine.
type Speaker struct {
	decoder *libspeex.Decoder
	encoder *libopus.Encoder
	reel    reel
	// number is that of the newest frame, and step its samples; begun says that there is one.
	number uint32
	step   int
	begun  bool
	// fresh and packet are memory for what is decoded and encoded.
	fresh     []float32
	packet    []byte
	came      time.Time
	concealed int64
}

// Said is a frame of VR2Gather's sound.
type Said struct {
	// Number is that of the packets that brought the frame: what is missing was lost.
	Number uint32
	Codec  codec.FourCC
	// Data is what follows VR2Gather's header.
	Data []byte
	// End is when its last sample was captured, which is what the header's time says.
	End time.Time
	// Came is when the bridge had it.
	Came time.Time
}

// Spoken is a packet of Opus of 20 ms.
type Spoken struct {
	// Packet is valid until the next call.
	Packet []byte
	// Capture is when its first sample was captured, by whose clock the frames' times are.
	Capture time.Time
	// Came is when the last frame that is in it came.
	Came time.Time
}

// NewSpeaker makes a speaker. It fails with what SoundAvailable gives, and where there is no memory.
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

// Speaks tells whether there is a way from a codec to Opus.
func Speaks(fourCC codec.FourCC) bool {
	return fourCC == vr2gather.CodecVoice || fourCC == vr2gather.CodecRawVoice
}

// Push takes a frame. Its packets are had by Next, before another frame is pushed. Frames that are lost are made up:
// sound is the better for it if they are few, and keeps its time. Errors wrap ErrSound; a frame that cannot be read is
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
		// What is no number is silence.
		if v != v {
			v = 0
		}
		dst = append(dst, min(max(v, -1), 1))
	}
	return dst, nil
}

// conceal appends samples for frames that are lost: what Speex makes of the ones before, or silence where there is no
// codec that would know.
func (s *Speaker) conceal(dst []float32, fourCC codec.FourCC, samples int) []float32 {
	if fourCC == vr2gather.CodecVoice {
		return s.decoder.Conceal(dst, samples/libspeex.FrameSamples)
	}
	return append(dst, make([]float32, samples)...)
}

// Next gives the next packet, if there is one.
func (s *Speaker) Next() (Spoken, bool) {
	if !s.reel.full() {
		return Spoken{}, false
	}
	samples, begin := s.reel.frame()
	s.packet = s.encoder.Encode(s.packet[:0], samples)
	s.reel.wind()
	return Spoken{Packet: s.packet, Capture: begin, Came: s.came}, true
}

// Concealed is how many frames were made up.
func (s *Speaker) Concealed() int64 { return s.concealed }

// Lookahead is how much later Opus has what goes in, beside the time that the work takes.
func (s *Speaker) Lookahead() time.Duration { return lasting(s.encoder.Lookahead()) }
