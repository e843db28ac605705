package edgepair

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/volsfu/volsfu/internal/netfn/edge"
)

// TestText: the configurations are valid, and each side has its own interfaces and addresses.
func TestText(t *testing.T) {
	p := &Pair{folder: "/run/pair"}
	for i, host := range []string{"near", "far"} {
		p.config.Sides[i] = Side{Host: host, Text: "receive: {inner: [10.0.0.0/8]}\n"}
	}
	for i := range 2 {
		p.config.Links = append(p.config.Links, Link{
			Interfaces: [2]string{fmt.Sprintf("a%d", i), fmt.Sprintf("b%d", i)},
			Addresses: [2]netip.Addr{netip.AddrFrom4([4]byte{10, byte(i), 0, 1}),
				netip.AddrFrom4([4]byte{10, byte(i), 0, 2})},
		})
	}
	for side, names := range [][2]string{{"near", "far"}, {"far", "near"}} {
		c, err := edge.Parse("edge.yaml", []byte(p.text(side)))
		if err != nil {
			t.Fatal(err)
		}
		if c.Name != names[0] || c.Peer != names[1] || c.State != p.folder || c.Receive == nil || len(c.Paths) != 2 {
			t.Errorf("the configuration of %s is %+v", names[0], c)
		}
		for i := range c.Paths {
			path, link := c.Paths[i], p.config.Links[i]
			want := edge.Path{Name: fmt.Sprintf("path%d", i+1), Interface: link.Interfaces[side],
				Local: link.Addresses[side], Remote: link.Addresses[1-side]}
			if path != want {
				t.Errorf("%s: path %+v, expected %+v", names[0], path, want)
			}
		}
	}
}
