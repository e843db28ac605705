package bpf

import (
	"net/netip"
	"testing"
)

func TestRulePrefixes(t *testing.T) {
	var to []netip.Prefix
	for _, s := range []string{"10.1.2.3/16", "10.0.0.0/8", "10.1.2.0/24", "fd00::/8", "0.0.0.0/0", "10.0.0.0/8"} {
		to = append(to, netip.MustParsePrefix(s))
	}
	want := map[string]uint32{"10.1.0.0/16": 0b110011, "10.0.0.0/8": 0b110010, "10.1.2.0/24": 0b110111,
		"fd00::/8": 0b001000, "0.0.0.0/0": 0b010000}
	got := RulePrefixes(to)
	for s, mask := range want {
		if key := mapPrefix(netip.MustParsePrefix(s)); got[key] != mask {
			t.Errorf("%s has the rules %06b, want %06b", s, got[key], mask)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
	key := AcceptedPrefix(netip.MustParsePrefix("10.1.2.3/16"))
	if key != (ReceiverPrefix{Bits: 112, Address: [16]uint8{10: 0xff, 11: 0xff, 12: 10, 13: 1}}) {
		t.Errorf("the key of 10.1.0.0/16 is %+v", key)
	}
}
