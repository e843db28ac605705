package codectest

import (
	_ "embed" // embeds the frames
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// Frame is a frame of the shared test vectors. The tests of the web clients use the same vectors.
type Frame struct {
	Codec string `json:"codec"` // FourCC
	Name  string `json:"name"`
	// Points and Sum describe the decoded cloud of valid frames: the number of points, and the
	// 32-bit FNV-1a sum of the positions as little-endian float32.
	Points int      `json:"points,omitempty"`
	Sum    uint32   `json:"sum,omitempty"`
	Data   HexBytes `json:"data"`
}

// HexBytes is marshalled as hexadecimal digits.
type HexBytes []byte

// MarshalText implements encoding.TextMarshaler.
func (b HexBytes) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, b), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *HexBytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.AppendDecode(nil, text)
	return err
}

//go:embed testdata/hostile.json
var hostileJSON []byte

//go:embed testdata/valid.json
var validJSON []byte

// Hostile returns the frames made to consume memory and time. Package vectors makes these frames
// and those of Valid.
func Hostile() []Frame { return parse(hostileJSON) }

// Valid returns valid frames of all codecs that decode.
func Valid() []Frame { return parse(validJSON) }

func parse(file []byte) (frames []Frame) {
	if err := json.Unmarshal(file, &frames); err != nil {
		panic(fmt.Sprintf("codectest: the test vectors are no frames: %v", err))
	}
	return frames
}

// Seeds adds the hostile and the valid frames of a codec to the corpus of a fuzz test.
func Seeds(f *testing.F, fourCC codec.FourCC) {
	for _, frame := range append(Hostile(), Valid()...) {
		if frame.Codec == fourCC.String() {
			f.Add([]byte(frame.Data))
		}
	}
}

// TestHostile decodes the hostile frames of a codec. Each must result in an error within the limits
// of memory and time.
func TestHostile(t *testing.T, c codec.Codec) {
	tried := 0
	for _, frame := range Hostile() {
		if frame.Codec != c.FourCC().String() {
			continue
		}
		tried++
		t.Run(frame.Name, func(t *testing.T) {
			var cloud pointcloud.Cloud
			if err := decode(t, c.NewDecoder(), &cloud, frame.Data, 1); err == nil {
				t.Errorf("%d points of %d bytes, want an error", cloud.Len(), len(frame.Data))
			}
		})
	}
	if tried == 0 {
		t.Errorf("there are no hostile frames of %q", c.FourCC())
	}
}
