package feedback

import (
	"slices"
	"testing"

	"github.com/pion/rtcp"
)

func TestAppendNACKs(t *testing.T) {
	consecutive := make([]int64, 6000)
	spread := make([]int64, 600)
	for i := range consecutive {
		consecutive[i] = 130_000 + int64(i) // across the wrap of 16 bits
	}
	for i := range spread {
		spread[i] = 70_000 + 17*int64(i)
	}
	tests := []struct {
		name      string
		sequences []int64
		packets   int
	}{{"none", nil, 0}, {"one", []int64{65536}, 1}, {"pair", []int64{131071, 131072, 131087, 131088}, 1},
		{"burst", consecutive, 2}, {"spread", spread, 3}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			packets := AppendNACKs(nil, 1, 2, test.sequences)
			if len(packets) != test.packets {
				t.Fatalf("%d packets, expected %d", len(packets), test.packets)
			}
			var got []uint16
			for _, packet := range packets {
				raw, err := packet.Marshal()
				if err != nil || len(raw) > MaxCompound {
					t.Fatalf("%d bytes: %v", len(raw), err)
				}
				var nack rtcp.TransportLayerNack
				if err := nack.Unmarshal(raw); err != nil || nack.SenderSSRC != 1 || nack.MediaSSRC != 2 {
					t.Fatalf("%+v: %v", nack, err)
				}
				for _, pair := range nack.Nacks {
					got = append(got, pair.PacketList()...)
				}
			}
			want := make([]uint16, len(test.sequences))
			for i, sequence := range test.sequences {
				want[i] = uint16(sequence)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("asks for %v, expected %v", got, want)
			}
		})
	}
}

func TestReceiverReportsInCompounds(t *testing.T) {
	for _, count := range []int{0, 1, 31, 32, 49, 50, 300} {
		blocks := make([]rtcp.ReceptionReport, count)
		for i := range blocks {
			blocks[i].SSRC = uint32(i)
		}
		compounds := Compounds(AppendReceiverReports(nil, 7, blocks))
		if expected := (count + 48) / 49; len(compounds) != expected {
			t.Fatalf("%d blocks make %d compounds, expected %d", count, len(compounds), expected)
		}
		next := uint32(0)
		for _, compound := range compounds {
			raw, err := rtcp.Marshal(compound)
			if err != nil || len(raw) > MaxCompound {
				t.Fatalf("%d blocks: a compound has %d bytes: %v", count, len(raw), err)
			}
			for _, packet := range compound {
				for _, block := range packet.(*rtcp.ReceiverReport).Reports {
					if block.SSRC != next {
						t.Fatalf("block %d stands where %d is expected", block.SSRC, next)
					}
					next++
				}
			}
		}
		if int(next) != count {
			t.Fatalf("%d of %d blocks", next, count)
		}
	}
}

func TestCompounds(t *testing.T) {
	huge := &rtcp.RawPacket{}
	*huge = make([]byte, 1400)
	report := &rtcp.SenderReport{}
	packets := []rtcp.Packet{report, huge, report}
	for range 42 {
		packets = append(packets, report) // 28 bytes each: 42 to a compound
	}
	var sizes []int
	for _, compound := range Compounds(packets) {
		sizes = append(sizes, len(compound))
	}
	if !slices.Equal(sizes, []int{1, 1, 42, 1}) {
		t.Fatalf("compounds have %v packets", sizes)
	}
	if compounds := Compounds(nil); compounds != nil {
		t.Fatalf("nothing makes %v", compounds)
	}
}
