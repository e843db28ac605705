package hostnet

import (
	"net/netip"
	"testing"
)

// TestBroadcastAddresses of IPv4 networks.
func TestBroadcastAddresses(t *testing.T) {
	for network, want := range map[string]string{
		"192.0.2.5/24": "192.0.2.255", "10.1.2.3/9": "10.127.255.255", "192.0.2.5/30": "192.0.2.7",
		"10.0.0.1/0":   "255.255.255.255",
		"192.0.2.5/31": "", "192.0.2.5/32": "", "2001:db8::1/64": "",
	} {
		got := broadcastOf(netip.MustParsePrefix(network))
		if want == "" && got.IsValid() || want != "" && got != netip.MustParseAddr(want) {
			t.Errorf("the broadcast address of %s is %v, expected %q", network, got, want)
		}
	}
}

// TestOwnAddressesAreLookedAtAgain: after ownInterval the interfaces are read again, and added addresses remain.
func TestOwnAddressesAreLookedAtAgain(t *testing.T) {
	o := NewOwnAddresses([]string{"198.51.100.7"})
	looked, known := o.looked, o.known.Load()
	o.Step(looked.Add(ownInterval - 1))
	if o.known.Load() != known {
		t.Error("the interfaces are looked at again too early")
	}
	o.Step(looked.Add(ownInterval))
	if o.known.Load() == known || !o.Has(netip.MustParseAddr("198.51.100.7")) ||
		o.Has(netip.MustParseAddr("198.51.100.8")) {
		t.Error("the interfaces are not looked at again, or an address is lost")
	}
}
