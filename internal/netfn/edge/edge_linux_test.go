package edge

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/volsfu/volsfu/test/traffic"
	"github.com/volsfu/volsfu/test/wait"
)

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

// TestPrimaryUnplugged unplugs the primary path. The host has a second route to the inner prefix, so packets still
// leave, and copies on the other path reach the receiver.
func TestPrimaryUnplugged(t *testing.T) {
	b := newBed(t, 2)
	b.hosts["a"].Run(t, "ip route add 10.21.0.0/16 via 10.9.1.2 src 10.20.0.1 metric 100")
	b.start("b", "")
	sender := b.start("a", "all")
	sender.untilCopied("path0", "path1")
	s := b.newStream()
	s.more(50)
	b.hosts["a"].Run(t, "ip link set p0 down")
	sender.untilCopied("path1")
	s.more(50)
	s.stop()
}

// TestOrders changes the copies of a running edge. No path is late or lost within the longest deadline, so that path
// control has no reason of its own, however long the edges wait for a processor.
func TestOrders(t *testing.T) {
	b := newBed(t, 3)
	b.deadline = maxDeadline
	b.start("b", "")
	sender := b.start("a", "off")
	wait.Until(t, "the receiver lives", func() bool { return sender.status("").PeerAlive })
	s := b.newStream()
	s.more(50)
	if sent := sender.status("").Sent; sent.Packets > 0 {
		t.Errorf("%d packets were copied, although copies are off", sent.Packets)
	}
	for _, step := range []struct{ order, set, reason string }{
		{`{"copies": "path1,path2"}`, "path1,path2", "ordered: path1,path2"},
		{`{"rule": "all", "copies": "path2"}`, "path2", "ordered: path2"},
		{`{"copies": "auto", "trigger": "start"}`, "path0,path1,path2", "joined the set: copies were ordered"},
		{`{"trigger": "stop"}`, "path0", "left the set: copies were stopped"},
		{`{"copies": "off"}`, "", "ordered: off"},
	} {
		status := sender.status(step.order).Rules[0]
		if got := strings.Join(status.Set, ","); got != step.set || !strings.HasSuffix(status.Reason, step.reason) {
			t.Errorf("after the order %s, the set is %q: %s, expected %q: %s", step.order, got, status.Reason, step.set,
				step.reason)
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
	const segments = 16
	bursts, err := traffic.NewFlow(traffic.Options{From: b.hosts["a"], To: b.hosts["b"], Source: b.inner("a"),
		Destination: b.inner("b"), Size: 1000, Segments: segments})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bursts.Close() }()
	got, err := bursts.Transfer(t.Context(), segments, 50*time.Millisecond)
	if err != nil || got != (traffic.Result{Sent: segments, Arrived: segments}) {
		t.Errorf("transferred %+v, %v, want %d segments once", got, err, segments)
	}
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
			// The folder of the test, above that of the state, belongs to root.
			if err := os.Chmod(filepath.Dir(h.state), 0o755); err != nil {
				t.Error(err)
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
	_, before := s.Counts()
	wait.Until(t, "packets reach the new card", func() bool {
		_, arrived := s.Counts()
		return arrived > before+20
	})
	s.end()
}
