package edge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/test/wait"
)

// TestHostileMessages sends forged, reflected, replayed and truncated control messages to the sender's port.
func TestHostileMessages(t *testing.T) {
	b, stalls := newBed(t, 2), wait.WatchStalls(t)
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
	if plain := sender.status("").Sent.Plain; plain > 0 && stalls.Longest() <= stalled {
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

// attach attaches a program of someone else to an interface of a host. It skips the test on kernels without TCX.
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
	if errors.Is(err, ebpf.ErrNotSupported) {
		b.t.Skipf("skipped: %v", err)
	}
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

// TestCheck checks a host without attaching anything, and a host with a foreign program.
func TestCheck(t *testing.T) {
	b := newBed(t, 1)
	check := func() (err error) {
		b.hosts["a"].Do(func() { err = mustLoad(t, b.config("a", "all")).Check() })
		return err
	}
	if err := check(); err != nil {
		t.Error(err)
	}
	if left := b.hosts["a"].left(t); left != nil {
		t.Errorf("the check left %v", left)
	}
	foreign := b.attach("a", "p0", &ebpf.ProgramSpec{Name: "other", Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()}},
		func(p *ebpf.Program, at int) (link.Link, error) {
			return link.AttachTCX(link.TCXOptions{Program: p, Interface: at, Attach: ebpf.AttachTCXEgress})
		})
	defer foreign.Close()
	if err := check(); !errors.Is(err, ErrForeignProgram) || !strings.Contains(err.Error(), "(other)") {
		t.Errorf("with the foreign program other: %v", err)
	}
}

// TestPinsOutliveProcess checks that no BPF file system is mounted in a mount namespace that ends with the process.
func TestPinsOutliveProcess(t *testing.T) {
	b := newBed(t, 1)
	h := b.hosts["a"]
	var found pins
	var own, system error
	h.Do(func() {
		found, own = findPins(&Config{Name: "a", State: h.state}, true)
		_, system = findPins(&Config{Name: "a", State: t.TempDir()}, true)
	})
	if want := filepath.Join(h.state, "bpf", "a"); own != nil || found.dir != want {
		t.Errorf("the pins are in %s, %v, expected %s", found.dir, own, want)
	}
	if !errors.Is(system, ErrPrivileges) {
		t.Errorf("without a BPF file system: %v", system)
	}
}
