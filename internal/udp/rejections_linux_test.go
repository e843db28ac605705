package udp

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

// TestRejections sends datagrams of several first bytes from three peers, two of which have some rejected: the kernel
// drops those and passes all others, and after the rejections are taken back all.
func TestRejections(t *testing.T) {
	for name, address := range map[string]netip.AddrPort{"IPv4": loopback4, "IPv6": loopback6} {
		t.Run(name, func(t *testing.T) {
			to := opened(t)(Listen(Config{Address: address}))
			var peers []*Port
			for range 3 {
				peers = append(peers, opened(t)(Listen(Config{Address: address})))
			}
			first := []byte{0, 1, 19, 20, 63, 64, 128, 255}
			send := func() {
				t.Helper()
				for i, peer := range peers {
					for _, b := range first {
						// Datagrams of one length would be received as runs, which have one first byte.
						message := Message{Peer: to.Address(), Data: append([]byte{b, byte(i)}, make([]byte, b)...)}
						if err := peer.Sockets()[0].Send([]Message{message}); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			come := func(want map[int][]byte) {
				t.Helper()
				count := 0
				for _, bytes := range want {
					count += len(bytes)
				}
				got := map[int][]byte{}
				for _, d := range take(t, to, to.Sockets()[0], count) {
					got[int(d.payload[1])] = append(got[int(d.payload[1])], d.payload[0])
				}
				for i := range peers {
					if string(got[i]) != string(want[i]) {
						t.Errorf("of peer %d came %v, expected %v", i, got[i], want[i])
					}
				}
			}
			err := to.Reject([]Rejection{
				{Peer: peers[0].Address(), First: 0, Last: 0},
				{Peer: peers[0].Address(), First: 20, Last: 63},
				{Peer: peers[1].Address(), First: 0, Last: 63},
				// A far address of the same port is another peer.
				{Peer: netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), peers[2].Address().Port()), First: 0, Last: 63},
			})
			if err != nil {
				t.Fatal(err)
			}
			send()
			come(map[int][]byte{0: {1, 19, 64, 128, 255}, 1: {64, 128, 255}, 2: first})
			for range 2 {
				if err := to.Reject(nil); err != nil {
					t.Fatal(err)
				}
			}
			send()
			come(map[int][]byte{0: first, 1: first, 2: first})
		})
	}
}

// TestManyRejections fills the kernel's program.
func TestManyRejections(t *testing.T) {
	to := opened(t)(Listen(Config{Address: loopback6}))
	var rejections []Rejection
	for n := range 2 * MaxRejections {
		rejections = append(rejections, Rejection{Peer: netip.AddrPortFrom(netip.IPv6Loopback(), uint16(1+n)), Last: 63})
	}
	if err := to.Reject(rejections); err != nil {
		t.Fatal(err)
	}
	attached := attached("", func(c *net.UDPConn) net.PacketConn { return c }).open(t, Config{Address: loopback4})
	if err := attached.Reject(rejections); !errors.Is(err, ErrNoRejections) {
		t.Errorf("a port of another's connection: got %v, expected ErrNoRejections", err)
	}
}
