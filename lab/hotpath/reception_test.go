package hotpath

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/hotpath/mediasocket"
	"github.com/volsfu/volsfu/pkg/payload"
)

func TestStreamCounts(t *testing.T) {
	// one is a packet: its number, and whether the packet ends a frame.
	type one struct {
		number uint16
		marker bool
	}
	tests := []struct {
		name            string
		packets         []one
		frames          uint64
		missing         int64
		lastIsAWholeOne bool
	}{
		{"a frame", []one{{1, false}, {2, false}, {3, true}}, 1, 0, true},
		{"frames of one packet, around the end of numbers", []one{{65534, true}, {65535, true}, {0, true}, {1, true}},
			4, 0, true},
		{"a gap within a frame", []one{{1, true}, {2, false}, {4, false}, {5, true}, {6, true}}, 2, 1, true},
		{"the end of a frame is missing", []one{{1, false}, {2, false}, {4, false}, {5, true}}, 0, 1, false},
		{"a whole frame is missing", []one{{1, true}, {4, false}, {5, true}, {6, false}, {7, true}}, 2, 2, true},
		{"out of order", []one{{1, false}, {3, true}, {2, false}, {4, true}}, 1, 0, true},
		{"a frame that has not ended", []one{{1, true}, {2, false}}, 1, 0, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var s stream
			whole := false
			for _, p := range test.packets {
				whole = s.take(p.number, p.marker)
			}
			if s.packets != uint64(len(test.packets)) || s.frames != test.frames || s.missing != test.missing ||
				whole != test.lastIsAWholeOne {
				t.Errorf("%d packets, %d frames, %d missing, whole %v; want %d, %d, %d, %v", s.packets, s.frames,
					s.missing, whole,
					len(test.packets), test.frames, test.missing, test.lastIsAWholeOne)
			}
		})
	}
}

// rtpPacket returns an RTP packet of payload type 96 with a stamp.
func rtpPacket(ssrc uint32, number uint16, marker bool, sent, begun time.Time) []byte {
	packet := make([]byte, mediasocket.RTPHeader+payload.DescriptorSize+stampBytes)
	packet[0], packet[1] = 2<<6, 96
	if marker {
		packet[1] |= 0x80
	}
	binary.BigEndian.PutUint16(packet[2:], number)
	binary.BigEndian.PutUint32(packet[8:], ssrc)
	writeStamp(packet[mediasocket.RTPHeader:], sent, begun)
	return packet
}

func TestReceptionMeasuresTimes(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	r := newReception(2)
	r.expect(96)
	r.time(true)
	// Packets of two tracks. The times of packets with even numbers are measured; packets with the marker end a frame.
	for number := range uint16(4) {
		for _, ssrc := range []uint32{7, 9} {
			packet := rtpPacket(ssrc, number, number == 3, at(int(number)), at(0))
			if needed, want := r.observe(packet, at(int(number)+10)), number%2 == 0 || number == 3; needed != want {
				t.Errorf("packet %d is needed: %v, want %v", number, needed, want)
			} else if needed {
				r.decrypted(packet)
			}
		}
	}
	// RTCP and other payload types are neither counted nor decrypted.
	for _, other := range [][]byte{{2 << 6, 200, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0},
		{2 << 6, 97, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0}} {
		if r.observe(other, at(0)) {
			t.Errorf("%v is needed", other)
		}
	}
	packet, frame := r.times()
	if packet.Count() != 4 || packet.Max() != 10*time.Millisecond || frame.Count() != 2 ||
		frame.Percentile(0.5) != 13*time.Millisecond {
		t.Errorf("%d packets within %v, %d frames within %v; want 4 of 10 ms, 2 of 13 ms", packet.Count(), packet.Max(),
			frame.Count(), frame.Max())
	}
	if got, want := r.sum(), (received{streams: 2, packets: 8, frames: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	r.time(false)
	r.observe(rtpPacket(7, 4, true, at(0), at(0)), at(1))
	r.decrypted(rtpPacket(7, 4, true, at(0), at(0)))
	if packet, _ := r.times(); packet.Count() != 4 {
		t.Errorf("%d times were measured, want none while timing is off", packet.Count())
	}
}

func TestObserveAllocations(t *testing.T) {
	r := newReception(1)
	r.expect(96)
	packet, now := rtpPacket(7, 0, true, time.Time{}, time.Time{}), time.Now()
	r.observe(packet, now)
	if n := testing.AllocsPerRun(1000, func() { r.observe(packet, now) }); n != 0 {
		t.Errorf("%g allocations per packet", n)
	}
}

// FuzzReception passes arbitrary bytes to the functions that parse packets, before and after decryption.
func FuzzReception(f *testing.F) {
	f.Add(rtpPacket(7, 1, true, time.Unix(1, 0), time.Unix(1, 0)))
	f.Add([]byte{})
	f.Add([]byte{2<<6 | 15, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{2<<6 | 0x10, 96, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xbe, 0xde, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, packet []byte) {
		r := newReception(1)
		r.expect(96)
		r.time(true)
		if mediasocket.IsMedia(packet) && r.observe(packet, time.Now()) {
			r.decrypted(packet)
			if got := r.sum(); got.packets != 1 || got.streams != 1 {
				t.Errorf("one packet counts as %+v", got)
			}
		}
		r.decrypted(packet)
	})
}
