package bpf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/test/namespace"
	"github.com/volsfu/volsfu/test/traffic"
)

// TestPairClsact attaches both programs at clsact, as on kernels before 6.6.
func TestPairClsact(t *testing.T) {
	if _, err := exec.LookPath("tc"); err != nil {
		t.Skipf("skipped: clsact takes the command tc: %v", err)
	}
	p := newPair(t, pairing{outer: []uint8{4, 6}, format: FormatEncapsulated, unattached: true})
	for i := range p.paths {
		device := fmt.Sprintf("p%d", i)
		attachClsact(t, p.a, device, "egress", p.sender.SendEther)
		attachClsact(t, p.b, device, "ingress", p.receiver.ReceiveEther)
	}
	if err := transfer(p.newFlow(false, 1, -1), 2000); err != nil {
		t.Error(err)
	}
	p.checkCounts(2000)
}

// attachClsact attaches a program by the command tc, which takes a pinned program.
func attachClsact(t *testing.T, n *namespace.Namespace, device, direction string, program *ebpf.Program) {
	t.Helper()
	folder := t.TempDir()
	var err error
	n.Do(func() {
		if err = unix.Mount("bpf", folder, "bpf", 0, ""); err == nil {
			err = program.Pin(filepath.Join(folder, "program"))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Run(t, "tc qdisc add dev "+device+" clsact")
	n.Run(t, "tc filter add dev "+device+" "+direction+" bpf direct-action object-pinned "+
		filepath.Join(folder, "program"))
	n.Do(func() { err = errors.Join(program.Unpin(), unix.Unmount(folder, 0)) })
	if err != nil {
		t.Fatal(err)
	}
}

// TestPairIngress receives at TCX ingress of devices with an Ethernet header. Without XDP at the other end, a veth does
// not cut super-packets into segments, so the datagrams have none.
func TestPairIngress(t *testing.T) {
	p := newPair(t, pairing{outer: []uint8{4, 6}, format: FormatEncapsulated,
		receive: func(r *ReceiverObjects) *ebpf.Program { return r.ReceiveEther }})
	for _, ipv6 := range []bool{false, true} {
		if err := transfer(p.newFlow(ipv6, 1, -1), 2000); err != nil {
			t.Error(err)
		}
	}
	p.checkCounts(4000)
}

// TestPairStamped sends stamped packets with and without segments over two paths, past a wrap of the identification.
func TestPairStamped(t *testing.T) {
	p := newPair(t, pairing{outer: []uint8{4, 4}, format: FormatStamped,
		receive: func(r *ReceiverObjects) *ebpf.Program { return r.StampedXdp }})
	if err := transfer(p.newFlow(false, 16, -1), 70_400); err != nil {
		t.Error(err)
	}
	if err := transfer(p.newFlow(false, 1, unix.IP_PMTUDISC_PROBE), 1000); err != nil {
		t.Error(err)
	}
	p.checkCounts(71_400)
	p.stream(false, 4<<20)
}

// TestPairPaper shows what the published filter does to datagrams that were never copied: those of a socket that sends
// the identification 0 are all repeats for it, but the first one.
func TestPairPaper(t *testing.T) {
	p := newPair(t, pairing{outer: []uint8{4}, format: FormatPaper,
		receive: func(r *ReceiverObjects) *ebpf.Program { return r.PaperXdp }})
	const count = 100
	f := p.newFlow(false, 1, unix.IP_PMTUDISC_PROBE)
	began := time.Now()
	if err := transfer(f, 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := f.Transfer(ctx, count-1, 0)
		done <- err
	}()
	got := p.untilReceived(count)
	// After a second, the filter forgets an identification.
	first := 1 + uint64(time.Since(began)/time.Second)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got.Packets != count || got.First > first || got.Repeated != count-got.First {
		t.Errorf("the published filter counted %+v, want at most %d first of %d", got, first, count)
	}
}

// TestPairLinkHeaders sends from a TUN device, whose packets have no link header, over paths with Ethernet headers: a
// host whose default route is a modem also copies to a network card.
func TestPairLinkHeaders(t *testing.T) {
	p := newPair(t, pairing{outer: []uint8{4, 6}, format: FormatEncapsulated})
	var tun *os.File
	var err error
	p.a.Do(func() { tun, err = openTUN("modem") })
	if err != nil {
		t.Skipf("skipped: no TUN device: %v", err)
	}
	defer func() { _ = tun.Close() }()
	p.a.Run(t, "ip link set modem up")
	p.a.Run(t, "ip route replace 10.2.0.0/16 dev modem src 10.1.0.1 mtu 1400")
	p.a.Run(t, "ip route replace fd00:2::/32 dev modem src fd00:1::1 mtu 1400")
	ifindex, _ := index(t, p.a, "modem")
	p.attach(p.a, func() (link.Link, error) {
		return link.AttachTCX(link.TCXOptions{Interface: int(ifindex), Program: p.sender.SendBare,
			Attach: ebpf.AttachTCXEgress})
	})
	for _, ipv6 := range []bool{false, true} {
		if err := transfer(p.newFlow(ipv6, 1, -1), 2000); err != nil {
			t.Error(err)
		}
	}
	p.stream(false, 1<<20)
	twice := func(c ReceiverReceived) bool {
		return c.First >= 4000 && c.Repeated == c.First && c.Packets == 2*c.First
	}
	if c := p.until(twice); !twice(c) {
		t.Errorf("the receiver counted %+v", c)
	}
}

// openTUN makes a TUN device in the namespace of the calling thread.
func openTUN(name string) (*os.File, error) {
	file, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(int(file.Fd()), unix.TUNSETIFF, request); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// TestPairUnplugged removes the device of one of two paths, and then the lease of the sender. All datagrams arrive, and
// those after the lease leave plain.
func TestPairUnplugged(t *testing.T) {
	p := newPair(t, pairing{outer: []uint8{4, 4}, format: FormatEncapsulated})
	f := p.newFlow(false, 1, -1)
	if err := transfer(f, 500); err != nil {
		t.Fatal(err)
	}
	p.a.Run(t, "ip link del p1")
	if err := transfer(f, 500); err != nil {
		t.Fatal(err)
	}
	if got := sentOn(t, p.sender, 1); got.Packets != 500 || got.Failed != 500 {
		t.Errorf("path 1 counted %+v, want 500 packets and 500 failed clones", got)
	}
	put(t, p.sender.SendConfig, uint32(0), SenderConfig{LeaseNs: 1, Mark: Mark, Epoch: testEpoch, Port: testPort})
	if err := transfer(f, 500); err != nil {
		t.Fatal(err)
	}
	if got := p.untilReceived(1500); got.First != 1000 || got.Packets != 1500 {
		t.Errorf("the receiver counted %+v, want 1000 first copies of 1500", got)
	}
}

// TestPairMTU sends datagrams that fit the first path only, and datagrams that fit neither encapsulated.
func TestPairMTU(t *testing.T) {
	p := newPair(t, pairing{outer: []uint8{4, 4}, format: FormatEncapsulated})
	var path SenderPath
	if err := p.sender.Paths.Lookup(uint32(1), &path); err != nil {
		t.Fatal(err)
	}
	path.Mtu = 1000
	put(t, p.sender.Paths, uint32(1), path)
	f := p.newFlow(false, 1, -1)
	if err := transfer(f, 200); err != nil {
		t.Fatal(err)
	}
	if got := p.counts(); got.First != 200 || got.Packets != 200 {
		t.Errorf("the receiver counted %+v, want 200 packets once", got)
	}
	// The route's MTU is above that of the path less the outer headers.
	p.a.Run(t, "ip route replace 10.2.0.0/16 via 10.200.0.2 src 10.1.0.1 mtu 1500")
	large := openFlow(t, traffic.Options{From: p.a, To: p.b, Source: innerFrom4, Destination: innerTo4, Size: 1500 - 28,
		Segments: 1, InFlight: 128})
	if err := transfer(large, 200); err != nil {
		t.Fatal(err)
	}
	if got := p.counts(); got.First != 200 {
		t.Errorf("the receiver counted %+v, want 200 packets", got)
	}
	if got := sentOn(t, p.sender, 1); got.Packets != 0 || got.Oversize != 400 {
		t.Errorf("path 1 counted %+v, want 400 oversize packets", got)
	}
}
