package topology_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/lab/topology/topologytest"
	"github.com/volsfu/volsfu/test/wait"
)

// patience is far longer than any step of these tests.
const patience = wait.Patience

// profile parses a link's parameters.
func profile(t *testing.T, text string) netem.Config {
	t.Helper()
	c, err := netem.ParseProfile(text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// listen opens a UDP socket on a host.
func listen(t *testing.T, n *topology.Network, host string, address netip.Addr) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	err := n.Inside(host, func() (err error) {
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

// pass sends a packet from one socket to another, and checks its source.
func pass(t *testing.T, from, to *net.UDPConn, text string) {
	t.Helper()
	if _, err := from.WriteTo([]byte(text), to.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 2000)
	count, source, err := to.ReadFromUDPAddrPort(buffer)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(buffer[:count]); got != text || source.String() != from.LocalAddr().String() {
		t.Errorf("%q from %s, expected %q from %s", got, source, text, from.LocalAddr())
	}
}

func TestPacketsPass(t *testing.T) {
	n := topologytest.Start(t, topology.Pair("a", "b", topology.Link{
		Forth: topology.Direction{Config: profile(t, "delay=2ms")}, Back: topology.Direction{Config: profile(t,
			"delay=1ms,rate=100Mbit")},
	}))
	a, b := listen(t, n, "a", n.Address("a")), listen(t, n, "b", n.Address("b"))
	began := time.Now()
	pass(t, a, b, "there")
	pass(t, b, a, strings.Repeat("and back", 180)) // 1,440 bytes: a full packet
	if took := time.Since(began); took < 3*time.Millisecond {
		t.Errorf("there and back in %v, expected 3 ms at least", took)
	}
	pass(t, a, a, "to itself") // over the loopback
	s := n.Statistics()
	forth, back := s.Wire("link", topology.Forth), s.Wire("link", topology.Back)
	if forth.Sent != 1 || forth.Delivered != 1 || back.Delivered != 1 || back.DeliveredBytes != 1468 {
		t.Errorf("forth %+v, back %+v", forth.Stats, back.Stats)
	}
	if s.Router.Packets() != 2 || s.Router.Interfaces[0].Sent != 1 || s.Router.Interfaces[1].Received != 1 {
		t.Errorf("%+v", s.Router.Interfaces)
	}
	n.Restart()
	if s := n.Statistics(); s.Wire("link", topology.Forth).Sent != 0 || s.Router.Packets() != 0 ||
		s.Router.Interfaces[0].Sent != 0 {
		t.Errorf("%+v after a restart, expected zeros", s.Router)
	}
	var text strings.Builder
	if err := s.Summary().WriteText(&text); err != nil || !strings.Contains(text.String(), "link/forth") {
		t.Errorf("%v, %s", err, text.String())
	}
}

// TestParallelPaths: two paths between the same hosts have separate addresses, and one path shares a link with the
// first.
func TestParallelPaths(t *testing.T) {
	through := func(links ...string) (list []topology.Passage) {
		for _, l := range links {
			list = append(list, topology.Passage{Link: l})
		}
		return list
	}
	n := topologytest.Start(t, &topology.Topology{
		Hosts: map[string]topology.Host{"phone": {}, "server": {}, "desk": {}},
		Links: map[string]topology.Link{"wifi": {}, "mobile": {}, "core": {}, "cable": {}},
		Paths: []topology.Path{
			{From: "phone", To: "server", Through: through("wifi", "core")},
			{From: "phone", To: "server", Through: through("mobile")},
			{From: "desk", To: "server", Through: through("cable", "core")},
			{From: "desk", To: "phone", Through: []topology.Passage{{Link: "cable"}, {Link: "wifi", Reversed: true}}},
		},
	})
	for parallel := range 2 {
		phone, server := listen(t, n, "phone", n.AddressOn("phone", parallel)),
			listen(t, n, "server", n.AddressOn("server", parallel))
		pass(t, phone, server, "hello")
		pass(t, server, phone, "hello")
	}
	desk, server, phone := listen(t, n, "desk", n.Address("desk")), listen(t, n, "server", n.Address("server")),
		listen(t, n, "phone", n.Address("phone"))
	pass(t, desk, server, "hello")
	pass(t, desk, phone, "hello")
	s := n.Statistics()
	for link, expected := range map[string][2]uint64{"wifi": {1, 2}, "core": {2, 1}, "mobile": {1, 1},
		"cable": {2, 0}} {
		if got := [2]uint64{s.Wire(link, topology.Forth).Delivered, s.Wire(link,
			topology.Back).Delivered}; got != expected {
			t.Errorf("%s: %v packets forth and back, expected %v", link, got, expected)
		}
	}
	if n.AddressOn("desk", 1).IsValid() || n.Address("nobody").IsValid() || n.AddressOn("phone", -1).IsValid() {
		t.Error("an address of a missing path")
	}
}

func TestConfigureWhileRunning(t *testing.T) {
	n := topologytest.Start(t, topology.Pair("a", "b", topology.Link{}))
	a, b := listen(t, n, "a", n.Address("a")), listen(t, n, "b", n.Address("b"))
	if err := n.Configure("link", topology.Forth, netem.Config{Delay: 30 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	pass(t, a, b, "hello")
	if took := time.Since(began); took < 30*time.Millisecond {
		t.Errorf("it took %v, expected 30 ms at least", took)
	}
	if err := n.Configure("link", topology.Back, netem.Config{Loss: 2}); !errors.Is(err, netem.ErrConfig) ||
		!strings.Contains(err.Error(), "links.link.back") {
		t.Errorf("%v, expected ErrConfig with the key", err)
	}
	if err := n.Configure("cable", topology.Back, netem.Config{}); !errors.Is(err, topology.ErrLink) {
		t.Errorf("%v, expected ErrLink", err)
	}
}

func TestCommands(t *testing.T) {
	n := topologytest.Start(t, &topology.Topology{Hosts: map[string]topology.Host{
		"early":    {ClockOffset: 50 * time.Millisecond, Sysctls: map[string]string{"net.ipv4.tcp_ecn": "1"}},
		"punctual": {},
	}})
	for host, expected := range map[string]string{"early": "early 50ms 1", "punctual": "punctual none 2"} {
		out, err := n.Command(t.Context(), host, "sh", "-c",
			fmt.Sprintf("echo $%s ${%s-none} $(cat /proc/sys/net/ipv4/tcp_ecn)", topology.HostVariable,
				topology.ClockOffsetVariable)).Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != expected {
			t.Errorf("%s: %q and %v, expected %q", host, got, err, expected)
		}
	}
	var exit *exec.ExitError
	if err := n.Command(t.Context(), "early", "no-such-program").Run(); !errors.As(err, &exit) ||
		exit.ExitCode() != 127 {
		t.Errorf("%v, expected status 127", err)
	}
	if err := n.Command(t.Context(), "nobody", "true").Run(); !errors.Is(err, topology.ErrHost) {
		t.Errorf("%v, expected ErrHost", err)
	}
	if err := n.Inside("nobody", func() error { return nil }); !errors.Is(err, topology.ErrHost) {
		t.Errorf("%v, expected ErrHost", err)
	}
	if err := n.Inside("early", func() error { return os.ErrExist }); !errors.Is(err, os.ErrExist) {
		t.Errorf("%v, expected the function's error", err)
	}
}

// TestCloseEndsCommands leaves commands running. One ignores SIGTERM, and some have started other commands.
func TestCloseEndsCommands(t *testing.T) {
	n := topologytest.Start(t, &topology.Topology{Hosts: map[string]topology.Host{"a": {}}})
	cmd := n.Command(t.Context(), "a", "sh", "-c", `trap "" TERM; sleep 1000 & echo $!; wait; sleep 1000`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(out, &child); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the command ended by itself")
	}
	awaitGone(t, child)
	if err := n.Configure("link", topology.Forth, netem.Config{}); !errors.Is(err, topology.ErrLink) {
		t.Errorf("%v, expected ErrLink", err)
	}
	if s := n.Statistics(); s.Duration != 0 {
		t.Errorf("%+v of a closed network", s)
	}
}

// awaitGone waits until a process has ended or is a zombie.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("process %d is gone", pid), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

// TestKilled kills a process with a network by SIGKILL. Its command dies with the process; the next network ends the
// descendants of the command.
func TestKilled(t *testing.T) {
	topologytest.Start(t, &topology.Topology{Hosts: map[string]topology.Host{"a": {}}}) // skips without root
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var command, child int
	line, err := bufio.NewReader(out).ReadString('\n')
	if _, scanned := fmt.Sscan(line, &command, &child); err != nil || scanned != nil {
		t.Fatalf("%q, %v", line, err)
	}
	// The descendant survives, because the command is killed with the process and cannot end it.
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	awaitGone(t, command)
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", child)); err != nil {
		t.Errorf("the command's process has already ended: %v; the test is not valid", err)
	}
	topologytest.Start(t, &topology.Topology{Hosts: map[string]topology.Host{"a": {}}})
	awaitGone(t, child)
}
