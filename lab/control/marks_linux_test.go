package control

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/lab/topology/topologytest"
	"github.com/volsfu/volsfu/test/namespace"
	"github.com/volsfu/volsfu/test/wait"
)

// patience is far longer than any step of these tests.
const patience = wait.Patience

// behind moves the addresses of a host to a namespace behind the host, over a pair of virtual network cards. The host
// forwards. The namespace's card coalesces the packets that arrive within 2 ms (GRO), as a network card's driver does
// with those of one interrupt.
func behind(t *testing.T, n *topology.Network, host string) *namespace.Namespace {
	t.Helper()
	const near, far = "02:00:00:00:00:01", "02:00:00:00:00:02"
	there := namespace.New(t)
	v4, v6 := n.Address(host), n.Address6(host)
	run := func(command string) {
		t.Helper()
		words := strings.Fields(command)
		cmd := n.Command(t.Context(), host, words[0], words[1:]...)
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, output)
		}
	}
	run(fmt.Sprintf("ip link add near address %s type veth peer name far address %s netns %d", near, far, there.Thread))
	run("ip link set near up")
	there.Run(t, "ip link set lo up")
	there.Run(t, "ip link set far up")
	for _, family := range []struct {
		option       string
		address, net netip.Prefix
	}{
		{"-4", netip.PrefixFrom(v4, 24), netip.PrefixFrom(v4, 24).Masked()},
		{"-6", netip.PrefixFrom(v6, 64), netip.PrefixFrom(v6, 64).Masked()},
	} {
		run(fmt.Sprintf("ip %s address del %v dev path0", family.option, family.address))
		run(fmt.Sprintf("ip %s route add %v dev path0", family.option, family.net))
		run(fmt.Sprintf("ip %s route add %v dev near", family.option, family.address.Addr()))
		run(fmt.Sprintf("ip %s neighbour add %v lladdr %s dev near nud permanent", family.option, family.address.Addr(),
			far))
		nodad := ""
		if family.address.Addr().Is6() {
			nodad = "nodad"
		}
		there.Run(t, fmt.Sprintf("ip %s address add %v dev far %s", family.option, family.address, nodad))
		for _, other := range n.Hosts() {
			address := n.Address(other)
			if family.address.Addr().Is6() {
				address = n.Address6(other)
			}
			if other != host {
				there.Run(t, fmt.Sprintf("ip %s neighbour add %v lladdr %s dev far nud permanent", family.option,
					address, near))
			}
		}
	}
	err := n.Inside(host, func() error {
		// A pair coalesces only if the sending end has no TCP segmentation offload (veth_skb_is_eligible_for_gro).
		return errors.Join(namespace.SwitchOffload("near", unix.ETHTOOL_STSO, false),
			namespace.SwitchOffload("near", unix.ETHTOOL_SGSO, false))
	})
	there.Do(func() {
		err = errors.Join(err, namespace.SwitchOffload("far", unix.ETHTOOL_SGRO, true),
			os.WriteFile("/sys/class/net/far/gro_flush_timeout", []byte("2000000"), 0))
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// forwarding lets a host of a network pass packets on to a namespace behind it.
var forwarding = topology.Host{Sysctls: map[string]string{
	"net.ipv4.ip_forward": "1", "net.ipv6.conf.all.forwarding": "1", "net.ipv4.conf.all.rp_filter": "0",
}}

// TestMarksArrive: of the packets that DualPI2 marks on the way between two sockets, as many arrive with CE, whatever
// the receiving network card coalesces, in both families and directions.
func TestMarksArrive(t *testing.T) {
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skipf("skipped: %v", err)
	}
	link, err := netem.ParseProfile("delay=1ms,rate=20Mbit,queue=dualpi2:100ms")
	if err != nil {
		t.Fatal(err)
	}
	layout := topology.Pair("a", "b", topology.Duplex(link))
	layout.IPv6 = true
	layout.Hosts["a"], layout.Hosts["b"] = forwarding, forwarding
	n := topologytest.Start(t, layout)
	places := map[string]*namespace.Namespace{"a": behind(t, n, "a"), "b": behind(t, n, "b")}
	for _, way := range []struct {
		from, to string
		way      topology.Way
	}{{"a", "b", topology.Forth}, {"b", "a", topology.Back}} {
		for family, address := range map[string]netip.Addr{"IPv4": n.Address(way.to), "IPv6": n.Address6(way.to)} {
			t.Run(fmt.Sprintf("%s from %s to %s", family, way.from, way.to), func(t *testing.T) {
				from, to := openIn(t, places[way.from]), openIn(t, places[way.to])
				n.Restart()
				const runs, length, size = 60, 10, 1000
				messages := exchange(t, from, to, netip.AddrPortFrom(address, to.Address().Port()), runs, length, size)
				statistics := n.Statistics()
				made, got := statistics.Wire("link", way.way), to.Stats()
				if made.Marked == 0 || made.Marked == runs*length || got.ReceivedECN[ecn.CE] != made.Marked ||
					got.ReceivedECN[ecn.ECT1] != runs*length-made.Marked || statistics.Router.Malformed != 0 ||
					statistics.Router.Refused != 0 {
					t.Errorf("%d of %d packets were marked, and %v arrived by codepoint; %d malformed, %d refused",
						made.Marked, runs*length, got.ReceivedECN, statistics.Router.Malformed,
						statistics.Router.Refused)
				}
				if made.Classes.L4S.Marked != made.Marked || made.Classes.L4S.Packets != runs*length {
					t.Errorf("the queue counts %d of %d packets as marked", made.Classes.L4S.Marked,
						made.Classes.L4S.Packets)
				}
				if messages >= runs*length {
					t.Errorf("%d datagrams arrived in %d messages: nothing was coalesced", runs*length, messages)
				}
				t.Logf("%d of %d packets were marked and arrived so, in %d messages", made.Marked, runs*length,
					messages)
			})
		}
	}
}

// openIn opens a port of both families in a namespace.
func openIn(t *testing.T, place *namespace.Namespace) (port *udp.Port) {
	t.Helper()
	var err error
	place.Do(func() {
		port, err = udp.Listen(udp.Config{Address: netip.AddrPortFrom(netip.IPv6Unspecified(), 0),
			ReceiveBuffer: 4 << 20, SendBuffer: 4 << 20})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = port.Close() })
	return port
}

// exchange sends runs of datagrams as ECT(1), each when the previous run has long left a link of 20 Mbit/s, and
// receives them. The last packets of a run wait for longer than the first. It returns the number of messages in which
// they arrived.
func exchange(t *testing.T, from, to *udp.Port, address netip.AddrPort, runs, length, size int) (messages int) {
	t.Helper()
	go func() {
		ticker := time.NewTicker(2 * time.Duration(length*size*8) * time.Second / 20e6)
		defer ticker.Stop()
		data := make([]byte, length*size)
		for range runs {
			<-ticker.C
			if from.Sockets()[0].Send([]udp.Message{{Peer: address, Data: data, Segment: size, ECN: ecn.ECT1}}) != nil {
				return
			}
		}
	}()
	timer := time.AfterFunc(patience, func() { _ = to.Close() })
	defer timer.Stop()
	inbox := udp.NewInbox()
	for received := 0; received < runs*length; {
		if err := to.Sockets()[0].Receive(inbox); err != nil {
			t.Fatalf("after %d of %d datagrams: %v", received, runs*length, err)
		}
		messages += len(inbox.Messages())
		for _, m := range inbox.Messages() {
			received += m.Count()
		}
	}
	return messages
}
