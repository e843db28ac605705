package ratelimit

import (
	"net/netip"
	"testing"
)

func TestSourcesAreNetworks(t *testing.T) {
	for _, test := range []struct {
		address, source string
		limited         bool
	}{
		{"203.0.113.9", "203.0.113.9/32", true},
		{"::ffff:203.0.113.9", "203.0.113.9/32", true},
		{"2001:db8::ffff:1", "2001:db8::/64", true},
		{"2001:db8:0:1::1", "2001:db8:0:1::/64", true},
		{"fe80::1%eth0", "fe80::/64", true},
		{"127.0.0.7", "127.0.0.7/32", false},
		{"::ffff:127.0.0.1", "127.0.0.1/32", false},
		{"::1", "::/64", false},
		{"", "invalid Prefix", true},
	} {
		var address netip.Addr
		if test.address != "" {
			address = netip.MustParseAddr(test.address)
		}
		if source, limited := Source(address); source.String() != test.source || limited != test.limited {
			t.Errorf("%q: got %v, limited %v", test.address, source, limited)
		}
	}
}
