package udp

import (
	"testing"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/test/race"
)

// TestAllocations sends runs and single datagrams, with and without a codepoint, and receives them, without allocating.
// A PacketConn without methods for netip.AddrPort allocates by itself.
func TestAllocations(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes sync.Pool allocate")
	}
	for _, v := range variants() {
		if v.name == "attached PacketConn" {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			from, to := v.open(t, Config{Address: loopback4}), v.open(t, Config{Address: loopback4})
			messages := []Message{run(to.Address(), 0, 10, 1000, 1000), run(to.Address(), 10, 1, 50, 50),
				run(to.Address(), 11, 10, 1000, 1000), run(to.Address(), 21, 1, 50, 50)}
			messages[2].ECN, messages[3].ECN = ecn.ECT1, ecn.ECT1
			in := NewInbox()
			exchange := func() {
				if err := from.Sockets()[0].Send(messages); err != nil {
					t.Fatal(err)
				}
				for got := 0; got < 22; {
					if err := to.Sockets()[0].Receive(in); err != nil {
						t.Fatal(err)
					}
					for _, m := range in.Messages() {
						for range m.Datagrams() {
							got++
						}
					}
				}
			}
			if allocations := testing.AllocsPerRun(200, exchange); allocations != 0 {
				t.Errorf("%v allocations, expected none", allocations)
			}
		})
	}
}
