package payload_test

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/payload"
)

// A publisher writes the prefix and the codec's data to one buffer and sends the packets made by a
// Fragmenter. A receiver passes the packets to a Reassembler as they arrive and decodes the
// completed frames.
func Example() {
	now := time.Date(2026, 11, 20, 15, 30, 0, 0, time.UTC)

	data := payload.Prefix{FourCC: [4]byte{'r', 'a', 'w', ' '}, Capture: now}.AppendTo(nil)
	data = append(data, make([]byte, 3000)...)
	var fragmenter payload.Fragmenter
	if err := fragmenter.Begin(payload.Descriptor{Prefixed: true, Quality: 2, Frame: 1, Parity: 1}, data); err != nil {
		fmt.Println(err)
		return
	}

	reassembler := payload.NewReassembler(payload.DefaultConfig())
	for i := range fragmenter.Packets() {
		packet, err := fragmenter.AppendPacket(nil, i)
		if err != nil {
			fmt.Println(err)
			return
		}
		if i == 1 {
			continue // this packet is lost
		}
		var d payload.Descriptor
		rest, err := d.Unmarshal(packet)
		if err != nil {
			fmt.Println(err)
			return
		}
		frame, err := reassembler.Push(&d, rest, now)
		if err != nil {
			fmt.Println(err)
			return
		}
		if frame != nil {
			fmt.Printf(
				"frame %d at quality %d: %d bytes of %q, %d recovered\n",
				frame.Number,
				frame.Quality,
				len(frame.Data),
				frame.Prefix.FourCC,
				frame.Recovered,
			)
			frame.Release()
		}
	}
	// Output: frame 1 at quality 2: 3000 bytes of "raw ", 1 recovered
}
