package router

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/internal/ecn"
)

// frame returns an Ethernet frame of a type.
func frame(kind uint16, packet []byte) []byte {
	f := []byte{2, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0, byte(kind >> 8), byte(kind)}
	return append(f, packet...)
}

func TestParseFrame(t *testing.T) {
	ipv4 := packet(byte(ecn.ECT1), protocolUDP, 0, 0xc6120001, 0xc6120002, 0x13, 0x88, 0x13, 0x89)
	h, ok := parseFrame(frame(etherTypeIPv4, ipv4))
	if want, _ := parse(ipv4); !ok || h != want {
		t.Errorf("%+v and %v, expected %+v", h, ok, want)
	}
	if got := destination(frame(etherTypeIPv4, ipv4)); got != linkAddressOf(1, 0) {
		t.Errorf("destination %v, expected %v", got, linkAddressOf(1, 0))
	}
	for name, f := range map[string][]byte{
		"ARP":                        frame(0x0806, ipv4),
		"the type of IPv6":           frame(etherTypeIPv6, ipv4),
		"no packet":                  frame(etherTypeIPv4, nil),
		"a part of a packet":         frame(etherTypeIPv4, ipv4[:10]),
		"a part of a header":         frame(etherTypeIPv4, nil)[:10],
		"nothing":                    nil,
		"a packet without its frame": ipv4,
	} {
		if _, ok := parseFrame(f); ok {
			t.Errorf("%s: expected an error", name)
		}
	}
}

func FuzzParseFrame(f *testing.F) {
	f.Add(frame(etherTypeIPv4, packet(0, protocolUDP, 0, 1, 2, 0, 1, 0, 2)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if h, ok := parseFrame(data); ok {
			inner := data[frameBytes:]
			setECN(inner, ecn.CE)
			if again, ok := parse(inner); !ok || again.pair != h.pair || again.ecn != ecn.CE {
				t.Errorf("%+v became %+v", h, again)
			}
		}
	})
}

func TestNeighbours(t *testing.T) {
	address, prefix := netip.MustParseAddr, netip.MustParsePrefix
	plan := Plan{
		Namespaces: []Namespace{
			{Interfaces: []Interface{
				{Name: "path0", Address: prefix("198.18.0.1/24"), Address6: prefix("2001:2::1/64")},
				{Name: "path1", Address: prefix("198.18.1.1/24")},
			}},
			{Interfaces: []Interface{
				{Name: "path0", Address: prefix("198.18.0.2/24"), Address6: prefix("2001:2::2/64")},
				{Name: "path1", Address: prefix("198.18.1.2/24")},
			}},
		},
		Routes: []Route{
			{From: address("198.18.0.1"), To: address("198.18.0.2")},
			{From: address("198.18.1.1"), To: address("198.18.1.2")},
			{From: address("2001:2::1"), To: address("2001:2::2")},
			{From: address("198.18.0.2"), To: address("198.18.0.1")},
		},
	}
	want := []neighbour{
		{"path0", address("198.18.0.2"), linkAddressOf(1, 0)},
		{"path0", address("2001:2::2"), linkAddressOf(1, 0)},
		{"path1", address("198.18.1.2"), linkAddressOf(1, 1)},
	}
	if got := plan.neighbours(0); !slices.Equal(got, want) {
		t.Errorf("%+v, expected %+v", got, want)
	}
	want = []neighbour{{"path0", address("198.18.0.1"), linkAddressOf(0, 0)}}
	if got := plan.neighbours(1); !slices.Equal(got, want) {
		t.Errorf("%+v, expected the neighbour of the only route", got)
	}
}
