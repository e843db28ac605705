package udp

import (
	"errors"
	"net"
	"net/netip"
	"testing"
)

// TestRejections sends datagrams of several first bytes from three peers, of which two have some rejected: the kernel
// drops those and passes all others, and passes all after the rejections are removed.
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
						t.Errorf("peer %d received %v, expected %v", i, got[i], want[i])
					}
				}
			}
			source := func(peer *Port, port uint16, except ...uint16) RejectedSource {
				host := peer.Address().Addr()
				return RejectedSource{Prefix: netip.PrefixFrom(host, host.BitLen()), Port: port, Except: except}
			}
			port := func(peer int) uint16 { return peers[peer].Address().Port() }
			kinds := []Kind{{0, 0}, {20, 63}}
			// Another address with the same port is another peer.
			far := RejectedSource{Prefix: netip.MustParsePrefix("192.0.2.1/32"), Port: port(2)}
			reject := func(kinds []Kind, sources ...RejectedSource) {
				t.Helper()
				if err := to.Reject(Rejections{Kinds: kinds, Sources: sources}); err != nil {
					t.Fatal(err)
				}
			}
			rest := []byte{1, 19, 64, 128, 255}
			reject(kinds, source(peers[0], port(0)), source(peers[1], port(1)), far)
			send()
			come(map[int][]byte{0: rest, 1: rest, 2: first})
			reject([]Kind{{0, 63}}, source(peers[0], port(0)))
			send()
			come(map[int][]byte{0: {64, 128, 255}, 1: first, 2: first})
			// All ports of the host except two, or except one that another rule rejects.
			reject(kinds, far, source(peers[0], 0, port(1), port(2)), far)
			send()
			come(map[int][]byte{0: rest, 1: first, 2: first})
			reject(kinds, source(peers[0], 0, 1, port(1), port(2)), source(peers[0], port(2)))
			send()
			come(map[int][]byte{0: rest, 1: first, 2: rest})
			// Prefixes of half a word and of two words.
			for _, bits := range []int{12, 64} {
				prefix := netip.PrefixFrom(peers[0].Address().Addr(), min(bits, peers[0].Address().Addr().BitLen()))
				reject(kinds, RejectedSource{Prefix: prefix})
				send()
				come(map[int][]byte{0: rest, 1: rest, 2: rest})
			}
			other := netip.MustParsePrefix("126.0.0.0/12")
			if address.Addr().Is6() {
				other = netip.MustParsePrefix("0:0:0:1::/64")
			}
			reject(kinds, RejectedSource{Prefix: other})
			send()
			come(map[int][]byte{0: first, 1: first, 2: first})
			for range 2 {
				reject(kinds)
			}
			send()
			come(map[int][]byte{0: first, 1: first, 2: first})
		})
	}
}

// TestManyRejections fills the kernel's program.
func TestManyRejections(t *testing.T) {
	to := opened(t)(Listen(Config{Address: loopback6}))
	rejections := Rejections{Kinds: []Kind{{0, 63}}}
	for n := range 2 * MaxRejected {
		source := RejectedSource{Prefix: netip.PrefixFrom(netip.IPv6Loopback(), 128), Port: uint16(1 + n)}
		rejections.Sources = append(rejections.Sources, source)
	}
	if err := to.Reject(rejections); err != nil {
		t.Fatal(err)
	}
	for n := range rejections.Sources {
		rejections.Sources[n].Port, rejections.Sources[n].Except = 0, make([]uint16, MaxExcept+n%2)
	}
	if err := to.Reject(rejections); err != nil {
		t.Fatal(err)
	}
	// Sources with too many exceptions are ignored, and those for which the program has no space.
	if length := len(rejecting(rejections)); length > maxInstructions || length < maxInstructions-100 {
		t.Errorf("a program of %d instructions, expected nearly %d", length, maxInstructions)
	}
	attached := attached("", func(c *net.UDPConn) net.PacketConn { return c }).open(t, Config{Address: loopback4})
	if err := attached.Reject(rejections); !errors.Is(err, ErrNoRejections) {
		t.Errorf("a port of another's connection: got %v, expected ErrNoRejections", err)
	}
}
