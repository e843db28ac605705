package udp

import (
	"bytes"
	"net/netip"
	"testing"
)

func TestDatagrams(t *testing.T) {
	tests := []struct {
		name            string
		length, segment int
		want            []int // lengths
	}{
		{"single", 100, 100, []int{100}},
		{"shorter than its segment", 60, 100, []int{60}},
		{"without segment", 60, 0, []int{60}},
		{"segment below zero", 60, -3, []int{60}},
		{"empty", 0, 0, []int{0}},
		{"empty with segment", 0, 100, []int{0}},
		{"equal", 300, 100, []int{100, 100, 100}},
		{"last shorter", 201, 100, []int{100, 100, 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := Message{Data: datagram(0, test.length), Segment: test.segment}
			if m.Count() != len(test.want) {
				t.Errorf("counts %d, expected %d", m.Count(), len(test.want))
			}
			var all []byte
			index := 0
			for d := range m.Datagrams() {
				if len(d) != test.want[index] || cap(d) != len(d) && index < len(test.want)-1 {
					t.Errorf("datagram %d has %d bytes of %d, expected %d", index, len(d), cap(d), test.want[index])
				}
				all = append(all, d...)
				index++
			}
			if index != len(test.want) || !bytes.Equal(all, m.Data) {
				t.Errorf("%d datagrams, expected %d with all of the data", index, len(test.want))
			}
			for range m.Datagrams() {
				break // the iteration must end
			}
		})
	}
}

func TestCursor(t *testing.T) {
	v4, v6 := netip.MustParseAddrPort("192.0.2.1:9"), netip.MustParseAddrPort("[2001:db8::1]:9")
	mapped := netip.AddrPortFrom(netip.AddrFrom16(v4.Addr().As16()), 9)
	tests := []struct {
		name            string
		peer            netip.AddrPort
		length, segment int
		segmented       bool
		want            []int // lengths of the runs
	}{
		{"one run", v4, 4800, 1200, true, []int{4800}},
		{"unsegmented", v4, 4000, 1200, false, []int{1200, 1200, 1200, 400}},
		{"64 segments", v4, 6400, 100, true, []int{6400}},
		{"65 segments", v4, 6500, 100, true, []int{6400, 100}},
		{"130 segments and a bit", v4, 13001, 100, true, []int{6400, 6400, 201}},
		{"as much as IPv4 carries", v4, 65507 + 1, 1024, true, []int{63 * 1024, 65508 - 63*1024}},
		{"54 of 1,200 over IPv4", v4, 60 * 1200, 1200, true, []int{54 * 1200, 6 * 1200}},
		{"mapped IPv4", mapped, 65507, 65507/7 + 1, true, []int{6 * 9359, 65507 - 6*9359}},
		{"exactly IPv4", v4, 65507 * 2, 9358 + 0, true, []int{7 * 9358, 7 * 9358, 2}},
		{"less over IPv6", v6, 10 * 9358, 9358, true, []int{6 * 9358, 4 * 9358}},
		{"segments too large", v4, 140000, 70000, true, []int{70000, 70000}},
		{"single", v4, 1200, 1200, true, []int{1200}},
		{"empty", v4, 0, 1200, true, []int{0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			data := datagram(0, test.length)
			// The same message twice: the cursor must find the end of the first.
			rest := cursor{messages: []Message{{Peer: test.peer, Data: data, Segment: test.segment},
				{Peer: test.peer, Data: data, Segment: test.segment}}}
			for range 2 {
				var all []byte
				for i, want := range test.want {
					got, ok := rest.next(test.segmented)
					if !ok || len(got.Data) != want || got.Segment != test.segment || got.Peer != test.peer {
						t.Fatalf("run %d: %v, %d bytes of segment %d to %v, expected %d", i, ok, len(got.Data),
							got.Segment, got.Peer, want)
					}
					all = append(all, got.Data...)
				}
				if !bytes.Equal(all, data) {
					t.Fatal("the runs do not make up the data")
				}
			}
			if got, ok := rest.next(test.segmented); ok {
				t.Fatalf("a run of %d bytes is left over", len(got.Data))
			}
		})
	}
}
