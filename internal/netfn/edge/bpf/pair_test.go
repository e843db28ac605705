package bpf

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/test/namespace"
)

// patience bounds every wait for packets.
const patience = 20 * time.Second

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
	// unattached: the test attaches the programs.
	unattached bool
}

// newPair connects two namespaces and attaches the programs. All packets from the inner addresses of the first
// namespace to those of the second one leave on all paths.
func newPair(t testing.TB, how pairing) *pair {
	t.Helper()
	p := &pair{t: t, a: namespace.New(t), b: namespace.New(t), paths: len(how.outer),
		sender: &SenderObjects{}, receiver: newReceiver(t, ReceiverConfig{Epoch: testEpoch, Port: testPort})}
	loadInto(t, unpinned(t, LoadSender), p.sender)
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

// attach attaches a program in a namespace until the test ends.
func (p *pair) attach(n *namespace.Namespace, attach func() (link.Link, error)) {
	p.t.Helper()
	var l link.Link
	var err error
	n.Do(func() { l, err = attach() })
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

// checkCounts checks that packets were filtered without an error: each was first once, and all other copies repeats.
func (p *pair) checkCounts(packets uint64) {
	p.t.Helper()
	want := ReceiverReceived{Packets: packets * uint64(p.paths), First: packets, Repeated: packets * uint64(p.paths-1)}
	if got := p.counts(); got != want {
		p.t.Errorf("the receiver counted %+v, want %+v", got, want)
	}
}

// flow is datagrams between two sockets, which carry their number.
type flow struct {
	from, to *net.UDPConn
	remote   netip.AddrPort
	size     int
	segments int // datagrams per system call
	inFlight int // greatest number of datagrams that are sent and not received
	seen     []uint8
	received atomic.Int64
}

// newFlow opens the sockets of a flow. discover is the value of IP_MTU_DISCOVER, or -1 to connect the socket and keep
// the default.
func (p *pair) newFlow(ipv6 bool, segments, discover int) *flow {
	p.t.Helper()
	// A veth with XDP queues 256 packets (VETH_RING_SIZE).
	f := &flow{size: 1000, segments: segments, inFlight: 128}
	from, to := netip.AddrPortFrom(innerFrom4, 0), netip.AddrPortFrom(innerTo4, 0)
	if ipv6 {
		from, to = netip.AddrPortFrom(innerFrom6, 0), netip.AddrPortFrom(innerTo6, 0)
	}
	f.to = listen(p.t, p.b, to)
	f.remote = f.to.LocalAddr().(*net.UDPAddr).AddrPort()
	if discover < 0 {
		var err error
		p.a.Do(func() {
			f.from, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(from), net.UDPAddrFromAddrPort(f.remote))
		})
		if err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() { _ = f.from.Close() })
	} else {
		f.from = listen(p.t, p.a, from)
		setOption(p.t, f.from, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, discover)
	}
	if segments > 1 {
		setOption(p.t, f.from, unix.SOL_UDP, unix.UDP_SEGMENT, f.size)
	}
	setOption(p.t, f.to, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20)
	return f
}

func listen(t testing.TB, n *namespace.Namespace, address netip.AddrPort) (conn *net.UDPConn) {
	t.Helper()
	var err error
	n.Do(func() { conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(address)) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func setOption(t testing.TB, conn *net.UDPConn, level, option, value int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), level, option, value)
	}); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}

// transfer sends a number of datagrams, a multiple of the segments, and returns an error unless each arrives once.
func (f *flow) transfer(count int) error {
	f.seen = make([]uint8, count)
	deadline := time.Now().Add(patience)
	if err := f.to.SetReadDeadline(deadline); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- f.receive(count) }()
	buffer := make([]byte, f.size*f.segments)
	for sent := 0; sent < count; {
		for sent-int(f.received.Load()) > f.inFlight-f.segments {
			if time.Now().After(deadline) {
				return fmt.Errorf("%d of %d sent datagrams arrived", f.received.Load(), sent)
			}
			time.Sleep(20 * time.Microsecond)
		}
		for i := range f.segments {
			binary.BigEndian.PutUint32(buffer[i*f.size:], uint32(sent+i))
		}
		var err error
		if f.from.RemoteAddr() != nil {
			_, err = f.from.Write(buffer)
		} else {
			_, err = f.from.WriteToUDPAddrPort(buffer, f.remote)
		}
		if err != nil {
			return err
		}
		sent += f.segments
	}
	if err := <-done; err != nil {
		return err
	}
	// Whatever arrives now is a repeat.
	if err := f.to.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		return err
	}
	if n, err := f.to.Read(buffer); err == nil {
		return fmt.Errorf("one datagram too many, of %d bytes", n)
	}
	return nil
}

func (f *flow) receive(count int) error {
	buffer := make([]byte, 2000)
	for i := range count {
		n, err := f.to.Read(buffer)
		if err != nil {
			return fmt.Errorf("datagram %d of %d: %w", i, count, err)
		}
		number := binary.BigEndian.Uint32(buffer)
		if n != f.size || number >= uint32(count) {
			return fmt.Errorf("datagram of %d bytes with number %d", n, number)
		}
		if f.seen[number]++; f.seen[number] > 1 {
			return fmt.Errorf("datagram %d arrived twice", number)
		}
		f.received.Add(1)
	}
	return nil
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
			if err := p.newFlow(test.ipv6, test.segments, test.discover).transfer(test.count); err != nil {
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
	if err := p.newFlow(true, 16, -1).transfer(16_000); err != nil {
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
		go func() { done <- f.transfer(count) }()
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

// stream sends bytes over TCP with BBR, and returns the time and the number of retransmitted segments.
func (p *pair) stream(ipv6 bool, size int) (elapsed time.Duration, retransmitted uint32) {
	p.t.Helper()
	from, to := netip.AddrPortFrom(innerFrom4, 0), netip.AddrPortFrom(innerTo4, 0)
	if ipv6 {
		from, to = netip.AddrPortFrom(innerFrom6, 0), netip.AddrPortFrom(innerTo6, 0)
	}
	var listener *net.TCPListener
	var err error
	p.b.Do(func() { listener, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(to)) })
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	done := make(chan error, 1)
	sum := sha256.New()
	go func() {
		conn, err := listener.AcceptTCP()
		if err == nil {
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(patience))
			_, err = io.CopyBuffer(sum, struct{ io.Reader }{conn}, make([]byte, 1<<18))
		}
		done <- err
	}()
	var conn *net.TCPConn
	p.a.Do(func() {
		conn, err = net.DialTCP("tcp", net.TCPAddrFromAddrPort(from), listener.Addr().(*net.TCPAddr))
	})
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.SyscallConn()
	if err != nil {
		p.t.Fatal(err)
	}
	var info *unix.TCPInfo
	_ = raw.Control(func(fd uintptr) {
		err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "bbr")
	})
	if err != nil {
		p.t.Skipf("skipped: the kernel has no BBR: %v", err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	want := sha256.New()
	block := make([]byte, 1<<18)
	began := time.Now()
	for sent := 0; sent < size; sent += len(block) {
		binary.BigEndian.PutUint64(block, uint64(sent))
		_, _ = want.Write(block)
		if _, err := conn.Write(block); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := conn.CloseWrite(); err != nil {
		p.t.Fatal(err)
	}
	if err := <-done; err != nil {
		p.t.Fatal(err)
	}
	elapsed = time.Since(began)
	_ = raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err != nil {
		p.t.Fatal(err)
	}
	if string(want.Sum(nil)) != string(sum.Sum(nil)) {
		p.t.Error("the received bytes differ from the sent ones")
	}
	return elapsed, info.Total_retrans
}
