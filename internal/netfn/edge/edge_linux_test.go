package edge

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netfn/edge/channel"
	"github.com/volsfu/volsfu/test/namespace"
	"github.com/volsfu/volsfu/test/wait"
)

// edgeVariable makes this program an edge with the configuration file that the variable names, and dropVariable takes
// the edge's capabilities away.
const edgeVariable, dropVariable = "VOLSFU_TEST_EDGE", "VOLSFU_TEST_DROP"

func TestMain(m *testing.M) {
	if file := os.Getenv(edgeVariable); file != "" {
		os.Exit(runEdge(file))
	}
	os.Exit(m.Run())
}

// runEdge runs an edge until SIGTERM. It prints "ready" or an error, and for each line of input, which is an order or
// empty, the status.
func runEdge(file string) int {
	config, err := Load(file)
	if os.Getenv(dropVariable) != "" {
		// Capabilities are those of a thread; New calls the kernel on this one.
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			panic(err)
		}
	}
	var e *Edge
	if err == nil {
		log := zap.NewNop()
		if os.Getenv("VOLSFU_TEST_LOG") != "" {
			if log, err = zap.NewDevelopment(); err != nil {
				panic(err)
			}
		}
		e, err = New(config, log)
	}
	if err != nil {
		fmt.Println(err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			if text := lines.Bytes(); len(text) > 0 {
				var o Order
				err := json.Unmarshal(text, &o)
				if err == nil {
					err = e.Set(o)
				}
				if err != nil {
					panic(err)
				}
			}
			status, err := e.Status()
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			if err := json.NewEncoder(os.Stdout).Encode(status); err != nil {
				return
			}
		}
	}()
	fmt.Println("ready")
	if err := e.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// bed is two hosts, a and b, in namespaces of their own with parallel links p0, p1 and so on.
type bed struct {
	t     *testing.T
	links int
	// ipv6 says that all addresses are of IPv6, and both that both hosts send.
	ipv6, both bool
	// user is the user of the edges, which then have CAP_NET_ADMIN and CAP_BPF only; 0 is root.
	user  uint32
	hosts map[string]*host
}

// number returns the last number of a host's addresses.
func number(name string) int { return map[string]int{"a": 1, "b": 2}[name] }

// inner returns the inner address of a host.
func (b *bed) inner(name string) netip.Addr {
	if b.ipv6 {
		return netip.MustParseAddr(fmt.Sprintf("fd00:%d::1", 19+number(name)))
	}
	return netip.MustParseAddr(fmt.Sprintf("10.%d.0.1", 19+number(name)))
}

// innerPrefix returns the prefix of the inner address of a host.
func (b *bed) innerPrefix(name string) netip.Prefix {
	bits := 16
	if b.ipv6 {
		bits = 32
	}
	return netip.PrefixFrom(b.inner(name), bits).Masked()
}

// outer returns the address of a host on a link.
func (b *bed) outer(name string, i int) netip.Addr {
	if b.ipv6 {
		return netip.MustParseAddr(fmt.Sprintf("fd00:9:%d::%d", i, number(name)))
	}
	return netip.MustParseAddr(fmt.Sprintf("10.9.%d.%d", i, number(name)))
}

type host struct {
	*namespace.Namespace
	name, state string
}

func newBed(t *testing.T, links int) *bed {
	t.Helper()
	b := &bed{t: t, links: links, hosts: map[string]*host{}}
	b.build()
	return b
}

func (b *bed) build() {
	t := b.t
	t.Helper()
	for _, name := range []string{"a", "b"} {
		h := &host{Namespace: namespace.New(t), name: name, state: t.TempDir()}
		b.hosts[name] = h
		pins := filepath.Join(h.state, "bpf")
		if err := os.Mkdir(pins, 0o700); err != nil {
			t.Fatal(err)
		}
		var err error
		h.Do(func() { err = unix.Mount("bpf", pins, "bpf", 0, "") })
		if err != nil {
			t.Skipf("skipped: a BPF file system cannot be mounted: %v", err)
		}
		h.Run(t, "ip link set lo up")
		h.Run(t, fmt.Sprintf("ip address add %s dev lo", b.inner(name)))
	}
	for i := range b.links {
		b.plug(i)
	}
	for name, peer := range map[string]string{"a": "b", "b": "a"} {
		b.hosts[name].Run(t, fmt.Sprintf("ip route add %s via %s src %s", b.innerPrefix(peer), b.outer(peer, 0),
			b.inner(name)))
	}
}

// plug makes link i.
func (b *bed) plug(i int) {
	b.t.Helper()
	a, other := b.hosts["a"], b.hosts["b"]
	a.Run(b.t, fmt.Sprintf("ip link add p%d type veth peer name p%d netns %d", i, i, other.Thread))
	for name, h := range b.hosts {
		address := fmt.Sprintf("ip address add %s/24 dev p%d", b.outer(name, i), i)
		if b.ipv6 {
			address = fmt.Sprintf("ip address add %s/64 dev p%d nodad", b.outer(name, i), i)
		}
		h.Run(b.t, address)
		h.Run(b.t, fmt.Sprintf("ip link set p%d up", i))
	}
}

// config writes the configuration of the edge at a host: a sends to b.
func (b *bed) config(name, copies string) string {
	b.t.Helper()
	h, peer := b.hosts[name], map[string]string{"a": "b", "b": "a"}[name]
	key := filepath.Join(h.state, "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("5a", 32)+"\n"), 0o600); err != nil {
		b.t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "name: %s\npeer: %s\nkey-file: %s\nstate: %s\npaths:\n", name, peer, key, h.state)
	for i := range b.links {
		fmt.Fprintf(&text, "  - {name: path%d, interface: p%d, local: %q, remote: %q}\n", i, i, b.outer(name, i),
			b.outer(peer, i))
	}
	if name == "a" || b.both {
		fmt.Fprintf(&text, "send: {rules: [{name: all, to: %q, copies: %s}]}\n", b.innerPrefix(peer), copies)
	}
	if name == "b" || b.both {
		fmt.Fprintf(&text, "receive: {inner: [%q]}\n", b.innerPrefix(peer))
	}
	file := filepath.Join(h.state, "edge.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return file
}

// process is an edge in a process of its own.
type process struct {
	t       *testing.T
	command *exec.Cmd
	input   io.Writer
	output  *bufio.Scanner
	ended   bool
}

// start starts the edge of a host.
func (b *bed) start(name, copies string) *process {
	b.t.Helper()
	p, first := b.launch(name, b.config(name, copies))
	if first != "ready" {
		b.t.Fatalf("the edge %s printed %q", name, first)
	}
	return p
}

// launch starts a process and returns the first line that it prints.
func (b *bed) launch(name, config string, variables ...string) (*process, string) {
	b.t.Helper()
	p := &process{t: b.t, command: exec.Command("/proc/self/exe")}
	p.command.Env = append(append(os.Environ(), edgeVariable+"="+config), variables...)
	p.command.Stderr = os.Stderr
	// The thread of the namespace lives as long as the test.
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if b.user != 0 {
		p.command.SysProcAttr.Credential = &syscall.Credential{Uid: b.user, Gid: b.user}
		p.command.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_BPF}
	}
	input, err := p.command.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	output, err := p.command.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	b.hosts[name].Do(func() { err = p.command.Start() })
	if err != nil {
		b.t.Fatal(err)
	}
	p.input, p.output = input, bufio.NewScanner(output)
	b.t.Cleanup(func() { p.end(syscall.SIGKILL) })
	p.output.Scan()
	return p, p.output.Text()
}

// end sends a signal and waits for the end of the process.
func (p *process) end(with syscall.Signal) {
	if p.ended {
		return
	}
	p.ended = true
	_ = p.command.Process.Signal(with)
	if err := p.command.Wait(); err != nil && with == syscall.SIGTERM {
		p.t.Errorf("the edge ended with %v", err)
	}
}

// status carries out an order, "" for none, and returns the status.
func (p *process) status(order string) Status {
	p.t.Helper()
	var s Status
	if _, err := fmt.Fprintln(p.input, order); err != nil {
		p.t.Fatal(err)
	}
	if !p.output.Scan() {
		p.t.Fatalf("the edge printed no status: %v", p.output.Err())
	}
	if err := json.Unmarshal(p.output.Bytes(), &s); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// untilCopied waits until the sender copies onto the named paths.
func (p *process) untilCopied(paths ...string) {
	p.t.Helper()
	wait.Until(p.t, "the sender copies onto "+strings.Join(paths, ", "), func() bool {
		s := p.status("")
		return s.PeerAlive && strings.Join(s.Rules[0].Set, ",") == strings.Join(paths, ",")
	})
}

// stream sends numbered packets from a to b and counts what arrives.
type stream struct {
	bed      *bed
	from, to *net.UDPConn
	sent     uint64
	mu       sync.Mutex
	arrived  map[uint64]int
	done     chan struct{}
	// sending and receiving end with the goroutines.
	sending, receiving sync.WaitGroup
}

// newStream sends a packet per millisecond until stop.
func (b *bed) newStream() *stream {
	b.t.Helper()
	s := &stream{bed: b, arrived: map[uint64]int{}, done: make(chan struct{})}
	var err, err2 error
	from := net.UDPAddrFromAddrPort(netip.AddrPortFrom(b.inner("a"), 5000))
	to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(b.inner("b"), 6000))
	b.hosts["b"].Do(func() { s.to, err = net.ListenUDP("udp", to) })
	b.hosts["a"].Do(func() { s.from, err2 = net.DialUDP("udp", from, to) })
	if err := errors.Join(err, err2); err != nil {
		b.t.Fatal(err)
	}
	s.receiving.Go(s.receive)
	s.sending.Go(s.send)
	return s
}

func (s *stream) receive() {
	data := make([]byte, 2048)
	for {
		n, err := s.to.Read(data)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.arrived[binary.BigEndian.Uint64(data[:n])]++
		s.mu.Unlock()
	}
}

func (s *stream) send() {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	data := make([]byte, 200)
	for {
		select {
		case <-s.done:
			return
		case <-ticker.C:
			binary.BigEndian.PutUint64(data, s.sent)
			if _, err := s.from.Write(data); err != nil {
				s.bed.t.Errorf("packet %d was not sent: %v", s.sent, err)
			}
			s.mu.Lock()
			s.sent++
			s.mu.Unlock()
		}
	}
}

// count returns the packets sent so far.
func (s *stream) count() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// more waits until n more packets were sent.
func (s *stream) more(n uint64) {
	until := s.count() + n
	wait.Until(s.bed.t, "packets are sent", func() bool { return s.count() >= until })
}

// end ends the stream.
func (s *stream) end() {
	_ = s.to.Close()
	s.receiving.Wait()
	_ = s.from.Close()
}

// stop ends the stream, and fails the test unless every packet arrived exactly once.
func (s *stream) stop() {
	s.bed.t.Helper()
	close(s.done)
	s.sending.Wait()
	judge := func() (lost, repeated []uint64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := range s.sent {
			switch n := s.arrived[i]; {
			case n == 0:
				lost = append(lost, i)
			case n > 1:
				repeated = append(repeated, i)
			}
		}
		return lost, repeated
	}
	end := time.Now().Add(2 * time.Second)
	for lost, _ := judge(); lost != nil && time.Now().Before(end); lost, _ = judge() {
		time.Sleep(10 * time.Millisecond)
	}
	s.end()
	if lost, repeated := judge(); lost != nil || repeated != nil || s.sent == 0 {
		s.bed.t.Errorf("of %d packets, %d were lost, %v, and %d arrived more than once, %v", s.sent, len(lost), lost,
			len(repeated), repeated)
		return
	}
	s.bed.t.Logf("%d packets, none lost, none repeated", s.sent)
}

// left returns what a host has of edges: programs at interfaces, pins, filters, and files of changes.
func (h *host) left(t *testing.T) (found []string) {
	t.Helper()
	h.Do(func() {
		devices, err := netlink.LinkList()
		if err != nil {
			t.Error(err)
			return
		}
		for _, device := range devices {
			if xdp := device.Attrs().Xdp; xdp != nil && xdp.Attached {
				found = append(found, "XDP at "+device.Attrs().Name)
			}
			for _, d := range []direction{inward, outward} {
				attached, err := link.QueryPrograms(link.QueryOptions{Target: device.Attrs().Index,
					Attach: d.attachType()})
				if err == nil && len(attached.Programs) > 0 {
					found = append(found, "TCX at "+device.Attrs().Name)
				}
				if filters, err := netlink.FilterList(device, d.parent()); err == nil && len(filters) > 0 {
					found = append(found, "a filter at "+device.Attrs().Name)
				}
			}
			if strings.HasPrefix(device.Attrs().Name, "vn") {
				found = append(found, "the interface "+device.Attrs().Name)
			}
		}
		entries, err := os.ReadDir(filepath.Join(h.state, "bpf"))
		if err != nil {
			t.Error(err)
		}
		for _, entry := range entries {
			// The kernel puts maps.debug and progs.debug into each BPF file system.
			if !strings.HasSuffix(entry.Name(), ".debug") {
				found = append(found, "the pin "+entry.Name())
			}
		}
		if _, err := os.Stat(filepath.Join(h.state, h.name+".changes")); err == nil {
			found = append(found, "changes of the host")
		}
	})
	return found
}

// routeMTU returns the MTU of the route to an address, 0 for none.
func (h *host) routeMTU(t *testing.T, address string) (mtu int) {
	t.Helper()
	h.Do(func() {
		routes, err := netlink.RouteGetWithOptions(net.ParseIP(address), &netlink.RouteGetOptions{FIBMatch: true})
		if err != nil || len(routes) == 0 {
			t.Errorf("no route to %s: %v", address, err)
			return
		}
		mtu = routes[0].MTU
	})
	return mtu
}

// TestCopies starts a pair, copies over three paths, unplugs and replugs one of them, and ends both edges.
func TestCopies(t *testing.T) {
	b := newBed(t, 3)
	before := b.hosts["a"].routeMTU(t, "10.21.0.1")
	receiver, sender := b.start("b", ""), b.start("a", "all")
	sender.untilCopied("path0", "path1", "path2")
	if mtu := b.hosts["a"].routeMTU(t, "10.21.0.1"); mtu != 1456 {
		t.Errorf("the MTU of the route is %d, expected 1456", mtu)
	}
	s := b.newStream()
	s.more(200)
	b.hosts["a"].Run(t, "ip link del p2")
	sender.untilCopied("path0", "path1")
	s.more(100)
	b.plug(2)
	sender.untilCopied("path0", "path1", "path2")
	s.more(100)
	// The receiver's card of a path gets another address. Packets to the old one are lost on this path only.
	b.hosts["b"].Run(t, "ip link set p1 down")
	wait.Until(t, "the receiver sees that the path is down", func() bool {
		return receiver.status("").Paths[1].State == PathDown
	})
	b.hosts["b"].Run(t, "ip link set p1 address 02:00:00:00:00:77")
	b.hosts["b"].Run(t, "ip link set p1 up")
	sender.untilCopied("path0", "path1", "path2")
	s.more(100)
	s.stop()
	sent, received := sender.status(""), receiver.status("")
	for i, p := range received.Paths {
		if p.Received.Packets == 0 || p.Received.Refused+p.Received.Malformed > 0 || sent.Paths[i].Sent.Packets == 0 {
			t.Errorf("path %d: sent %+v, received %+v", i, sent.Paths[i].Sent, p.Received)
		}
	}
	if sent.Sent.CostFactor < 2 || sent.Sent.CostFactor > 3 {
		t.Errorf("the cost factor is %v, expected 2 to 3: two or three copies of each packet", sent.Sent.CostFactor)
	}
	sender.end(syscall.SIGTERM)
	receiver.end(syscall.SIGTERM)
	for name, h := range b.hosts {
		if left := h.left(t); left != nil {
			t.Errorf("the edge %s left %v", name, left)
		}
	}
	if mtu := b.hosts["a"].routeMTU(t, "10.21.0.1"); mtu != before {
		t.Errorf("the MTU of the route is %d after the end, before the start it was %d", mtu, before)
	}
}

// TestOrders changes the copies of a running edge.
func TestOrders(t *testing.T) {
	b := newBed(t, 3)
	b.start("b", "")
	sender := b.start("a", "off")
	wait.Until(t, "the receiver lives", func() bool { return sender.status("").PeerAlive })
	s := b.newStream()
	s.more(50)
	if sent := sender.status("").Sent; sent.Packets > 0 {
		t.Errorf("%d packets were copied, although copies are off", sent.Packets)
	}
	for _, step := range []struct{ order, set string }{
		{`{"copies": "path1,path2"}`, "path1,path2"},
		{`{"rule": "all", "copies": "path2"}`, "path2"},
		{`{"copies": "auto", "trigger": "start"}`, "path0,path1,path2"},
		{`{"trigger": "stop"}`, "path0"},
		{`{"copies": "off"}`, ""},
	} {
		if got := strings.Join(sender.status(step.order).Rules[0].Set, ","); got != step.set {
			t.Errorf("after the order %s, the set is %q, expected %q", step.order, got, step.set)
		}
		s.more(50)
	}
	s.stop()
}

// TestTrouble lets the primary path lose packets: copies start by themselves.
func TestTrouble(t *testing.T) {
	b := newBed(t, 2)
	b.start("b", "")
	sender := b.start("a", "auto")
	sender.untilCopied("path0")
	s := b.newStream()
	s.more(500)
	drop := b.attach("a", "p0", &ebpf.ProgramSpec{Name: "lose_half", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.FnGetPrandomU32.Call(), asm.JSet.Imm(asm.R0, 1, "lose"),
			asm.Mov.Imm(asm.R0, -1), asm.Return(), asm.Mov.Imm(asm.R0, 2).WithSymbol("lose"), asm.Return()}},
		func(p *ebpf.Program, at int) (link.Link, error) {
			return link.AttachTCX(link.TCXOptions{Program: p, Interface: at, Attach: ebpf.AttachTCXEgress,
				Anchor: link.Tail()})
		})
	defer drop.Close()
	began, before := time.Now(), sender.status("").Rules[0].Set
	wait.Until(t, "the set contains the other path", func() bool {
		return strings.Contains(strings.Join(sender.status("").Rules[0].Set, ","), "path1")
	})
	t.Logf("%v after the first losses, the set %v has grown: %s", time.Since(began), before,
		sender.status("").Rules[0].Reason)
	wait.Until(t, "the reports show the losses", func() bool {
		p := sender.status("").Paths
		return p[0].Report != nil && p[0].Report.Loss > 0.1 && p[1].Report != nil && p[1].Report.Loss < 0.1
	})
	close(s.done)
	s.sending.Wait()
	s.end()
}

// TestIPv6 copies packets of IPv6 over paths of IPv6, among them super-packets, which the segmenter cuts.
func TestIPv6(t *testing.T) {
	b := &bed{t: t, links: 2, ipv6: true, hosts: map[string]*host{}}
	b.build()
	receiver, sender := b.start("b", ""), b.start("a", "all")
	sender.untilCopied("path0", "path1")
	if mtu := b.hosts["a"].routeMTU(t, b.inner("b").String()); mtu != 1436 {
		t.Errorf("the MTU of the route is %d, expected 1436", mtu)
	}
	s := b.newStream()
	s.more(50)
	const segments, size = 16, 1000
	burst := make([]byte, segments*size)
	for i := range segments {
		binary.BigEndian.PutUint64(burst[i*size:], uint64(1<<40+i))
	}
	control := make([]byte, unix.CmsgSpace(2))
	header := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	header.Level, header.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	header.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(control[unix.CmsgLen(0):], size)
	if _, _, err := s.from.WriteMsgUDP(burst, control, nil); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "all segments arrive once", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := range uint64(segments) {
			if s.arrived[1<<40+i] != 1 {
				return false
			}
		}
		return true
	})
	s.more(50)
	s.stop()
	sender.end(syscall.SIGTERM)
	receiver.end(syscall.SIGTERM)
	for name, h := range b.hosts {
		if left := h.left(t); left != nil {
			t.Errorf("the edge %s left %v", name, left)
		}
	}
}

// TestBothWays starts and restarts edges that send and receive. No packet is repeated: an edge copies only when the
// other edge knows the epoch of the copies.
func TestBothWays(t *testing.T) {
	b := &bed{t: t, links: 2, both: true, hosts: map[string]*host{}}
	b.build()
	s := b.newStream()
	receiver, sender := b.start("b", "all"), b.start("a", "all")
	for range 2 {
		sender.untilCopied("path0", "path1")
		s.more(50)
		sender.end(syscall.SIGTERM)
		s.more(20)
		sender = b.start("a", "all")
	}
	sender.untilCopied("path0", "path1")
	s.more(50)
	s.stop()
	for i, p := range receiver.status("").Paths {
		if p.Received.Outside > 0 || p.Received.Packets == 0 {
			t.Errorf("path %d: %d of %d packets arrived outside the window", i, p.Received.Outside, p.Received.Packets)
		}
	}
}

// TestUser runs both edges as a user of their own, as the systemd unit does.
func TestUser(t *testing.T) {
	b := &bed{t: t, links: 2, hosts: map[string]*host{}}
	b.build()
	b.user = 65534
	for name, h := range b.hosts {
		b.config(name, "all")
		pins := filepath.Join(h.state, "bpf")
		h.Do(func() {
			// The folders above belong to root.
			for dir := filepath.Dir(h.state); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
				if err := os.Chmod(dir, 0o755); err != nil {
					t.Error(err)
				}
			}
			for _, file := range []string{h.state, pins, filepath.Join(h.state, "key"),
				filepath.Join(h.state, "edge.yaml")} {
				if err := os.Chown(file, int(b.user), int(b.user)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	receiver, sender := b.start("b", ""), b.start("a", "all")
	sender.untilCopied("path0", "path1")
	s := b.newStream()
	s.more(50)
	sender.end(syscall.SIGKILL)
	sender = b.start("a", "all")
	sender.untilCopied("path0", "path1")
	s.more(50)
	s.stop()
	sender.end(syscall.SIGTERM)
	receiver.end(syscall.SIGTERM)
	for name, h := range b.hosts {
		if left := h.left(t); left != nil {
			t.Errorf("the edge %s left %v", name, left)
		}
	}
}

// TestNeighbourMoves replaces the card at the other end of the only path.
func TestNeighbourMoves(t *testing.T) {
	b := newBed(t, 1)
	b.start("b", "")
	sender := b.start("a", "all")
	sender.untilCopied("path0")
	b.hosts["b"].Run(t, "ip link set p0 address 02:00:00:00:00:78")
	b.hosts["a"].Run(t, "ip neigh replace 10.9.0.2 lladdr 02:00:00:00:00:78 dev p0")
	s := b.newStream()
	s.more(20)
	s.mu.Lock()
	before := len(s.arrived)
	s.mu.Unlock()
	wait.Until(t, "packets reach the new card", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.arrived) > before+20
	})
	close(s.done)
	s.sending.Wait()
	s.end()
}

// TestKilled kills both edges in turn while packets flow, starts them again, and takes off what a third death leaves.
func TestKilled(t *testing.T) {
	b := newBed(t, 3)
	receiver, sender := b.start("b", ""), b.start("a", "all")
	sender.untilCopied("path0", "path1", "path2")
	epoch := sender.status("").Epoch
	s := b.newStream()
	s.more(100)
	// A lease outlives a process by a second. A busy machine may need longer, and then packets leave plain for a moment.
	inTime := true
	began := time.Now()
	sender.end(syscall.SIGKILL)
	s.more(100)
	again := time.Now()
	sender = b.start("a", "all")
	t.Logf("the sender was readopted after %v", time.Since(again))
	status := sender.status("")
	if !status.Readopted || status.Epoch != epoch {
		t.Errorf("readopted is %v, epoch is %d, before %d", status.Readopted, status.Epoch, epoch)
	}
	wait.Until(t, "reports reach the sender", func() bool { return sender.status("").Control.ReportsReceived > 0 })
	inTime = inTime && time.Since(began) < channel.AliveFor
	s.more(100)
	began = time.Now()
	receiver.end(syscall.SIGKILL)
	s.more(100)
	again = time.Now()
	receiver = b.start("b", "")
	t.Logf("the receiver was readopted after %v", time.Since(again))
	before := sender.status("").Control.ReportsReceived
	wait.Until(t, "reports reach the sender", func() bool {
		return sender.status("").Control.ReportsReceived > before
	})
	inTime = inTime && time.Since(began) < channel.AliveFor
	s.more(1200)
	if plain := sender.status("").Sent.Plain; plain > 0 && inTime {
		t.Errorf("%d packets left plain although both edges came back within a second", plain)
	}
	s.stop()

	var err error
	b.hosts["b"].Do(func() { err = Detach(mustLoad(t, b.config("b", ""))) })
	if !errors.Is(err, ErrRunning) {
		t.Errorf("detaching a running edge: %v", err)
	}
	sender.end(syscall.SIGKILL)
	receiver.end(syscall.SIGKILL)
	for name, h := range b.hosts {
		if h.left(t) == nil {
			t.Errorf("the edge %s left nothing to detach", name)
		}
		for range 2 {
			h.Do(func() { err = Detach(mustLoad(t, b.config(name, "all"))) })
			if err != nil {
				t.Error(err)
			}
		}
		if left := h.left(t); left != nil {
			t.Errorf("detaching the edge %s left %v", name, left)
		}
	}
}

func mustLoad(t *testing.T, file string) *Config {
	c, err := Load(file)
	if err != nil {
		t.Error(err)
	}
	return c
}

// TestReceiverDies kills the receiver for good: packets leave plain after a second. Then it starts and leaves properly:
// packets leave plain at once. No packet is lost.
func TestReceiverDies(t *testing.T) {
	b := newBed(t, 2)
	receiver, sender := b.start("b", ""), b.start("a", "all")
	sender.untilCopied("path0", "path1")
	s := b.newStream()
	s.more(100)
	receiver.end(syscall.SIGKILL)
	began := time.Now()
	wait.Until(t, "packets leave plain", func() bool { return sender.status("").Sent.Plain > 0 })
	if took := time.Since(began); took > 1500*time.Millisecond {
		t.Errorf("packets left plain %v after the receiver had died, the limit is 1.5 s", took)
	}
	s.more(100)
	receiver = b.start("b", "")
	wait.Until(t, "the sender copies again", func() bool { return sender.status("").PeerAlive })
	plain := sender.status("").Sent.Plain
	s.more(100)
	if now := sender.status("").Sent.Plain; now > plain+20 {
		t.Errorf("%d packets left plain after the receiver had come back", now-plain)
	}
	receiver.end(syscall.SIGTERM)
	s.more(100)
	s.stop()
	if left := b.hosts["b"].left(t); left != nil {
		t.Errorf("the receiver left %v", left)
	}
}

// TestHostileMessages sends forged, reflected, replayed and truncated control messages to the sender's port.
func TestHostileMessages(t *testing.T) {
	b := newBed(t, 2)
	b.start("b", "")
	sender := b.start("a", "all")
	sender.untilCopied("path0", "path1")
	recorded := append(b.record("b", 8, 3), b.record("a", 9, 3)...)
	var socket *net.UDPConn
	var err error
	b.hosts["b"].Do(func() {
		socket, err = net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.ParseIP("10.9.0.1"), Port: defaultPort})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	// The socket's buffer may drop some, so they are sent until all kinds were counted.
	wait.Until(t, "the messages are counted", func() bool {
		for _, message := range recorded {
			forged := append([]byte(nil), message...)
			forged[len(forged)-1] ^= 1
			for _, data := range [][]byte{message, forged, message[:len(message)-1], {}, make([]byte, 5000)} {
				// The message of 5,000 bytes leaves in fragments.
				if _, err := socket.Write(data); err != nil {
					t.Error(err)
				}
			}
		}
		c := sender.status("").Control
		return c.Forged > 0 && c.Malformed > 0 && c.Replayed > 0 && c.Reflected > 0
	})
	t.Logf("%+v", sender.status("").Control)
	s := b.newStream()
	s.more(100)
	s.stop()
	if plain := sender.status("").Sent.Plain; plain > 0 {
		t.Errorf("%d packets left plain", plain)
	}
}

// record returns control messages of a kind that arrive at a host.
func (b *bed) record(at string, kind byte, n int) (messages [][]byte) {
	b.t.Helper()
	var raw int
	var err error
	b.hosts[at].Do(func() {
		raw, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	defer unix.Close(raw)
	data := make([]byte, 2048)
	for len(messages) < n {
		size, _, err := unix.Recvfrom(raw, data, 0)
		if err != nil {
			b.t.Fatal(err)
		}
		// The IP header has 20 bytes and the UDP header 8.
		if size > 28 && data[28]&15 == kind && binary.BigEndian.Uint16(data[22:]) == defaultPort {
			messages = append(messages, append([]byte(nil), data[28:size]...))
		}
	}
	return messages
}

// attach attaches a program of someone else to an interface of a host.
func (b *bed) attach(name, device string, spec *ebpf.ProgramSpec,
	attach func(program *ebpf.Program, ifindex int) (link.Link, error)) (l link.Link) {
	b.t.Helper()
	program, err := ebpf.NewProgram(spec)
	if err != nil {
		b.t.Fatal(err)
	}
	defer program.Close()
	b.hosts[name].Do(func() {
		var at netlink.Link
		if at, err = netlink.LinkByName(device); err == nil {
			l, err = attach(program, at.Attrs().Index)
		}
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return l
}

// TestBadHost starts edges on hosts that cannot carry them. Each prints one line and leaves nothing.
func TestBadHost(t *testing.T) {
	b := newBed(t, 2)
	good := b.config("b", "")
	change := func(old, new string) string {
		text, err := os.ReadFile(good)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(b.hosts["b"].state, "bad.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), old, new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	other := func(kind ebpf.ProgramType) *ebpf.ProgramSpec {
		return &ebpf.ProgramSpec{Name: "other", Type: kind, License: "GPL",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}}
	}
	for _, test := range []struct {
		name      string
		config    func() string
		variables []string
		prepare   func() link.Link
		want      string
	}{
		{name: "no interface", config: func() string { return change("interface: p1", "interface: p7") },
			want: `the interface "p7" of the path "path1" does not exist`},
		{name: "no address", config: func() string { return change(`local: "10.9.1.2"`, "local: 10.9.1.3") },
			want: `the interface "p1" of the path "path1" does not have the address 10.9.1.3`},
		{name: "unknown key", config: func() string { return change("peer: a", "peer: a\nroof: b") },
			want: `key "roof"`},
		{name: "no key", config: func() string { return change("/key\n", "/nokey\n") }, want: "nokey: no such file"},
		{name: "no privileges", config: func() string { return good },
			variables: []string{dropVariable + "=1"},
			want:      "missing privileges: the process lacks CAP_NET_ADMIN and CAP_BPF"},
		{name: "foreign XDP", config: func() string { return good }, prepare: func() link.Link {
			return b.attach("b", "p1", other(ebpf.XDP), func(p *ebpf.Program, at int) (link.Link, error) {
				return link.AttachXDP(link.XDPOptions{Program: p, Interface: at})
			})
		}, want: "the interface p1 has the XDP program"},
		{name: "foreign TCX", config: func() string { return good }, prepare: func() link.Link {
			return b.attach("b", "p1", other(ebpf.SchedCLS), func(p *ebpf.Program, at int) (link.Link, error) {
				return link.AttachTCX(link.TCXOptions{Program: p, Interface: at, Attach: ebpf.AttachTCXIngress})
			})
		}, want: "the interface p1 has the TCX program"},
	} {
		var foreign link.Link
		if test.prepare != nil {
			foreign = test.prepare()
		}
		_, first := b.launch("b", test.config(), test.variables...)
		if foreign != nil {
			_ = foreign.Close()
		}
		if !strings.Contains(first, test.want) {
			t.Errorf("%s: the edge printed %q, expected %q", test.name, first, test.want)
		}
		if left := b.hosts["b"].left(t); left != nil {
			t.Errorf("%s: the edge left %v", test.name, left)
		}
	}
}

// TestFilters attaches programs through clsact, as on kernels before 6.6, replaces and detaches them.
func TestFilters(t *testing.T) {
	b := newBed(t, 1)
	h := b.hosts["a"]
	var err error
	var left []string
	h.Do(func() {
		var program *ebpf.Program
		program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()}})
		if err != nil {
			return
		}
		defer program.Close()
		device, failed := netlink.LinkByName("p0")
		if failed != nil {
			err = failed
			return
		}
		for range 2 {
			hooks := newHooks("a", pins{filepath.Join(h.state, "bpf", "a")})
			hooks.clsact = true
			holder, failed := hooks.attach(hook{pin: "path0-out", device: "p0", ifindex: device.Attrs().Index,
				direction: outward, tc: program})
			if failed != nil || holder != "clsact" {
				err = fmt.Errorf("attached by %q: %w", holder, failed)
				return
			}
		}
		other := newHooks("b", pins{filepath.Join(h.state, "bpf", "b")})
		if failed := other.foreign(device, outward); !errors.Is(failed, ErrForeignProgram) {
			err = fmt.Errorf("another edge is not told of the filter: %w", failed)
			return
		}
		filters, failed := netlink.FilterList(device, outward.parent())
		if failed != nil || len(filters) != 1 {
			err = fmt.Errorf("%d filters, %w", len(filters), failed)
			return
		}
		err = newHooks("a", pins{filepath.Join(h.state, "bpf", "a")}).detachAll()
	})
	if err != nil {
		t.Fatal(err)
	}
	if left = h.left(t); left != nil {
		t.Errorf("detaching left %v", left)
	}
}

// TestCoveringRoute gives a prefix that only a default route covers a route of its own, follows the default route, and
// restores the table.
func TestCoveringRoute(t *testing.T) {
	b := newBed(t, 2)
	h := b.hosts["a"]
	h.Run(t, "ip route add default via 10.9.0.2 metric 100")
	h.Run(t, "ip route add default via 10.9.1.2 metric 200")
	prefix := netip.MustParsePrefix("10.30.0.0/16")
	config := &Config{Name: "a", State: h.state}
	var err error
	apply := func() {
		h.Do(func() {
			var changes *hostChanges
			if changes, err = openChanges(config); err == nil {
				err = changes.applyMTU([]netip.Prefix{prefix}, 1400)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	apply()
	apply()
	if mtu := h.routeMTU(t, "10.30.0.1"); mtu != 1400 {
		t.Errorf("the MTU to the prefix is %d, expected 1400", mtu)
	}
	if mtu := h.routeMTU(t, "10.40.0.1"); mtu != 0 {
		t.Errorf("the MTU of the default route became %d", mtu)
	}
	h.Run(t, "ip route del default via 10.9.0.2 metric 100")
	apply()
	var routes []netlink.Route
	h.Do(func() { routes, err = netlink.RouteGet(net.ParseIP("10.30.0.1")) })
	if err != nil || len(routes) != 1 || !routes[0].Gw.Equal(net.ParseIP("10.9.1.2")) {
		t.Errorf("the routes to the prefix are %v, %v, expected that over 10.9.1.2", routes, err)
	}
	h.Do(func() {
		var changes *hostChanges
		if changes, err = openChanges(config); err == nil {
			err = changes.restore()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if mtu := h.routeMTU(t, "10.30.0.1"); mtu != 0 {
		t.Errorf("the MTU to the prefix is %d after restoring, expected none", mtu)
	}
}
