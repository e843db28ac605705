package bpf

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/test/namespace"
	"github.com/volsfu/volsfu/test/traffic"
	"github.com/volsfu/volsfu/test/wait"
)

// pair is a sender and a receiver in two namespaces, which are connected by one veth per path.
type pair struct {
	t        testing.TB
	a, b     *namespace.Namespace
	sender   *SenderObjects
	receiver *ReceiverObjects
	paths    int
}

// pairing describes a pair.
type pairing struct {
	outer   []uint8 // the IP version of each path's outer packets
	format  uint8
	receive func(*ReceiverObjects) *ebpf.Program // nil: ReceiveXdp
	plain   bool                                 // no programs
	// user: the sender's programs are loaded without CAP_PERFMON.
	user bool
	// unattached: the test attaches the programs.
	unattached bool
}

// newPair connects two namespaces and attaches the programs. All packets from the inner addresses of the first
// namespace to those of the second one leave on all paths.
func newPair(t testing.TB, how pairing) *pair {
	t.Helper()
	p := &pair{t: t, a: namespace.New(t), b: namespace.New(t), paths: len(how.outer),
		sender: &SenderObjects{}, receiver: newReceiver(t, ReceiverConfig{Epoch: testEpoch, Port: testPort})}
	if how.user {
		if err := restricted(func() error { return loadWithout(LoadSender, p.sender) }); err != nil {
			t.Fatal(err)
		}
	} else {
		loadInto(t, unpinned(t, LoadSender), p.sender)
	}
	t.Cleanup(func() { _ = p.sender.Close() })
	for _, n := range []*namespace.Namespace{p.a, p.b} {
		setSysctls(t, n, map[string]string{"ipv6/conf/all/accept_dad": "0", "ipv6/conf/default/accept_dad": "0",
			"ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "0",
			"ipv6/conf/default/router_solicitations": "0"})
		n.Run(t, "ip link set lo up")
	}
	for i := range how.outer {
		p.a.Run(t, fmt.Sprintf("ip link add p%d type veth peer name p%d netns %d", i, i, p.b.Thread))
		p.a.Run(t, fmt.Sprintf("ip addr add 10.%d.0.1/24 dev p%d", 200+i, i))
		p.b.Run(t, fmt.Sprintf("ip addr add 10.%d.0.2/24 dev p%d", 200+i, i))
		p.a.Run(t, fmt.Sprintf("ip addr add fd00:%d::1/64 dev p%d nodad", 200+i, i))
		p.b.Run(t, fmt.Sprintf("ip addr add fd00:%d::2/64 dev p%d nodad", 200+i, i))
		p.a.Run(t, fmt.Sprintf("ip link set p%d up", i))
		p.b.Run(t, fmt.Sprintf("ip link set p%d up", i))
	}
	p.a.Run(t, "ip addr add 10.1.0.1/32 dev lo")
	p.b.Run(t, "ip addr add 10.2.0.2/32 dev lo")
	p.a.Run(t, "ip addr add fd00:1::1/128 dev lo nodad")
	p.b.Run(t, "ip addr add fd00:2::2/128 dev lo nodad")
	mtu := 1500 - Overhead6
	p.a.Run(t, fmt.Sprintf("ip route add 10.2.0.0/16 via 10.200.0.2 src 10.1.0.1 mtu %d", mtu))
	p.b.Run(t, fmt.Sprintf("ip route add 10.1.0.0/16 via 10.200.0.1 src 10.2.0.2 mtu %d", mtu))
	p.a.Run(t, fmt.Sprintf("ip route add fd00:2::/32 via fd00:200::2 src fd00:1::1 mtu %d", mtu))
	p.b.Run(t, fmt.Sprintf("ip route add fd00:1::/32 via fd00:200::1 src fd00:2::2 mtu %d", mtu))
	p.a.AwaitLinks(t)
	p.b.AwaitLinks(t)
	// The neighbour of the plain route is known, so that no packets wait for its address.
	_, near := index(t, p.a, "p0")
	_, far := index(t, p.b, "p0")
	for _, address := range []string{"10.200.0.%d", "fd00:200::%d"} {
		p.a.Run(t, fmt.Sprintf("ip neigh replace "+address+" lladdr %v dev p0", 2, net.HardwareAddr(far[:])))
		p.b.Run(t, fmt.Sprintf("ip neigh replace "+address+" lladdr %v dev p0", 1, net.HardwareAddr(near[:])))
	}
	if how.plain {
		return p
	}
	put(t, p.sender.SendConfig, uint32(0),
		SenderConfig{LeaseNs: math.MaxUint64, Mark: Mark, Epoch: testEpoch, Port: testPort})
	rule := anyPacket
	rule.Set = 1<<p.paths - 1
	rule.Format = how.format
	put(t, p.sender.Rules, uint32(0), rule)
	to := []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("fd00:2::/32")}
	for key := range RulePrefixes(to) {
		put(t, p.sender.Prefixes, key, uint32(1))
	}
	program := p.receiver.ReceiveXdp
	if how.receive != nil {
		program = how.receive(p.receiver)
	}
	for i, version := range how.outer {
		p.enterPath(i, version)
		if !how.unattached {
			p.attachPath(i, program)
		}
	}
	return p
}

// setSysctls writes settings below net of a namespace.
func setSysctls(t testing.TB, n *namespace.Namespace, settings map[string]string) {
	t.Helper()
	for name, value := range settings {
		var err error
		n.Do(func() { err = os.WriteFile(filepath.Join("/proc/sys/net", name), []byte(value), 0) })
		if err != nil {
			t.Fatal(err)
		}
	}
}

// enterPath enters a path into the maps.
func (p *pair) enterPath(i int, version uint8) {
	p.t.Helper()
	name := fmt.Sprintf("p%d", i)
	from, source := index(p.t, p.a, name)
	_, destination := index(p.t, p.b, name)
	format := "10.%d.0.%d"
	if version == 6 {
		format = "fd00:%d::%d"
	}
	local := netip.MustParseAddr(fmt.Sprintf(format, 200+i, 1))
	remote := netip.MustParseAddr(fmt.Sprintf(format, 200+i, 2))
	put(p.t, p.sender.Paths, uint32(i), SenderPath{Local: MapAddress(local), Remote: MapAddress(remote), Ifindex: from,
		Mtu: 1500, Version: version, Ether: 1, Destination: destination, Source: source})
	put(p.t, p.receiver.Sources, sourceOf(local, remote), destination)
}

// attachPath attaches the programs to the devices of a path.
func (p *pair) attachPath(i int, receiver *ebpf.Program) {
	p.t.Helper()
	name := fmt.Sprintf("p%d", i)
	from, _ := index(p.t, p.a, name)
	to, _ := index(p.t, p.b, name)
	p.attach(p.a, func() (link.Link, error) {
		return link.AttachTCX(link.TCXOptions{Interface: int(from), Program: p.sender.SendEther,
			Attach: ebpf.AttachTCXEgress})
	})
	p.attach(p.b, func() (link.Link, error) {
		if receiver.Type() == ebpf.SchedCLS {
			return link.AttachTCX(link.TCXOptions{Interface: int(to), Program: receiver, Attach: ebpf.AttachTCXIngress})
		}
		return link.AttachXDP(link.XDPOptions{Interface: int(to), Program: receiver, Flags: link.XDPDriverMode})
	})
}

// attach attaches a program in a namespace until the test ends. It skips the test on kernels without TCX.
func (p *pair) attach(n *namespace.Namespace, attach func() (link.Link, error)) {
	p.t.Helper()
	var l link.Link
	var err error
	n.Do(func() { l, err = attach() })
	if errors.Is(err, ebpf.ErrNotSupported) {
		p.t.Skipf("skipped: %v", err)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = l.Close() })
}

// addSegmenter adds the device that cuts super-packets into segments.
func (p *pair) addSegmenter() {
	p.t.Helper()
	p.a.Run(p.t, "ip link add cut0 gso_max_segs 1 type veth peer name cut1")
	p.a.Run(p.t, "ip link set cut0 up")
	p.a.Run(p.t, "ip link set cut1 up")
	p.a.AwaitLinks(p.t)
	in, _ := index(p.t, p.a, "cut0")
	out, _ := index(p.t, p.a, "cut1")
	put(p.t, p.sender.SendConfig, uint32(0),
		SenderConfig{LeaseNs: math.MaxUint64, Mark: Mark, Segmenter: in, Epoch: testEpoch, Port: testPort})
	p.attach(p.a, func() (link.Link, error) {
		return link.AttachTCX(link.TCXOptions{Interface: int(out), Program: p.sender.SendSegment,
			Attach: ebpf.AttachTCXIngress})
	})
}

// counts returns the receiver's counters of all paths together.
func (p *pair) counts() (sum ReceiverReceived) {
	for i := range uint32(p.paths) {
		c := receivedOn(p.t, p.receiver, i)
		sum.Packets += c.Packets
		sum.First += c.First
		sum.Repeated += c.Repeated
		sum.Outside += c.Outside
		sum.Malformed += c.Malformed
		sum.Refused += c.Refused
		sum.Congested += c.Congested
	}
	return sum
}

// until waits until the counters meet a condition, and returns them. A copy may arrive after a transfer, which ends
// with the first copies. If the condition is not met in time, until returns the last counters.
func (p *pair) until(met func(ReceiverReceived) bool) ReceiverReceived {
	p.t.Helper()
	for deadline := time.Now().Add(wait.Patience); ; time.Sleep(time.Millisecond) {
		if c := p.counts(); met(c) || time.Now().After(deadline) {
			return c
		}
	}
}

// untilReceived is until for a number of packets.
func (p *pair) untilReceived(packets uint64) ReceiverReceived {
	p.t.Helper()
	return p.until(func(c ReceiverReceived) bool { return c.Packets >= packets })
}

// checkCounts checks that packets were filtered without an error: each was first once, and all other copies repeats.
func (p *pair) checkCounts(packets uint64) {
	p.t.Helper()
	want := ReceiverReceived{Packets: packets * uint64(p.paths), First: packets, Repeated: packets * uint64(p.paths-1)}
	if got := p.untilReceived(want.Packets); got != want {
		p.t.Errorf("the receiver counted %+v, want %+v", got, want)
	}
}

// inFlight is the number of datagrams that a veth with XDP has room for: it queues 256 packets (VETH_RING_SIZE).
const inFlight = 128

// newFlow opens the sockets of a flow. discover is the value of IP_MTU_DISCOVER, or -1 to connect the socket and keep
// the default.
func (p *pair) newFlow(ipv6 bool, segments, discover int) *traffic.Flow {
	p.t.Helper()
	o := traffic.Options{From: p.a, To: p.b, Source: innerFrom4, Destination: innerTo4, Size: 1000, Segments: segments,
		Unconnected: discover >= 0, Discover: discover, InFlight: inFlight}
	if ipv6 {
		o.Source, o.Destination = innerFrom6, innerTo6
	}
	return openFlow(p.t, o)
}

func openFlow(t testing.TB, o traffic.Options) *traffic.Flow {
	t.Helper()
	f, err := traffic.NewFlow(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// transfer sends datagrams, and returns an error unless each arrives once.
func transfer(f *traffic.Flow, count int) error {
	ctx, cancel := context.WithTimeout(context.Background(), wait.Patience)
	defer cancel()
	got, err := f.Transfer(ctx, count, 20*time.Millisecond)
	if err == nil && got != (traffic.Result{Sent: count, Arrived: count}) {
		err = fmt.Errorf("%+v, want each once", got)
	}
	return err
}

// stream sends bytes over TCP.
func (p *pair) stream(ipv6 bool, size int) traffic.StreamResult {
	p.t.Helper()
	from, to := innerFrom4, innerTo4
	if ipv6 {
		from, to = innerFrom6, innerTo6
	}
	result, err := traffic.Stream(p.a, p.b, from, to, size, wait.Patience)
	if errors.Is(err, traffic.ErrNoBBR) {
		p.t.Skipf("skipped: %v", err)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return result
}

// TestPairUDP sends the kinds of datagrams that have no unique IP identification over three paths.
func TestPairUDP(t *testing.T) {
	for _, test := range []struct {
		name     string
		outer    []uint8
		ipv6     bool
		segments int
		discover int
		count    int
	}{
		{name: "connected", outer: []uint8{4, 4, 4}, segments: 1, discover: -1, count: 4000},
		{name: "identification 0", outer: []uint8{4, 4, 4}, segments: 1, discover: unix.IP_PMTUDISC_PROBE, count: 4000},
		{name: "segments", outer: []uint8{4, 4, 4}, segments: 16, discover: -1, count: 80_000},
		{name: "segments with identification 0", outer: []uint8{4, 4, 4}, segments: 32, discover: unix.IP_PMTUDISC_DO,
			count: 16_000},
		{name: "IPv6", outer: []uint8{4, 4, 4}, ipv6: true, segments: 1, discover: -1, count: 4000},
		{name: "outer IPv6", outer: []uint8{6, 6, 6}, segments: 16, discover: -1, count: 16_000},
		{name: "outer IPv4 and IPv6", outer: []uint8{4, 6, 6, 4}, segments: 16, discover: -1, count: 16_000},
		{name: "one path", outer: []uint8{4}, segments: 16, discover: -1, count: 16_000},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPair(t, pairing{outer: test.outer, format: FormatEncapsulated})
			if err := transfer(p.newFlow(test.ipv6, test.segments, test.discover), test.count); err != nil {
				t.Error(err)
			}
			p.checkCounts(uint64(test.count))
		})
	}
}

// TestPairSegmenter sends segmented datagrams of IPv6, which need the segmenter.
func TestPairSegmenter(t *testing.T) {
	p := newPair(t, pairing{outer: []uint8{4, 6, 4}, format: FormatEncapsulated})
	p.addSegmenter()
	if err := transfer(p.newFlow(true, 16, -1), 16_000); err != nil {
		t.Error(err)
	}
	p.checkCounts(16_000)
}

// TestPairSockets sends on eight sockets at once. The kernel numbers the IP identifications of each on its own.
func TestPairSockets(t *testing.T) {
	p := newPair(t, pairing{outer: []uint8{4, 4, 4}, format: FormatEncapsulated})
	const sockets, count = 8, 1000
	done := make(chan error, sockets)
	for range sockets {
		f := p.newFlow(false, 1, -1)
		go func() { done <- transfer(f, count) }()
	}
	for range sockets {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	p.checkCounts(sockets * count)
}

// TestPairTCP sends a stream with BBR, whose segments the network stack cuts, and compares the received bytes.
func TestPairTCP(t *testing.T) {
	for _, test := range []struct {
		name  string
		outer []uint8
		ipv6  bool
	}{
		{"IPv4", []uint8{4, 4, 4}, false}, {"IPv6", []uint8{4, 4, 4}, true}, {"outer IPv6", []uint8{6, 6, 6}, false},
		{"outer IPv4 and IPv6", []uint8{4, 6}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPair(t, pairing{outer: test.outer, format: FormatEncapsulated})
			p.stream(test.ipv6, 16<<20)
			c := p.counts()
			if c.Outside+c.Malformed+c.Refused+c.Congested > 0 || c.First == 0 ||
				c.Repeated > c.First*uint64(p.paths-1) {
				t.Errorf("the receiver counted %+v", c)
			}
		})
	}
}
