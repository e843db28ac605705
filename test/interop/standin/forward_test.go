package standin

import (
	"encoding/binary"
	"testing"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
)

// TestLostPackets forwards frames of two packets of which the publisher's network lost some. Every lost packet is a gap
// in the sequence numbers, and no packet is forwarded under the number of another frame.
func TestLostPackets(t *testing.T) {
	tests := map[string]struct {
		lost     map[int]bool // by the packet's number: packets 2 and 3 are frame 1
		sequence uint16       // of the next packet
		number   uint32       // of the last frame
	}{
		"none":                         {nil, 6, 3},
		"the last packet of a frame":   {map[int]bool{3: true}, 6, 3},
		"the first packet of a frame":  {map[int]bool{2: true}, 5, 2},
		"the end and the start of two": {map[int]bool{1: true, 2: true}, 5, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			local, err := webrtc.NewTrackLocalStaticRTP(videoCodec, "video_1_0", "0")
			if err != nil {
				t.Fatal(err)
			}
			o := &outlet{local: local}
			for i := range 6 {
				if test.lost[i] {
					continue
				}
				payload := make([]byte, 28)
				for word, value := range []int{1, i / 2, 1500, i % 2 * 1144, 1144 - i%2*788} {
					binary.LittleEndian.PutUint32(payload[4*word:], uint32(value))
				}
				o.forward(Faults{}, 0, &rtp.Packet{Payload: payload})
			}
			if o.sequence != test.sequence || o.number != test.number {
				t.Errorf("next packet %d, frame %d, expected %d and %d", o.sequence, o.number, test.sequence,
					test.number)
			}
		})
	}
}
