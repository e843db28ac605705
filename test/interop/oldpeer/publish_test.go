package oldpeer

import (
	"bytes"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// TestPayloadsAreTheKnownOnes compares sent payloads with independent descriptions of the same layout.
func TestPayloadsAreTheKnownOnes(t *testing.T) {
	for _, size := range []int{0, 1, 1144, 1145, 1152, 1153, 5000} {
		frame := make([]byte, size)
		for i := range frame {
			frame[i] = byte(i * 7)
		}
		for kind, payloads := range map[volumetric.Kind][][]byte{
			volumetric.KindVideo: videoPayloads(3, 1000, 8, 2, frame),
			volumetric.KindAudio: audioPayloads(3, 1000, frame),
		} {
			var whole []byte
			for _, payload := range payloads {
				p, err := vr2gather.ParsePacket(kind, payload)
				if err != nil {
					t.Fatalf("%s of %d bytes: %v", kind, size, err)
				}
				if int(p.Offset) != len(whole) || int(p.Length) != size || p.Client != 3 || p.Frame != 1000 {
					t.Errorf("%s of %d bytes: %+v", kind, size, p)
				}
				if kind == volumetric.KindVideo && (p.Tile != 8 || p.Quality != 2) {
					t.Errorf("tile %d, quality %d", p.Tile, p.Quality)
				}
				whole = append(whole, p.Data...)
				if len(payload) > maxPayload {
					t.Errorf("payload of %d bytes", len(payload))
				}
			}
			if !bytes.Equal(whole, frame) {
				t.Errorf("%s of %d bytes differs from the source", kind, size)
			}
		}
	}
}
