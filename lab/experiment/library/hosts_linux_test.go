package library

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/agent/wire"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/cast"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/namespace"
	"github.com/volsfu/volsfu/test/program"
	"github.com/volsfu/volsfu/test/wait"
)

// apart is how far the clock of the right host is ahead.
const apart = 50 * time.Millisecond

// twoHosts is a lab of two namespaces, each on a bridge of a router.
type twoHosts struct {
	left, right *namespace.Namespace
	programs    string
	folder      string
	file        string // the file of hosts
}

// newTwoHosts starts an agent in each namespace. The left host also runs the controller.
func newTwoHosts(t *testing.T) *twoHosts {
	t.Helper()
	router := namespace.New(t)
	h := &twoHosts{left: namespace.New(t), right: namespace.New(t), folder: t.TempDir(),
		programs: program.Build{Cgo: true}.Folder(t, "vollab")}
	router.Run(t, "sysctl -q net.ipv4.ip_forward=1")
	router.Run(t, "ip link set lo up")
	for n, host := range []*namespace.Namespace{h.left, h.right} {
		host.Run(t, "ip link set lo up")
		router.Run(t, fmt.Sprintf("ip link add bridge%d type bridge", n))
		router.Run(t, fmt.Sprintf("ip address add 10.33.%d.1/24 dev bridge%d", n, n))
		router.Run(t, fmt.Sprintf("ip link add port%d type veth peer name lan netns %d", n, host.Thread))
		router.Run(t, fmt.Sprintf("ip link set port%d master bridge%d", n, n))
		router.Run(t, fmt.Sprintf("ip link set port%d up", n))
		router.Run(t, fmt.Sprintf("ip link set bridge%d up", n))
		host.Run(t, fmt.Sprintf("ip address add 10.33.%d.2/24 dev lan", n))
		host.Run(t, "ip link set lan up")
		host.Run(t, fmt.Sprintf("ip route add default via 10.33.%d.1", n))
	}
	router.AwaitLinks(t)
	h.left.AwaitLinks(t)
	h.right.AwaitLinks(t)
	key := filepath.Join(h.folder, "lab.key")
	if err := wire.CreateKey(key); err != nil {
		t.Fatal(err)
	}
	h.agent(t, h.left, "10.33.0.2:7490", key, 0)
	h.agent(t, h.right, "10.33.1.2:7490", key, apart)
	h.file = filepath.Join(h.folder, "hosts.yaml")
	if err := os.WriteFile(h.file, []byte(`key: lab.key
hosts:
  left: {agent: 10.33.0.2:7490}
  right: {agent: 10.33.1.2:7490}
roles: {server: left, publisher: left, watcher: right, producer: left, consumer: right, sender: left, receiver: right}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// output is the output of a process, which a test waits for.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(data)
}

// String returns the output so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// agent starts an agent in a namespace, with a clock that is ahead, and waits until the agent listens. The agent ends
// with the test.
func (h *twoHosts) agent(t *testing.T, in *namespace.Namespace, listen, key string, ahead time.Duration) {
	t.Helper()
	var said output
	cmd := exec.Command(filepath.Join(h.programs, "vollab"), "agent", "--listen", listen, "--key", key, "--data", "")
	cmd.Env = append(os.Environ(), wallclock.Variable+"="+ahead.String())
	cmd.Stderr = &said
	start(t, in, cmd)
	wait.Until(t, "the agent listens", func() bool { return strings.Contains(said.String(), "msg=listening") })
}

// start starts a command in a namespace and ends it with the test.
func start(t *testing.T, in *namespace.Namespace, cmd *exec.Cmd) {
	t.Helper()
	var err error
	in.Do(func() { err = cmd.Start() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
}

// run runs an experiment on both hosts and returns its folder and its result, from the journal.
func (h *twoHosts) run(t *testing.T, name, file string) (string, *experiment.Result) {
	t.Helper()
	path := filepath.Join(h.folder, name+".yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	var said output
	cmd := exec.CommandContext(t.Context(), filepath.Join(h.programs, "vollab"), "run", "--file", path, "--hosts",
		h.file, "--out", h.folder, "--data", "")
	cmd.Stdout, cmd.Stderr = io.Discard, &said
	var err error
	h.left.Do(func() { err = cmd.Run() })
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, said.String())
	}
	l, err := New()
	if err != nil {
		t.Fatal(err)
	}
	result, err := l.Reopen(filepath.Join(h.folder, name))
	if err != nil {
		t.Fatal(err)
	}
	h.checkReport(t, name, result)
	return filepath.Join(h.folder, name), result
}

// checkReport checks the description of the hosts in a report.
func (h *twoHosts) checkReport(t *testing.T, name string, r *experiment.Result) {
	t.Helper()
	if r.Hosts == nil || len(r.Hosts.Hosts) != 2 {
		t.Fatalf("%s: the report has the hosts %+v", name, r.Hosts)
	}
	for i, ahead := range []float64{0, 50} {
		clock := r.Hosts.Hosts[i].Clock
		if math.Abs(clock.Last-ahead) > clock.Bound || r.Hosts.Hosts[i].Environment.Cores == 0 {
			t.Errorf("%s: the report has the host %+v, whose clock is really %v ms ahead", name, r.Hosts.Hosts[i],
				ahead)
		}
	}
	page, err := os.ReadFile(filepath.Join(h.folder, name, "report.html"))
	if err != nil || !strings.Contains(string(page), "host right: clock") {
		t.Errorf("%s: the page does not describe the hosts: %v", name, err)
	}
}

// records reads the records of a player as its host wrote them, with a correction of the receiver's stamps.
func records(t *testing.T, folder, name string, correction time.Duration) (list []frametimes.Record) {
	t.Helper()
	file, err := os.Open(filepath.Join(folder, name+".jsonl"))
	var lines io.Reader = file
	if errors.Is(err, os.ErrNotExist) {
		// A large file is compressed.
		if file, err = os.Open(filepath.Join(folder, name+".jsonl.gz")); err == nil {
			lines, err = gzip.NewReader(file)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := frametimes.ReadJSONL(lines, func(r *frametimes.Record) error {
		for stamp := range frametimes.Stamp(frametimes.Stamps) {
			if r.Has(stamp) && stamp.Host() == frametimes.Receiver {
				r.Times[stamp] -= int64(correction)
			}
		}
		list = append(list, *r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

// iteration returns the only iteration of a cell.
func iteration(t *testing.T, c *experiment.CellResult) *experiment.IterationResult {
	t.Helper()
	if len(c.Iterations) != 1 || c.Iterations[0].Validity == experiment.Skipped ||
		c.Iterations[0].Validity == experiment.Failed {
		t.Fatalf("%s: got %+v", c.Name, c.Iterations)
	}
	return &c.Iterations[0]
}

// samples returns the samples of a figure.
func samples(t *testing.T, i *experiment.IterationResult, name string) []float64 {
	t.Helper()
	for _, f := range i.Figures {
		if f.Name == name && len(f.Samples) > 0 {
			return f.Samples
		}
	}
	t.Fatalf("no samples of %s: %+v", name, i.Outcome)
	return nil
}

// nearest returns the smallest largest difference between some values and as many consecutive others.
func nearest(some, all []float64) float64 {
	best := math.Inf(1)
	for begin := 0; begin+len(some) <= len(all); begin++ {
		most := 0.0
		for i, v := range some {
			most = max(most, math.Abs(v-all[begin+i]))
		}
		best = min(best, most)
	}
	return best
}

// checkSession checks the latencies of a session's frames: with the real offset of the clocks, each is right within the
// bound, and without a correction it is off by 50 ms.
func checkSession(t *testing.T, folder string, c *experiment.CellResult) {
	t.Helper()
	i := iteration(t, c)
	if i.ClockBound <= 0 || i.ClockBound > 25 {
		t.Errorf("%s: the bound of the clocks is %v ms, want more than 0 and at most half of 50", c.Name, i.ClockBound)
	}
	latency := samples(t, i, "latency")
	at := filepath.Join(folder, "raw", strings.ReplaceAll(c.Name, " ", "_"), "0")
	sent := records(t, at, "publisher", 0)
	right := cast.Layer(cast.Join(sent, records(t, at, "watcher", apart)), frametimes.Service)
	wrong := cast.Layer(cast.Join(sent, records(t, at, "watcher", 0)), frametimes.Service)
	off, without := nearest(latency, right), nearest(latency, wrong)
	t.Logf("%s: %d frames, mean latency %.3f ms, off by at most %.3f ms, bound %.3f ms; uncorrected off by %.3f ms",
		c.Name, len(latency), experiment.Mean(latency), off, i.ClockBound, without)
	if off > i.ClockBound {
		t.Errorf("%s: the latencies are off by %v ms, and the bound is %v ms", c.Name, off, i.ClockBound)
	}
	if math.Abs(without-50) > i.ClockBound {
		t.Errorf("%s: without correction the latencies are off by %v ms, want 50", c.Name, without)
	}
}

// TestTwoHosts: through a server on one of two hosts with clocks 50 ms apart, the latency of every frame is right
// within the stated bound.
func TestTwoHosts(t *testing.T) {
	h := newTwoHosts(t)
	folder, result := h.run(t, "sessions", `name: sessions
title: A session on two hosts
scenario: paper001/session
iterations: 1
seconds: 1
parameters: {level: 5, fps: 30}
matrix: [{transport: [volsfu-unpaced]}]
`)
	checkSession(t, folder, &result.Cells[0])
}

// TestTwoHostsOfPapers: the experiments of papers 001, 002 and 004 on two hosts with clocks 50 ms apart.
func TestTwoHostsOfPapers(t *testing.T) {
	long.Test(t)
	h := newTwoHosts(t)
	folder, result := h.run(t, "transports", `name: transports
title: Transports on two hosts
scenario: paper001/session
iterations: 1
seconds: 3
parameters: {level: 5, fps: 30, emulated: true}
matrix:
  - {transport: [reflector, direct-tcp], delay: 0s}
  - {transport: [reflector], delay: 20ms}
`)
	checkSession(t, folder, &result.Cells[0])
	checkSession(t, folder, &result.Cells[1])
	got := result.Cells[2].Iterations[0]
	if got.Validity != experiment.Skipped || !strings.Contains(got.Reason, "20ms") {
		t.Errorf("a cell of another link: got %s, %s", got.Validity, got.Reason)
	}
	_, result = h.run(t, "streaming", `name: streaming
title: A producer and a consumer on two hosts
scenario: paper002/streaming
iterations: 1
seconds: 3
parameters: {points: 20000, fps: 10}
matrix: [{level: [1]}]
`)
	i := iteration(t, &result.Cells[0])
	latency := samples(t, i, "end_to_end")
	t.Logf("%d frames, end to end %.3f ms, bound %.3f ms", len(latency), experiment.Mean(latency), i.ClockBound)
	// Stages on one host have no error of a clock. The rest of a latency is the network's, which takes less than 25 ms.
	own := experiment.Mean(samples(t, i, "producer_processing")) + experiment.Mean(samples(t, i, "consumer_processing"))
	if i.ClockBound <= 0 || i.ClockBound > 25 || experiment.Mean(latency) < own-i.ClockBound {
		t.Errorf("end to end %v ms, of which both ends take %v ms, bound %v ms", experiment.Mean(latency), own,
			i.ClockBound)
	}
	_, result = h.run(t, "probes", `name: probes
title: Packets between two hosts
scenario: paper004/probes
iterations: 1
seconds: 1
parameters: {count: 100}
matrix: [{segment: [B, loopback]}]
`)
	for n, name := range []string{"B", "loopback"} {
		i := iteration(t, &result.Cells[n])
		wire := samples(t, i, "wire")
		t.Logf("segment %s: kernel to kernel %.1f µs, bound %.3f ms", name, experiment.Mean(wire), i.ClockBound)
		if low, high := experiment.Quantile(wire, 0), experiment.Quantile(wire, 0.5); low < -1000*i.ClockBound ||
			high > 1000*(i.ClockBound+25) || (i.ClockBound == 0) != (name == "loopback") {
			t.Errorf("segment %s: kernel to kernel %v to %v µs, bound %v ms", name, low, high, i.ClockBound)
		}
	}
}
