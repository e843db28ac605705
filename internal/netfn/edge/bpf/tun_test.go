package bpf

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/test/traffic"
	"github.com/volsfu/volsfu/test/wait"
)

// newEmulated connects two namespaces by emulated links between TUN devices, which have no link header and no native
// XDP: three paths of the same parameters from the first to the second namespace. It attaches the programs.
func newEmulated(t *testing.T, wire netem.Config) (*router.Router, *pair) {
	t.Helper()
	p := &pair{t: t, paths: 3, sender: &SenderObjects{},
		receiver: newReceiver(t, ReceiverConfig{Epoch: testEpoch, Port: testPort})}
	loadInto(t, unpinned(t, LoadSender), p.sender)
	t.Cleanup(func() { _ = p.sender.Close() })
	plan := router.Plan{Seed: 1, Namespaces: []router.Namespace{{Name: "sender"}, {Name: "receiver"}}}
	for i := range p.paths {
		for j := range plan.Namespaces {
			address := netip.MustParsePrefix(fmt.Sprintf("10.%d.0.%d/24", 200+i, j+1))
			plan.Namespaces[j].Interfaces = append(plan.Namespaces[j].Interfaces,
				router.Interface{Name: fmt.Sprintf("path%d", i), Address: address})
		}
		plan.Wires = append(plan.Wires, router.Wire{Name: fmt.Sprintf("wire%d", i), Config: wire})
		plan.Routes = append(plan.Routes, router.Route{From: netip.MustParseAddr(fmt.Sprintf("10.%d.0.1", 200+i)),
			To: netip.MustParseAddr(fmt.Sprintf("10.%d.0.2", 200+i)), Wires: []int{i}})
	}
	r, err := router.Start(plan)
	if errors.Is(err, router.ErrPrivileges) || errors.Is(err, router.ErrTUN) {
		t.Skipf("skipped: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	put(t, p.sender.SendConfig, uint32(0),
		SenderConfig{LeaseNs: math.MaxUint64, Mark: Mark, Segmenter: runAt(t, r, 0, "cut0",
			"ip link add cut0 gso_max_segs 1 type veth peer name cut1;ip link set cut0 up;ip link set cut1 up"),
			Epoch: testEpoch, Port: testPort, Cut: 1})
	attachAt(t, r, 0, "cut1", p.sender.SendSegment, ebpf.AttachTCXIngress)
	rule := anyPacket
	rule.Set = 7
	put(t, p.sender.Rules, uint32(0), rule)
	for key := range RulePrefixes([]netip.Prefix{netip.MustParsePrefix("10.2.0.0/16")}) {
		put(t, p.sender.Prefixes, key, uint32(1))
	}
	for i := range p.paths {
		name := fmt.Sprintf("path%d", i)
		local := netip.MustParseAddr(fmt.Sprintf("10.%d.0.1", 200+i))
		remote := netip.MustParseAddr(fmt.Sprintf("10.%d.0.2", 200+i))
		put(t, p.receiver.Sources, sourceOf(local, remote), [6]uint8{})
		ifindex := attachAt(t, r, 0, name, p.sender.SendBare, ebpf.AttachTCXEgress)
		attachAt(t, r, 1, name, p.receiver.ReceiveBare, ebpf.AttachTCXIngress)
		put(t, p.sender.Paths, uint32(i), SenderPath{Local: MapAddress(local), Remote: MapAddress(remote),
			Ifindex: uint32(ifindex), Mtu: 1500, Version: 4})
	}
	runAt(t, r, 0, "lo", "ip addr add 10.1.0.1/32 dev lo;ip route add 10.2.0.0/16 dev path0 src 10.1.0.1 mtu 1400")
	runAt(t, r, 1, "lo", "ip addr add 10.2.0.2/32 dev lo")
	return r, p
}

// runAt runs commands in a namespace of a router, and returns the index of a device.
func runAt(t *testing.T, r *router.Router, space int, name, commands string) (ifindex uint32) {
	t.Helper()
	if err := r.Inside(space, func() error {
		for command := range strings.SplitSeq(commands, ";") {
			words := strings.Fields(command)
			if output, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", command, err, output)
			}
		}
		device, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		ifindex = uint32(device.Index)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return ifindex
}

// attachAt attaches a program to a device, and returns the device's index. It skips the test on kernels without TCX.
func attachAt(t *testing.T, r *router.Router, space int, name string, program *ebpf.Program, at ebpf.AttachType) int {
	t.Helper()
	var ifindex int
	var l link.Link
	err := r.Inside(space, func() error {
		device, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		ifindex = device.Index
		l, err = link.AttachTCX(link.TCXOptions{Interface: ifindex, Program: program, Attach: at})
		return err
	})
	if errors.Is(err, ebpf.ErrNotSupported) {
		t.Skipf("skipped: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return ifindex
}

// inside is a namespace of a router.
type inside struct {
	r     *router.Router
	space int
}

func (i inside) Do(f func()) {
	_ = i.r.Inside(i.space, func() error {
		f()
		return nil
	})
}

// TestPairReorders sends datagrams, some of them segmented, over three TUN devices with delays of 20 to 180 ms that
// reorder packets. Each arrives once.
func TestPairReorders(t *testing.T) {
	wire := netem.DefaultConfig()
	wire.Delay, wire.Jitter = 100*time.Millisecond, 80*time.Millisecond
	wire.JitterDistribution, wire.JitterReorders = netem.JitterUniform, true
	r, p := newEmulated(t, wire)
	f := openFlow(t, traffic.Options{From: inside{r, 0}, To: inside{r, 1}, Source: innerFrom4, Destination: innerTo4,
		Size: 500, Segments: 4, InFlight: 1600})
	const count = 8000
	if err := transfer(f, count); err != nil {
		t.Error(err)
	}
	p.checkCounts(count)
}

// TestPairLoses loses 20 % of the packets on each of three paths. 0.2³ = 0.8 % remain.
func TestPairLoses(t *testing.T) {
	wire := netem.DefaultConfig()
	wire.Loss = 0.2
	r, p := newEmulated(t, wire)
	var from *net.UDPConn
	var err error
	inside{r, 0}.Do(func() {
		from, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(innerFrom4, 0)))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	// passed returns how many packets have left the wires, and how many of these arrived.
	passed := func() (left, delivered uint64) {
		for _, w := range r.Statistics().Wires {
			left += w.Delivered + w.LostRandom
			delivered += w.Delivered
		}
		return left, delivered
	}
	const count = 20_000
	deadline := time.Now().Add(wait.Patience)
	for sent := range uint64(count) {
		// The emulator's devices queue 8,192 packets each.
		for sent%2000 == 0 {
			left, _ := passed()
			if left+3*4000 >= 3*sent {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d of %d copies have left the wires", left, 3*sent)
			}
			time.Sleep(time.Millisecond)
		}
		if _, err := from.WriteToUDPAddrPort([]byte("datagram"), netip.AddrPortFrom(innerTo4, 9)); err != nil {
			t.Fatal(err)
		}
	}
	for left, delivered := passed(); left < 3*count || p.counts().Packets < delivered; left, delivered = passed() {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d copies have left the wires, %+v have arrived", left, 3*count, p.counts())
		}
		time.Sleep(time.Millisecond)
	}
	// Four standard deviations of the number of losses, √(20,000 · 0.008 · 0.992) = 12.6.
	if lost := count - int(p.counts().First); lost < 160-50 || lost > 160+50 {
		t.Errorf("%d of %d datagrams were lost, want 0.8 %% (%+v)", lost, count, p.counts())
	}
}
