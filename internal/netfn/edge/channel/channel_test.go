package channel

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/wire"
	"github.com/volsfu/volsfu/test/transcript"
)

var testKey = bytes.Repeat([]byte{7}, 32)

// pair is two edges, a and b, and the messages that they have sent, which a transcript names m1, m2 and so on.
type pair struct {
	edges    map[string]*Channel
	runs     map[string]uint64
	messages [][]byte
	now      time.Duration
}

func newPair() *pair {
	p := &pair{edges: map[string]*Channel{}, runs: map[string]uint64{"a": 100, "b": 200}}
	p.restart("a")
	p.restart("b")
	return p
}

func (p *pair) restart(name string) {
	peer := map[string]string{"a": "b", "b": "a"}[name]
	p.runs[name]++
	p.edges[name] = New(wire.NewKeys(testKey, name, peer), p.runs[name], p.now)
}

// TestTranscripts plays transcripts. A line is a time in ms, an edge and what happens there:
//
//	hello PATH, report PATH, closing PATH, answer   the edge sends a message
//	gets mN [on PATH] [flipped|cut|kind]            message N arrives, perhaps on another path or damaged
//	restarts                                        the edge begins a new run
//	lease, counts, alive                            prints the state
func TestTranscripts(t *testing.T) {
	transcript.PlaySteps(t, "testdata/*.txt", func(t *testing.T) func([]string) string {
		p := newPair()
		return func(words []string) string {
			ms, err := strconv.Atoi(words[0])
			if err != nil {
				t.Fatalf("line %v: %v", words, err)
			}
			p.now = time.Duration(ms) * time.Millisecond
			return p.act(t, words[1], words[2], words[3:])
		}
	})
}

func (p *pair) act(t *testing.T, name, verb string, words []string) string {
	c := p.edges[name]
	switch verb {
	case "hello", "report", "closing":
		path, err := strconv.Atoi(words[0])
		if err != nil {
			t.Fatal(err)
		}
		var message []byte
		switch verb {
		case "hello":
			message, err = c.Message(wire.KindHello, path, []byte("hi"), p.now)
		case "report":
			message, err = c.Message(wire.KindReport, path, []byte("news"), p.now)
		default:
			message, err = c.Closing(path, p.now)
		}
		if err != nil {
			t.Fatal(err)
		}
		return p.keep(message)
	case "answer":
		path, message, err := c.Answer(p.now)
		switch {
		case err != nil:
			t.Fatal(err)
		case message == nil:
			return "nothing"
		}
		return fmt.Sprintf("%s on path %d", p.keep(message), path)
	case "gets":
		return p.deliver(t, c, words)
	case "restarts":
		p.restart(name)
		return ""
	case "lease":
		lease, known := c.Lease()
		if !known {
			return "unknown"
		}
		return fmt.Sprintf("until %d", lease.Milliseconds())
	case "alive":
		return fmt.Sprint(c.PeerAlive(p.now))
	case "counts":
		return fmt.Sprintf("%+v", c.Counts())
	}
	t.Fatalf("unknown verb %q", verb)
	return ""
}

func (p *pair) keep(message []byte) string {
	p.messages = append(p.messages, message)
	return fmt.Sprintf("m%d", len(p.messages))
}

func (p *pair) deliver(t *testing.T, c *Channel, words []string) string {
	n, err := strconv.Atoi(strings.TrimPrefix(words[0], "m"))
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Clone(p.messages[n-1])
	path := int(data[1])
	for i, word := range words[1:] {
		switch word {
		case "on":
			if path, err = strconv.Atoi(words[i+2]); err != nil {
				t.Fatal(err)
			}
		case "flipped":
			data[len(data)-20] ^= 1
		case "cut":
			data = data[:len(data)-1]
		case "kind":
			data[0] ^= wire.KindHello ^ wire.KindReport
		}
	}
	m, err := c.Receive(path, data, p.now)
	if err != nil {
		return "dropped: " + err.Error()
	}
	result := map[uint8]string{wire.KindHello: "hello", wire.KindReport: "report"}[m.Kind]
	if m.Restarted {
		result += " of a new run"
	}
	if m.Closing {
		result += ", closing"
	}
	return fmt.Sprintf("%s %q", result, m.Body)
}

// TestReplayWindow compares the window with a list of all counters.
func TestReplayWindow(t *testing.T) {
	var w replayWindow
	seen := map[uint32]bool{}
	var highest uint32
	counter := uint32(1)
	for i := range 20_000 {
		// A walk with steps ahead of up to 99 and back of up to 80.
		counter += uint32(i*7919%180) - 80
		if int32(counter) < 1 {
			counter = 1
		}
		want := !seen[counter] && (counter > highest || highest-counter < 64)
		if got := w.accept(counter); got != want {
			t.Fatalf("step %d: counter %d with highest %d: got %v, expected %v", i, counter, highest, got, want)
		}
		if want {
			seen[counter] = true
		}
		highest = max(highest, counter)
	}
}

// FuzzReceive delivers an arbitrary datagram between valid messages. It must not be taken for a message, unless it is
// one, and must not disturb the channel.
func FuzzReceive(f *testing.F) {
	a, b := New(wire.NewKeys(testKey, "a", "b"), 1, 0), New(wire.NewKeys(testKey, "b", "a"), 2, 0)
	for _, c := range []*Channel{a, b} {
		message, err := c.Message(wire.KindHello, 1, []byte("body"), 0)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := newPair()
		exchange(t, p)
		lease, _ := p.edges["a"].Lease()
		if m, err := p.edges["a"].Receive(0, data, p.now); err == nil {
			t.Fatalf("took %x for %+v", data, m)
		}
		if after, _ := p.edges["a"].Lease(); after != lease {
			t.Fatalf("%x changed the lease from %v to %v", data, lease, after)
		}
		p.now += time.Millisecond
		exchange(t, p)
		if after, _ := p.edges["a"].Lease(); after != p.now+AliveFor {
			t.Fatalf("after %x, a report gave the lease %v at %v", data, after, p.now)
		}
	})
}

// exchange sends hellos and answers until a report of b has arrived at a.
func exchange(t *testing.T, p *pair) {
	a, b := p.edges["a"], p.edges["b"]
	for range 2 {
		hello, err := a.Message(wire.KindHello, 0, nil, p.now)
		if err != nil {
			t.Fatal(err)
		}
		_, stale := b.Receive(0, hello, p.now)
		report, err := b.Message(wire.KindReport, 0, nil, p.now)
		if errors.Is(stale, ErrStale) {
			_, report, err = b.Answer(p.now)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Receive(0, report, p.now); err != nil {
			t.Fatal(err)
		}
	}
}
