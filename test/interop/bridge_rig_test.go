package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/program"
	"github.com/volsfu/volsfu/test/wait"
)

// bridgeTools are the programs that tests of the bridge run.
type bridgeTools struct{ volbridge, connector string }

// buildBridgeTools builds the bridge as it is released, without cgo, and the connector's stand-in.
func buildBridgeTools(t *testing.T) bridgeTools {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	if _, err := exec.LookPath(cc); err != nil {
		t.Skipf("skipped: the stand-in for VR2Gather's connector is in C, and no compiler is installed: %v", err)
	}
	tools := bridgeTools{program.Static().Path(t, "volbridge"), filepath.Join(t.TempDir(), "connector")}
	compile := exec.Command(cc, "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", tools.connector,
		filepath.Join("connector", "connector.c"))
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compile, err, out)
	}
	return tools
}

// bridgeProcess is a running bridge.
type bridgeProcess struct {
	t        *testing.T
	cmd      *exec.Cmd
	stdin    io.Closer
	out, log bytes.Buffer
	ended    chan error
}

// bridgeSummary is the part of the bridge's summary that tests use.
type bridgeSummary struct {
	Sessions      int64 `json:"sessions"`
	FromConnector struct {
		Frames      int64 `json:"frames"`
		AudioFrames int64 `json:"audio_frames"`
	} `json:"from_connector"`
	Received struct {
		Undecodable     int64 `json:"frames_undecodable"`
		Missing         int64 `json:"frames_missing"`
		Overflowed      int64 `json:"frames_overflowed"`
		DroppedByServer int64 `json:"frames_dropped_by_server"`
	} `json:"received"`
	Dropped map[string]int64 `json:"dropped"`
	Uplink  struct {
		Dropped int64 `json:"frames_dropped"`
	} `json:"uplink"`
	Up   bridgeDelay `json:"up_ms"`
	Down bridgeDelay `json:"down_ms"`
}

// bridgeDelay is the delay that a bridge adds to frames of one direction, in milliseconds.
type bridgeDelay struct{ P50, P99 float64 }

// lost returns the number of tile frames that the bridge counts as lost.
func (s *bridgeSummary) lost() int64 {
	lost := s.Received.Undecodable + s.Received.Missing + s.Received.Overflowed + s.Received.DroppedByServer +
		s.Uplink.Dropped
	for reason, n := range s.Dropped {
		if strings.Contains(reason, "frames") {
			lost += n
		}
	}
	return lost
}

// startBridge starts a bridge as VR2Gather starts its peer, with that name and command line, followed by further
// arguments.
func startBridge(t *testing.T, tools bridgeTools, url string, port, client, tiles, qualities int,
	more ...string) *bridgeProcess {
	t.Helper()
	name := filepath.Join(t.TempDir(), "WebRTCSFU-peer")
	if err := os.Symlink(tools.volbridge, name); err != nil {
		t.Fatal(err)
	}
	b := &bridgeProcess{t: t, ended: make(chan error, 1)}
	launch := []string{"-p", fmt.Sprintf(":%d", port), "-i", "-o", "-sfu", strings.TrimPrefix(url, "ws://"),
		"-c", strconv.Itoa(client), "-t", strconv.Itoa(tiles), "-q", strconv.Itoa(qualities), "-l", "0", "--json"}
	b.cmd = exec.Command(name, append(launch, more...)...)
	b.cmd.Stdout, b.cmd.Stderr = &b.out, &b.log
	var err error
	if b.stdin, err = b.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { b.ended <- b.cmd.Wait() }()
	t.Cleanup(func() {
		_ = b.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("bridge %d said:\n%s", client, b.log.String())
		}
	})
	return b
}

// stop ends the bridge and returns its summary.
func (b *bridgeProcess) stop() *bridgeSummary {
	b.t.Helper()
	if err := b.cmd.Process.Signal(os.Interrupt); err != nil {
		b.t.Fatal(err)
	}
	return b.end()
}

// end waits until the bridge ends without an error, and returns its summary.
func (b *bridgeProcess) end() *bridgeSummary {
	b.t.Helper()
	select {
	case err := <-b.ended:
		if err != nil {
			b.t.Errorf("bridge ended with %v", err)
		}
	case <-time.After(patience):
		b.t.Fatal("the bridge does not end")
	}
	var s bridgeSummary
	if err := json.Unmarshal(b.out.Bytes(), &s); err != nil {
		b.t.Fatalf("summary %q: %v", b.out.String(), err)
	}
	b.t.Logf("%s", bytes.TrimSpace(b.out.Bytes()))
	return &s
}

// standIn is a running stand-in for the connector.
type standIn struct {
	t     *testing.T
	stdin io.WriteCloser

	mu sync.Mutex
	// sent and received count frames by kind and hash; last is the quality of the newest tile frame.
	sent, received map[string]int
	last           string
	// words counts lines by their first word, or by two words for done; bad are the frames that could not be used.
	words map[string]int
	bad   []string
}

func startConnector(t *testing.T, tools bridgeTools, port, client int) *standIn {
	t.Helper()
	c := &standIn{t: t, sent: make(map[string]int), received: make(map[string]int), words: make(map[string]int)}
	cmd := exec.Command(tools.connector, strconv.Itoa(port), strconv.Itoa(client))
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			c.line(lines.Text())
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
	return c
}

// line processes a line of the stand-in's output.
func (c *standIn) line(text string) {
	words := strings.Fields(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch words[0] {
	case "sent":
		c.sent[words[1]+" "+words[len(words)-1]]++
	case "received":
		c.received[words[1]+" "+words[len(words)-1]]++
		if words[1] == "tile" {
			c.last = words[4]
		}
	case "rejected", "broken":
		c.bad = append(c.bad, text)
	}
	key := words[0]
	if key == "done" {
		key += " " + words[1]
	}
	c.words[key]++
}

// say sends the stand-in a command.
func (c *standIn) say(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.stdin, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *standIn) count(word string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.words[word]
}

// heard returns the number of different received frames of a kind, and the number of those that the other side did not
// send or that arrived twice.
func (c *standIn) heard(kind string, from *standIn) (came, wrong int) {
	from.mu.Lock()
	defer from.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for frame, times := range c.received {
		if !strings.HasPrefix(frame, kind) {
			continue
		}
		came++
		if from.sent[frame] != times {
			wrong++
		}
	}
	return came, wrong
}

// wrong returns the number of different received frames of a kind, and the number of those that are wrong. A connector
// says what it has sent after the frame has left, so that the frame may be received before.
func (c *standIn) wrong(kind string, from *standIn) (came, wrong int) {
	wait.For(patience, func() bool {
		came, wrong = c.heard(kind, from)
		return wrong == 0
	})
	return came, wrong
}

// latest returns the quality of the newest tile frame.
func (c *standIn) latest() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last
}

// refused returns the frames that the stand-in could not use.
func (c *standIn) refused() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.bad...)
}
