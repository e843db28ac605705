package edge

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
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
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/test/leftover"
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
	// deadline is that of the rules; 0 is the default.
	deadline time.Duration
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
	if err := checkPrivileges(); err != nil {
		t.Skipf("skipped: %v", err)
	}
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
		b.hosts[name].AwaitAddresses(b.t)
		b.hosts[name].Run(t, fmt.Sprintf("ip route add %s via %s src %s", b.innerPrefix(peer), b.outer(peer, 0),
			b.inner(name)))
		b.hosts[name].AwaitLinks(t)
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
		fmt.Fprintf(&text, "send: {rules: [{name: all, to: %q, deadline: %v, copies: %s}]}\n", b.innerPrefix(peer),
			cmp.Or(b.deadline, defaultDeadline), copies)
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

// left returns what a host has of edges: programs at interfaces, pins, filters, and files of changes.
func (h *host) left(t *testing.T) (found []string) {
	t.Helper()
	var err error
	h.Do(func() {
		// The BPF file system is mounted in the namespace.
		found, err = leftover.Attached()
		found = append(found, leftover.Files(h.state, h.name)...)
	})
	if err != nil {
		t.Error(err)
	}
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
