package payload

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// sharedPacket counts its references.
type sharedPacket struct{ references int }

func (p *sharedPacket) Retain()     { p.references++ }
func (p *sharedPacket) Release()    { p.references-- }
func (p *sharedPacket) Size() int64 { return 1536 }

// TestSharedPackets assembles frames from shared packets: without a copy if all source fragments arrive, otherwise with
// parity.
func TestSharedPackets(t *testing.T) {
	prefix := Prefix{FourCC: [4]byte{'r', 'a', 'w', ' '}, Capture: start.UTC()}
	for _, test := range []struct {
		name          string
		size, parity  int
		prefixed, all bool
		lost          []int
	}{
		{name: "empty", prefixed: true},
		{name: "without a prefix", size: 5000},
		{name: "with a prefix", size: 5000, prefixed: true},
		{name: "with surplus parity", size: 5000, parity: 2, prefixed: true},
		{name: "with recovery", size: 5000, parity: 2, prefixed: true, lost: []int{0, 3}},
		{name: "with recovery of the last", size: 5000, parity: 2, lost: []int{4, 2}},
		{name: "without the last packet", size: 5000, lost: []int{4}},
	} {
		for _, shuffled := range []bool{false, true} {
			want := testData(test.size)
			data := want
			if test.prefixed {
				data = append(prefix.AppendTo(nil), want...)
			}
			r, owner := NewReassembler(DefaultConfig()), &sharedPacket{}
			for number := range uint32(3) {
				d := Descriptor{Prefixed: test.prefixed, Parity: uint16(test.parity), Frame: number}
				packets := packetsOf(t, d, data)
				for _, n := range test.lost {
					packets[n] = nil
				}
				if shuffled {
					rand.New(rand.NewPCG(1, 2)).Shuffle(len(packets), func(i, j int) {
						packets[i], packets[j] = packets[j], packets[i]
					})
				}
				var got *Frame
				for range 2 {
					for _, packet := range packets {
						var d Descriptor
						fragment, err := d.Unmarshal(packet)
						if err != nil {
							continue
						}
						f, err := r.PushShared(&d, fragment, owner, start)
						if err != nil {
							t.Fatal(err)
						}
						if f != nil {
							got = f
						}
					}
				}
				complete := len(test.lost) <= test.parity
				if complete != (got != nil) {
					t.Fatalf("%s: the frame is %v", test.name, got)
				}
				if got == nil {
					continue
				}
				parts := bytes.Join(got.AppendParts(nil), nil)
				if !bytes.Equal(parts, want) || got.Length != len(want) {
					t.Errorf("%s, shuffled %t: %d bytes differ", test.name, shuffled, len(parts))
				}
				if len(test.lost) == 0 && !shuffled && (got.Data != nil || owner.references == 0) {
					t.Errorf("%s: the frame is a copy", test.name)
				}
				if got.Prefixed != test.prefixed || test.prefixed && got.Prefix != prefix ||
					!bytes.Equal(got.RawPrefix(), data[:len(data)-len(want)]) {
					t.Errorf("%s: prefixed %t by %+v", test.name, got.Prefixed, got.Prefix)
				}
				got.Release()
			}
			r.Reset()
			if owner.references != 0 || r.held != 0 {
				t.Errorf("%s: %d references and %d bytes are left", test.name, owner.references, r.held)
			}
		}
	}
}
