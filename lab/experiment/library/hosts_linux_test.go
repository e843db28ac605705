package library

import (
	"compress/gzip"
	"encoding/json"
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

// run runs an experiment on both hosts and returns its folder and its result.
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
	text, err := os.ReadFile(filepath.Join(h.folder, name, "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var result experiment.Result
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(h.folder, name), &result
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

// figure returns a figure of the only iteration of a cell.
func figure(t *testing.T, c *experiment.CellResult, name string) float64 {
	t.Helper()
	if len(c.Iterations) != 1 || c.Iterations[0].Validity == experiment.Skipped {
		t.Fatalf("%s: got %+v", c.Name, c.Iterations)
	}
	value, ok := c.Iterations[0].Figure(name)
	if !ok {
		t.Fatalf("%s: no figure %s: %+v", c.Name, name, c.Iterations[0].Outcome)
	}
	return value
}

// TestTwoHosts: on two hosts with clocks 50 ms apart, latencies are right within the stated bound, for sessions through
// a server, for a producer and a consumer, and for single packets.
func TestTwoHosts(t *testing.T) {
	h := newTwoHosts(t)
	folder, result := h.run(t, "sessions", `name: sessions
title: Two transports
scenario: paper001/session
iterations: 1
seconds: 2
parameters: {level: 5, fps: 30}
matrix: [{transport: [reflector, volsfu-unpaced]}]
`)
	for i := range result.Cells {
		c := &result.Cells[i]
		latency, transport := figure(t, c, "latency"), c.Name[strings.Index(c.Name, "=")+1:]
		bound := c.Iterations[0].ClockBound
		if bound <= 0 || bound > 25 {
			t.Errorf("%s: the bound of the clocks is %v ms, want more than 0 and at most half of 50", c.Name, bound)
		}
		raw, err := filepath.Glob(filepath.Join(folder, "raw", "*"))
		if err != nil || len(raw) != len(result.Cells) {
			t.Fatalf("got the folders %v, %v", raw, err)
		}
		for _, cell := range raw {
			if !strings.HasSuffix(cell, transport) {
				continue
			}
			at := filepath.Join(cell, "0")
			sent := records(t, at, "publisher", 0)
			real := cast.Layer(cast.Join(sent, records(t, at, "watcher", apart)), frametimes.Service)
			wrong := cast.Layer(cast.Join(sent, records(t, at, "watcher", 0)), frametimes.Service)
			off := experiment.Mean(wrong) - experiment.Mean(real)
			t.Logf("%s: latency %.3f ms, really %.3f (of more frames), without correction %.3f, bound %.3f ms", c.Name,
				latency, experiment.Mean(real), experiment.Mean(wrong), bound)
			if math.Abs(off-50) > 1 {
				t.Errorf("%s: without correction the latency is off by %v ms, want 50", c.Name, off)
			}
			// The report has the frames of the window, the records have all.
			if low, high := experiment.Quantile(real, 0)-bound, experiment.Quantile(real, 1)+bound; latency < low ||
				latency > high {
				t.Errorf("%s: the latency is %v ms, want %v to %v", c.Name, latency, low, high)
			}
		}
	}
}
