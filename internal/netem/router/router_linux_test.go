package router_test

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/netem/middlebox"
	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/test/wait"
)

// patience is far longer than any operation in these tests.
const patience = wait.Patience

var (
	first  = netip.MustParseAddr("198.18.0.1")
	second = netip.MustParseAddr("198.18.0.2")
)

// pair is a plan of two namespaces with a wire each way.
func pair(t testing.TB, forth, back string) router.Plan {
	return router.Plan{
		Namespaces: []router.Namespace{
			{Name: "first", Interfaces: []router.Interface{{Name: "path0", Address: netip.PrefixFrom(first, 24)}}},
			{Name: "second", Interfaces: []router.Interface{{Name: "path0", Address: netip.PrefixFrom(second, 24)}}},
		},
		Wires:  []router.Wire{{Name: "forth", Config: profile(t, forth)}, {Name: "back", Config: profile(t, back)}},
		Routes: []router.Route{{From: first, To: second, Wires: []int{0}}, {From: second, To: first, Wires: []int{1}}},
		Seed:   1,
	}
}

// start starts a router, or skips the test if that is not permitted.
func start(t testing.TB, plan router.Plan) *router.Router {
	t.Helper()
	r, err := router.Start(plan)
	if errors.Is(err, router.ErrPrivileges) || errors.Is(err, router.ErrTUN) {
		t.Skipf("skipped: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// udp opens a socket in a namespace.
func udp(t testing.TB, r *router.Router, index int, address netip.Addr) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	err := r.Inside(index, func() (err error) {
		conn, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, 0)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// setOption sets an option of IPv4 of a socket.
func setOption(t *testing.T, conn *net.UDPConn, option, value int) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var set error
	if err := raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, option, value)
	}); err != nil || set != nil {
		t.Fatal(err, set)
	}
}

// readECN returns the codepoint of the next packet. The socket must have IP_RECVTOS.
func readECN(t *testing.T, conn *net.UDPConn) ecn.Codepoint {
	t.Helper()
	buffer, control := make([]byte, 2000), make([]byte, 100)
	_, controls, _, _, err := conn.ReadMsgUDPAddrPort(buffer, control)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:controls])
	if err != nil || len(messages) != 1 {
		t.Fatal(messages, err)
	}
	return ecn.Codepoint(messages[0].Data[0])
}

// TestRouterMarks overloads a marking queue. Every received packet has a header checksum that the kernel accepts, and
// the received marks are those that were made.
func TestRouterMarks(t *testing.T) {
	r := start(t, pair(t, "rate=5Mbit,queue=codel:1s", ""))
	from, to := udp(t, r, 0, first), udp(t, r, 1, second)
	setOption(t, from, unix.IP_TOS, int(ecn.ECT0))
	setOption(t, to, unix.IP_RECVTOS, 1)
	// 100 packets of 1,250 bytes take 200 ms: packets wait for longer than 5 ms, and after 100 ms of that CoDel marks.
	const count = 100
	for range count {
		if _, err := from.WriteTo(make([]byte, 1222), to.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	marked := 0
	for range count {
		switch codepoint := readECN(t, to); codepoint {
		case ecn.CE:
			marked++
		case ecn.ECT0:
		default:
			t.Errorf("a packet arrived with the codepoint %d", codepoint)
		}
	}
	if s := r.Statistics(); marked == 0 || uint64(marked) != s.Wires[0].Marked || s.Malformed != 0 || s.Refused != 0 {
		t.Errorf("%d marks arrived, %d were made; %d malformed, %d refused", marked, s.Wires[0].Marked,
			s.Malformed, s.Refused)
	}
}

// TestRouterTreatsECN: the treatment of the ECN field changes real packets, with checksums that the kernel accepts.
func TestRouterTreatsECN(t *testing.T) {
	r := start(t, pair(t, "", ""))
	from, to := udp(t, r, 0, first), udp(t, r, 1, second)
	setOption(t, to, unix.IP_RECVTOS, 1)
	send := func(codepoint ecn.Codepoint) {
		t.Helper()
		setOption(t, from, unix.IP_TOS, int(codepoint))
		if _, err := from.WriteTo(make([]byte, 1000), to.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		treatment string
		arrives   ecn.Codepoint
	}{
		{netem.ECNKeep, ecn.ECT1}, {netem.ECNClear, ecn.NotECT}, {netem.ECNECT0, ecn.ECT0},
		{netem.ECNMark, ecn.CE},
	} {
		if err := r.Configure(0, profile(t, "ecn="+test.treatment)); err != nil {
			t.Fatal(err)
		}
		send(ecn.ECT1)
		if got := readECN(t, to); got != test.arrives {
			t.Errorf("%s: ECT(1) arrives as %d, expected %d", test.treatment, got, test.arrives)
		}
	}
	if err := r.Configure(0, profile(t, "ecn=drop")); err != nil {
		t.Fatal(err)
	}
	send(ecn.ECT1)
	send(ecn.NotECT)
	if got := readECN(t, to); got != ecn.NotECT {
		t.Errorf("drop: the first packet that arrives has the codepoint %d, expected Not-ECT", got)
	}
	if s := r.Statistics(); s.Wires[0].DroppedECN != 1 || s.Malformed != 0 || s.Refused != 0 {
		t.Errorf("%+v, %d malformed, %d refused; expected one packet dropped for its codepoint", s.Wires[0].Stats,
			s.Malformed, s.Refused)
	}
}

// TestRouterEthernet: with Ethernet, a packet takes the path of the interface and the link-layer destination with which
// it leaves, whatever its IP addresses.
func TestRouterEthernet(t *testing.T) {
	other := map[netip.Addr]netip.Addr{
		first: netip.MustParseAddr("198.18.1.1"), second: netip.MustParseAddr("198.18.1.2"),
	}
	plan := pair(t, "", "")
	plan.Ethernet = true
	for i := range plan.Namespaces {
		n := &plan.Namespaces[i]
		address := n.Interfaces[0].Address
		n.Interfaces[0].Address6 = netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 0, 2, 15: byte(i + 1)}), 64)
		n.Interfaces = append(n.Interfaces, router.Interface{Name: "path1",
			Address: netip.PrefixFrom(other[address.Addr()], 24)})
		// The answers come to an interface that the reverse path does not have.
		n.Sysctls = map[string]string{"net.ipv4.conf.all.rp_filter": "0", "net.ipv4.conf.path1.rp_filter": "0"}
	}
	plan.Wires = append(plan.Wires, router.Wire{Name: "parallel", Config: profile(t, "ecn=mark")})
	plan.Routes = append(plan.Routes, router.Route{From: other[first], To: other[second], Wires: []int{2}},
		router.Route{From: plan.Namespaces[0].Interfaces[0].Address6.Addr(),
			To: plan.Namespaces[1].Interfaces[0].Address6.Addr(), Wires: []int{0}})
	r := start(t, plan)

	from, to := udp(t, r, 0, first), udp(t, r, 1, second)
	setOption(t, from, unix.IP_TOS, int(ecn.ECT1))
	setOption(t, to, unix.IP_RECVTOS, 1)
	send := func() {
		t.Helper()
		if _, err := from.WriteTo(make([]byte, 1000), to.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	send()
	if got := readECN(t, to); got != ecn.ECT1 {
		t.Errorf("the first path: ECT(1) arrives as %d, expected no change", got)
	}
	// The same addresses over the other interface: by a route whose next hop is the neighbour there.
	if err := r.Inside(0, func() error {
		link, err := netlink.LinkByName("path1")
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: other[second].AsSlice(),
			Dst: &net.IPNet{IP: second.AsSlice(), Mask: net.CIDRMask(32, 32)}})
	}); err != nil {
		t.Fatal(err)
	}
	send()
	if got := readECN(t, to); got != ecn.CE {
		t.Errorf("the parallel path: ECT(1) arrives as %d, expected CE", got)
	}
	s := r.Statistics()
	if s.Wires[0].Delivered != 1 || s.Wires[2].Delivered != 1 || s.Wires[2].DeliveredBytes != 1028 || s.Refused != 0 ||
		s.Malformed != 0 {
		t.Errorf("%+v, expected a packet of 1,028 bytes on each path", s)
	}

	var conn6, sender6 *net.UDPConn
	listen := func(index int, conn **net.UDPConn) {
		t.Helper()
		if err := r.Inside(index, func() (err error) {
			*conn, err = net.ListenUDP("udp6", net.UDPAddrFromAddrPort(
				netip.AddrPortFrom(plan.Namespaces[index].Interfaces[0].Address6.Addr(), 0)))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = (*conn).Close() })
	}
	listen(0, &sender6)
	listen(1, &conn6)
	if err := conn6.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := sender6.WriteTo([]byte("hello"), conn6.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	if count, _, err := conn6.ReadFrom(make([]byte, 10)); err != nil || count != 5 {
		t.Errorf("%d bytes over IPv6, %v", count, err)
	}
}

// TestRouterTCP sends 2 MB with the kernel's Cubic over a link with losses.
func TestRouterTCP(t *testing.T) {
	r := start(t, pair(t, "delay=2ms,rate=50Mbit,loss=0.5%,queue=fq_codel:50ms", "delay=2ms"))
	var listener net.Listener
	if err := r.Inside(1, func() (err error) {
		listener, err = net.Listen("tcp4", netip.AddrPortFrom(second, 0).String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	received := make(chan int)
	go func() {
		total := 0
		defer func() { received <- total }()
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		buffer := make([]byte, 64<<10)
		for {
			count, err := conn.Read(buffer)
			if total += count; err != nil {
				return
			}
		}
	}()
	var conn net.Conn
	if err := r.Inside(0, func() (err error) {
		conn, err = net.DialTimeout("tcp4", listener.Addr().String(), patience)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var set error
	if err := raw.Control(func(fd uintptr) {
		set = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION,
			"cubic")
	}); err != nil || set != nil {
		t.Fatal(err, set)
	}
	const size = 2 << 20
	if err := errors.Join(conn.SetDeadline(time.Now().Add(patience)), write(conn, size), conn.Close()); err != nil {
		t.Fatal(err)
	}
	if got := <-received; got != size {
		t.Errorf("%d bytes arrived, expected %d", got, size)
	}
	if s := r.Statistics(); s.Wires[0].LostRandom == 0 || s.Wires[1].Delivered == 0 ||
		s.Interfaces[0].SentBytes < size {
		t.Errorf("%+v, expected losses and acknowledgements", s.Wires[0].Stats)
	}
}

func write(conn net.Conn, size int) error {
	_, err := conn.Write(make([]byte, size))
	return err
}

// TestRouterDrops sends packets that the router cannot route.
func TestRouterDrops(t *testing.T) {
	r := start(t, pair(t, "", ""))
	conn := udp(t, r, 0, first)
	for _, to := range []string{"198.18.0.3:9", "198.18.0.2:9"} {
		if _, err := conn.WriteTo([]byte("hello"), net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to))); err != nil {
			t.Fatal(err)
		}
	}
	// The second has a route to a port without a listener, and the host answers with ICMP.
	wait.Until(t, "one packet is delivered and the other has no route", func() bool {
		s := r.Statistics()
		return s.Wires[1].Delivered == 1 && s.Unroutable == 1
	})
}

func TestRouterRefuses(t *testing.T) {
	start(t, pair(t, "", "")) // skips without root
	for says, change := range map[string]func(*router.Plan){
		"loss is 2": func(p *router.Plan) { p.Wires[0].Config.Loss = 2 },
		"no interface has the address 10.0.0.1": func(p *router.Plan) {
			p.Routes[0].To = netip.MustParseAddr("10.0.0.1")
		},
		"no interface has the address 10.0.0.2": func(p *router.Plan) {
			p.Routes[0].From = netip.MustParseAddr("10.0.0.2")
		},
		"sysctl net.ipv4.no_such = 1": func(p *router.Plan) {
			p.Namespaces[1].Sysctls = map[string]string{"net.ipv4.no_such": "1"}
		},
		"interface a-name-that-is-far-too-long": func(p *router.Plan) {
			p.Namespaces[1].Interfaces[0].Name = "a-name-that-is-far-too-long"
		},
	} {
		plan := pair(t, "", "")
		change(&plan)
		if r, err := router.Start(plan); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, expected %q", err, says)
			if err == nil {
				_ = r.Close()
			}
		}
	}
}

func TestRouterClosed(t *testing.T) {
	r := start(t, pair(t, "", ""))
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Error(err)
	}
	if err := r.Configure(0, netem.Config{}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v, expected net.ErrClosed", err)
	}
	r.Restart()
	if s := r.Statistics(); s.Duration != 0 || len(s.Wires) != 0 {
		t.Errorf("%+v of a router that is closed", s)
	}
}

// BenchmarkRouter sends packets of 1,200 bytes from one namespace to another as fast as a socket sends, and reports the
// time of the router's own thread per packet.
func BenchmarkRouter(b *testing.B) {
	for _, bench := range []struct{ name, profile string }{
		{"wire", ""}, {"delay", "delay=1ms"}, {"shaped", "delay=1ms,rate=10Gbit,queue=8MB"},
		{"fq", "delay=1ms,rate=10Gbit,queue=fq:8MB"},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := start(b, pair(b, bench.profile, ""))
			from, to := udp(b, r, 0, first), udp(b, r, 1, second)
			if err := to.SetReadBuffer(4 << 20); err != nil {
				b.Fatal(err)
			}
			go func() {
				buffer := make([]byte, 2000)
				for {
					if _, _, err := to.ReadFromUDPAddrPort(buffer); err != nil {
						return
					}
				}
			}()
			payload, target := make([]byte, 1172), to.LocalAddr().(*net.UDPAddr).AddrPort()
			r.Restart()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := from.WriteToUDPAddrPort(payload, target); err != nil {
					b.Fatal(err)
				}
			}
			s := r.Statistics()
			passed := float64(max(s.Packets(), 1))
			b.ReportMetric(float64(s.CPU.Nanoseconds())/passed, "ns-cpu/packet")
			b.ReportMetric(passed/b.Elapsed().Seconds(), "packets/s")
			b.ReportMetric(passed/float64(b.N), "passed/packet")
		})
	}
}

// TestBox: a host behind a NAT reaches another host, which sees the address of the NAT, and small packets alone pass.
func TestBox(t *testing.T) {
	plan := pair(t, "", "")
	outer := netip.MustParseAddr("198.18.0.9")
	near := &plan.Namespaces[0].Interfaces[0]
	near.Box, near.Outer, near.MTU = middlebox.Chain{middlebox.MTU(500), middlebox.NewNAT(outer, false)}, outer, 1280
	plan.Routes[0].From, plan.Routes[1].To = outer, outer
	r := start(t, plan)
	here, there := udp(t, r, 0, first), udp(t, r, 1, second)
	to := there.LocalAddr().(*net.UDPAddr)
	buffer := make([]byte, 1500)
	for _, size := range []int{1000, 100} {
		if _, err := here.WriteToUDP(make([]byte, size), to); err != nil {
			t.Fatal(err)
		}
	}
	if err := there.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	n, from, err := there.ReadFromUDP(buffer)
	if err != nil || n != 100 || from.AddrPort().Addr().Unmap() != outer {
		t.Fatalf("received %d bytes from %v, %v, expected 100 from %v", n, from, err, outer)
	}
	if _, err := there.WriteToUDP([]byte("answer"), from); err != nil {
		t.Fatal(err)
	}
	if err := here.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if n, _, err := here.ReadFromUDP(buffer); err != nil || string(buffer[:n]) != "answer" {
		t.Fatalf("received %q, %v", buffer[:n], err)
	}
	if boxed := r.Statistics().Interfaces[0].Boxed; boxed != 1 {
		t.Errorf("%d packets were dropped by the box, expected 1", boxed)
	}
}
