package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/netfn/daemon"
	"github.com/volsfu/volsfu/internal/netfn/edge"
	"github.com/volsfu/volsfu/test/certificate"
	"github.com/volsfu/volsfu/test/exposition"
	"github.com/volsfu/volsfu/test/leftover"
	"github.com/volsfu/volsfu/test/namespace"
	"github.com/volsfu/volsfu/test/wait"
)

// asProgram makes the test binary run as volnet.
const asProgram = "VOLNET_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// stalled is the longest disturbance of the machine at which tests expect that edges exchange messages every second.
const stalled = 100 * time.Millisecond

// site is a host with one edge: a namespace with two paths, and an inner address on the loopback interface.
type site struct {
	*namespace.Namespace
	t             *testing.T
	name, inner   string
	config, state string
	// user runs the edge. Users other than root have the two capabilities that the systemd unit gives.
	user int
	// running is the edge.
	running *program
}

// newPair returns two sites whose paths are veths, with the configuration of an edge each that sends to the other.
// newPair skips the test if no edge can run here.
func newPair(t *testing.T) (studio, office *site) {
	t.Helper()
	studio = &site{Namespace: namespace.New(t), t: t, name: "studio", inner: "10.201.1.1"}
	office = &site{Namespace: namespace.New(t), t: t, name: "office", inner: "10.201.2.1",
		user: 65534}
	for i := range 2 {
		studio.Run(t, fmt.Sprintf("ip link add vn4p%d type veth peer name vn4p%d netns %d", i, i, office.Thread))
	}
	for i, s := range []*site{studio, office} {
		other := []*site{office, studio}[i]
		s.Run(t, "ip link set lo up")
		s.Run(t, "ip address add "+s.inner+"/32 dev lo")
		for p := range 2 {
			s.Run(t, fmt.Sprintf("ip address add 10.200.%d.%d/24 dev vn4p%d", p, i+1, p))
			s.Run(t, fmt.Sprintf("ip link set vn4p%d up", p))
		}
		s.Run(t, fmt.Sprintf("ip route add %s via 10.200.0.%d src %s", other.inner, 2-i, s.inner))
		s.configure(other, i)
	}
	studio.AwaitLinks(t)
	office.AwaitLinks(t)
	if out, err := studio.volnet("check", "--config", studio.config); err != nil {
		for _, lacking := range []error{edge.ErrPrivileges, edge.ErrUnsupported} {
			if strings.Contains(out, lacking.Error()) {
				t.Skipf("skipped: no edge can run here: %s", out)
			}
		}
		t.Fatalf("check: %v: %s", err, out)
	}
	return studio, office
}

// configure writes the configuration of a site, and mounts a BPF file system for its pins.
func (s *site) configure(other *site, i int) {
	s.t.Helper()
	s.state = s.t.TempDir()
	// The user of the edge may enter the folder of the test.
	if err := os.Chmod(filepath.Dir(s.state), 0o755); err != nil {
		s.t.Fatal(err)
	}
	key := filepath.Join(s.state, "pair.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("5a", 32)+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	bpf := filepath.Join(s.state, "bpf")
	if err := os.Mkdir(bpf, 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.Run(s.t, "mount -t bpf -o mode=0700 bpf "+bpf)
	s.Run(s.t, fmt.Sprintf("chown %d:%d %s %s %s", s.user, s.user, s.state, bpf, key))
	text := fmt.Sprintf(`name: %s
peer: %s
key-file: %s
state: %s
metrics-listen: 127.0.0.1:9092
paths:
  - {name: fibre, interface: vn4p0, local: 10.200.0.%d, remote: 10.200.0.%d}
  - {name: mobile, interface: vn4p1, local: 10.200.1.%d, remote: 10.200.1.%d}
send:
  rules:
    - {name: conference, to: %s/32, protocol: udp, ports: 7882, copies: all}
receive:
  inner: [%s/32]
`, s.name, other.name, key, s.state, i+1, 2-i, i+1, 2-i, other.inner, other.inner)
	s.config = filepath.Join(s.state, "volnet.yaml")
	if err := os.WriteFile(s.config, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// program is a running volnet.
type program struct {
	*exec.Cmd
	log bytes.Buffer
	// ended is closed when the program has ended.
	ended chan struct{}
}

// start runs volnet in the namespace as a user, until the test ends at the latest.
func (s *site) start(user int, environment []string, arguments ...string) *program {
	s.t.Helper()
	p := &program{Cmd: exec.Command("/proc/self/exe", arguments...), ended: make(chan struct{})}
	p.Env = append(append(os.Environ(), asProgram+"=1"), environment...)
	p.Stderr = &p.log
	// The program ends with the thread of the namespace, which ends with the test.
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if user != 0 {
		p.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
		p.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_BPF, unix.CAP_NET_ADMIN}
	}
	var err error
	s.Do(func() { err = p.Start() })
	if err != nil {
		s.t.Fatal(err)
	}
	go func() {
		_ = p.Wait()
		close(p.ended)
	}()
	s.t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
		if s.t.Failed() {
			s.t.Logf("log of %s %s:\n%s", s.name, strings.Join(arguments, " "), p.log.String())
		}
	})
	return p
}

// volnet runs a command to its end and returns its output.
func (s *site) volnet(arguments ...string) (string, error) {
	var out []byte
	var err error
	s.Do(func() {
		command := exec.Command("/proc/self/exe", arguments...)
		command.Env = append(os.Environ(), asProgram+"=1")
		out, err = command.CombinedOutput()
	})
	return string(out), err
}

// edge runs the edge of the site.
func (s *site) edge(environment ...string) *program {
	s.t.Helper()
	s.running = s.start(s.user, environment, "edge", "--config", s.config)
	return s.running
}

// status returns the state of the edge, the zero state if it does not answer.
func (s *site) status() daemon.Status {
	s.t.Helper()
	var status daemon.Status
	if out, err := s.volnet("status", "--json", "--config", s.config); err == nil {
		if err := json.Unmarshal([]byte(out), &status); err != nil {
			s.t.Fatalf("%v: %s", err, out)
		}
	}
	return status
}

// send sends numbered datagrams to the other site and returns how many arrived there, repeats included.
func (s *site) send(other *site, count int) (arrived int) {
	s.t.Helper()
	var receiver, sender net.Conn
	var err error
	other.Do(func() {
		receiver, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(other.inner), Port: 7882})
	})
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = receiver.Close() }()
	s.Do(func() { sender, err = net.Dial("udp4", other.inner+":7882") })
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = sender.Close() }()
	seen := make([]int, count)
	buffer := make([]byte, 2048)
	note := func(n int) {
		var number int
		if _, err := fmt.Sscan(string(buffer[:n]), &number); err != nil || number < 0 || number >= count {
			s.t.Fatalf("%q arrived", buffer[:n])
		}
		seen[number]++
		arrived++
	}
	for i := range count {
		if _, err := fmt.Fprint(sender, i); err != nil {
			s.t.Fatal(err)
		}
		// A datagram is in the socket when the write has returned: veths deliver at once, or within a softirq.
		_ = receiver.SetReadDeadline(time.Now().Add(time.Second))
		if n, err := receiver.Read(buffer); err == nil {
			note(n)
		}
	}
	_ = receiver.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	for {
		n, err := receiver.Read(buffer)
		if err != nil {
			break
		}
		note(n)
	}
	repeated := 0
	for _, times := range seen {
		if times > 1 {
			repeated++
		}
	}
	if repeated > 0 {
		s.t.Errorf("%d of %d datagrams arrived more than once", repeated, count)
	}
	return arrived
}

// sum returns the sum of the metrics of a site, as Prometheus reads them.
func (s *site) sum(metric string, labels ...string) float64 {
	s.t.Helper()
	var answer bytes.Buffer
	var err error
	s.Do(func() {
		var c net.Conn
		if c, err = net.Dial("tcp4", "127.0.0.1:9092"); err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		_, _ = fmt.Fprint(c, "GET /metrics HTTP/1.0\r\n\r\n")
		_, err = answer.ReadFrom(c)
	})
	if err != nil {
		s.t.Fatal(err)
	}
	_, text, _ := strings.Cut(answer.String(), "\r\n\r\n")
	series, err := exposition.Parse(strings.NewReader(text))
	if err != nil {
		s.t.Fatal(err)
	}
	return series.Sum(metric, labels...)
}

// up waits until both edges know each other and can use both paths.
func up(t *testing.T, sites ...*site) {
	t.Helper()
	for _, s := range sites {
		wait.Until(t, "the edge "+s.name+" is up", func() bool {
			select {
			case <-s.running.ended:
				t.Fatalf("the edge %s has ended", s.name)
			default:
			}
			status := s.status()
			return status.PeerAlive && !slices.ContainsFunc(status.Paths, func(p edge.PathStatus) bool {
				return p.State != edge.PathUp
			})
		})
	}
}

// TestPair runs a pair from start to end: copies, orders, metrics, a crash, and detaching.
func TestPair(t *testing.T) {
	studio, office := newPair(t)
	stalls := wait.WatchStalls(t)
	first, other := studio.edge(), office.edge()
	up(t, studio, office)
	const count = 200
	if arrived := studio.send(office, count); arrived != count {
		t.Errorf("%d of %d datagrams arrived", arrived, count)
	}
	// If an edge waits for a processor for a second, packets leave plain in the meantime.
	plain := studio.sum("volnet_plain_packets_total")
	if plain > 0 && stalls.Longest() <= stalled {
		t.Errorf("%v datagrams left plain, expected none", plain)
	}
	copied := count - plain
	wait.Until(t, "the metrics have all copies", func() bool {
		return office.sum("volnet_path_first_total") == copied && office.sum("volnet_path_repeated_total") == copied &&
			studio.sum("volnet_path_packets_total", `direction="out"`) == 2*copied
	})
	if cost := studio.sum("volnet_cost_factor"); cost != 2 {
		t.Errorf("the cost factor is %v, expected 2", cost)
	}

	// An order ends copies.
	if out, err := studio.volnet("set", "conference", "off", "--config", studio.config); err != nil {
		t.Fatalf("set: %v: %s", err, out)
	}
	if out, err := studio.volnet("set", "typo", "all", "--config", studio.config); err == nil ||
		!strings.Contains(out, `"typo"`) || strings.Count(out, "\n") != 1 {
		t.Errorf("an order for an unknown rule: %v, %q", err, out)
	}
	studio.send(office, 10)
	if sent := studio.sum("volnet_path_packets_total", `direction="out"`); sent != 2*copied {
		t.Errorf("%v copies were sent, expected none after the order", sent-2*copied)
	}
	if out, err := studio.volnet("set", "conference", "configured", "--config", studio.config); err != nil {
		t.Fatalf("set: %v: %s", err, out)
	}

	// A second edge of that name does not start.
	if out, err := studio.volnet("edge", "--config", studio.config); err == nil ||
		!strings.Contains(out, "address already in use") {
		t.Errorf("a second edge: %v, %s", err, out)
	}

	// The programs outlive a crash. The next edge continues with their counters.
	_ = first.Process.Kill()
	<-first.ended
	if arrived := studio.send(office, count); arrived != count {
		t.Errorf("without the process %d of %d datagrams arrived", arrived, count)
	}
	studio.edge()
	wait.Until(t, "the edge is back", func() bool { return studio.status().Readopted })
	up(t, studio, office)
	if arrived := studio.send(office, count); arrived != count {
		t.Errorf("after the crash %d of %d datagrams arrived", arrived, count)
	}

	// Detaching leaves nothing, whether an edge runs or not.
	_ = other.Process.Kill()
	<-other.ended
	for _, s := range []*site{studio, office} {
		if out, err := s.volnet("detach", "--config", s.config); err != nil || out != "" {
			t.Errorf("detach: %v, %s", err, out)
		}
		var left []string
		var err error
		s.Do(func() {
			// The BPF file system is mounted in the namespace.
			left, err = leftover.Attached()
			left = append(left, leftover.Files(s.state, s.name)...)
		})
		if err != nil || left != nil {
			t.Errorf("detaching %s left %v (%v)", s.name, left, err)
		}
	}
	if arrived := studio.send(office, 10); arrived != 10 {
		t.Errorf("without edges %d of 10 datagrams arrived", arrived)
	}
}

// TestPairWithController kills the controller of an edge: no datagram is lost, and the order stays in force.
func TestPairWithController(t *testing.T) {
	dir := t.TempDir()
	files := certificate.New(t, "10.200.0.2")
	keyFile := filepath.Join(dir, "keys")
	token := func(claims auth.Claims) string {
		keys, err := auth.NewKeyring(auth.Config{KeyFile: keyFile})
		if err != nil {
			t.Fatal(err)
		}
		claims.Expires = time.Now().Add(time.Hour)
		text, err := keys.Mint("", claims, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if err := os.WriteFile(keyFile, []byte("first:"+strings.Repeat("k", auth.MinSecretBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	studio, office := newPair(t)
	text, err := os.ReadFile(studio.config)
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(text, "controller: {url: \"https://10.200.0.2:8443\", token-file: %s}\n",
		token(auth.Claims{Identity: "studio", Edge: true}))
	if err := os.WriteFile(studio.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	controller := office.start(0, nil, "controller", "--listen", "10.200.0.2:8443", "--tls-cert", files.Certificate,
		"--tls-key", files.Key, "--key-file", keyFile, "--state", filepath.Join(dir, "orders.json"))
	trust := "SSL_CERT_FILE=" + files.Certificate
	studio.edge(trust)
	office.edge()
	up(t, studio, office)
	connected := func() bool {
		c := studio.status().Controller
		return c != nil && c.Connected
	}
	wait.Until(t, "the edge is connected", connected)
	operator := token(auth.Claims{Identity: "operator", Admin: true})
	order := func(copies string) {
		t.Helper()
		var out []byte
		var err error
		office.Do(func() {
			command := exec.Command("/proc/self/exe", "set", "conference", copies, "--edge", "studio", "--controller",
				"https://10.200.0.2:8443", "--token-file", operator)
			command.Env = append(os.Environ(), asProgram+"=1", trust)
			out, err = command.CombinedOutput()
		})
		if err != nil || len(out) > 0 {
			t.Errorf("set: %v, %s", err, out)
		}
	}
	order("fibre")
	if rules := studio.status().Rules; len(rules) != 1 || rules[0].Copies.String() != "fibre" {
		t.Errorf("the rules are %+v", rules)
	}
	_ = controller.Process.Kill()
	<-controller.ended
	wait.Until(t, "the edge notices", func() bool { return !connected() })
	if arrived := studio.send(office, 200); arrived != 200 {
		t.Errorf("without the controller %d of 200 datagrams arrived", arrived)
	}
	if rules := studio.status().Rules; len(rules) != 1 || rules[0].Copies.String() != "fibre" {
		t.Errorf("without the controller the rules are %+v", rules)
	}
}
