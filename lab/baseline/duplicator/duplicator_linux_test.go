package duplicator

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/edge"
	"github.com/volsfu/volsfu/internal/netfn/paths"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/lab/topology/topologytest"
	"github.com/volsfu/volsfu/test/wait"
)

// start starts a pair between two hosts with a number of perfect paths, and returns it with a socket at each end.
func start(t *testing.T, number int) (p *Pair, sender, receiver *net.UDPConn) {
	t.Helper()
	plan := &topology.Topology{Hosts: map[string]topology.Host{"sender": {}, "receiver": {}}, Ethernet: true}
	for range number {
		plan.Paths = append(plan.Paths, topology.Path{From: "sender", To: "receiver"})
	}
	n := topologytest.Start(t, plan)
	host := func(name string) Host {
		h := Host{Address: n.Address(name), Inside: func(f func() error) error { return n.Inside(name, f) }}
		for i := range number {
			h.Interfaces = append(h.Interfaces, topology.InterfaceName(i))
		}
		return h
	}
	p, err := Start(host("sender"), host("receiver"))
	if errors.Is(err, edge.ErrPrivileges) || errors.Is(err, edge.ErrUnsupported) {
		t.Skipf("skipped: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	open := func(name string, f func() error) {
		if err := n.Inside(name, f); err != nil {
			t.Fatal(err)
		}
	}
	open("receiver", func() (err error) {
		receiver, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(n.Address("receiver"), 0)))
		return err
	})
	t.Cleanup(func() { _ = receiver.Close() })
	open("sender", func() (err error) {
		sender, err = net.DialUDP("udp4", nil, receiver.LocalAddr().(*net.UDPAddr))
		return err
	})
	t.Cleanup(func() { _ = sender.Close() })
	return p, sender, receiver
}

// TestPair copies packets onto all paths. The filter passes each once, and Algorithm 1 ends with the first path.
func TestPair(t *testing.T) {
	p, sender, receiver := start(t, 3)
	const packets = 300
	send := func() {
		t.Helper()
		buffer := make([]byte, 16)
		if err := receiver.SetReadDeadline(time.Now().Add(wait.Patience)); err != nil {
			t.Fatal(err)
		}
		for i := range packets {
			if _, err := sender.Write([]byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
			if n, err := receiver.Read(buffer); err != nil || n != 1 || buffer[0] != byte(i) {
				t.Fatalf("packet %d: % x, %v", i, buffer[:n], err)
			}
		}
	}
	counts := func(want Counts) {
		t.Helper()
		var got Counts
		wait.Until(t, "the last copies", func() bool {
			var err error
			if got, err = p.Counts(); err != nil {
				t.Fatal(err)
			}
			return got.Passed+got.Dropped >= want.Passed+want.Dropped
		})
		if got != want {
			t.Fatalf("the counts are %+v, expected %+v", got, want)
		}
	}
	send()
	counts(Counts{Packets: packets, Copies: packets, Passed: packets})
	p.Fix(paths.Set(7))
	send()
	counts(Counts{Packets: 2 * packets, Copies: 4 * packets, Passed: 2 * packets, Dropped: 2 * packets})
	p.Enable()
	for range 100 { // packets until a window of 100 packets is in time on one path
		send()
		if runs := p.Runs(); runs[0].Set.Len() == 1 {
			if runs[0].Packets <= Window {
				t.Errorf("the algorithm ended after %d packets, expected more than %d", runs[0].Packets, Window)
			}
			return
		}
	}
	t.Errorf("the run is %+v, expected that one path is left", p.Runs()[0])
}
