package paper003

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/edge"
	"github.com/volsfu/volsfu/internal/netfn/wire"
	"github.com/volsfu/volsfu/lab/baseline/duplicator"
	"github.com/volsfu/volsfu/lab/edgepair"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/topology"
)

// exchange runs a viewer and a server in virtual time over a connection with a delay in each direction.
func exchange(t *testing.T, delay, length time.Duration) *viewer {
	t.Helper()
	v := &viewer{interval: 40 * time.Millisecond, outstanding: outstanding}
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		began := time.Now()
		source := &frameSource{frames: [][]byte{make([]byte, 100), make([]byte, 200)}, interval: v.interval}
		link := &slow{Conn: far, queue: make(chan []byte, 100)}
		go link.run(delay)
		served := make(chan error, 1)
		go func() { served <- source.serve(link, began) }()
		if err := v.run(t.Context(), near, began, length, grace); err != nil {
			t.Error(err)
		}
		_ = near.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		close(link.queue)
	})
	return v
}

// slow is a connection that sends the written parts one after the other, each of which takes a time.
type slow struct {
	net.Conn
	queue chan []byte
}

// Write implements net.Conn.
func (s *slow) Write(p []byte) (int, error) {
	s.queue <- bytes.Clone(p)
	return len(p), nil
}

// run sends until the queue is closed.
func (s *slow) run(takes time.Duration) {
	for p := range s.queue {
		time.Sleep(takes)
		_, _ = s.Conn.Write(p)
	}
}

// TestRequests: while answers are quick, the viewer requests a frame in each interval and receives the newest one.
func TestRequests(t *testing.T) {
	v := exchange(t, 10*time.Millisecond, 990*time.Millisecond)
	if len(v.requests) != 25 || len(v.frames) != 25 {
		t.Fatalf("%d requests and %d frames, expected 25", len(v.requests), len(v.frames))
	}
	for i, f := range v.frames {
		want := delivery{requested: time.Duration(i) * v.interval, captured: time.Duration(i) * v.interval,
			received: time.Duration(i)*v.interval + 10*time.Millisecond, bytes: 100 + i%2*100}
		if f != want {
			t.Errorf("frame %d: %+v, expected %+v", i, f, want)
		}
	}
}

// TestStall: while answers take longer than the requests in flight allow, requests wait for frames, so that their
// intervals show the stall.
func TestStall(t *testing.T) {
	v := exchange(t, 200*time.Millisecond, 1990*time.Millisecond)
	if got, want := len(v.requests), outstanding+9; got != want || len(v.frames) != got {
		t.Errorf("%d requests and %d frames, expected %d: one with each frame after the first %d", got, len(v.frames),
			want, outstanding)
	}
	for i := outstanding + 1; i < len(v.requests); i++ {
		if interval := v.requests[i] - v.requests[i-1]; interval != 200*time.Millisecond {
			t.Errorf("request %d came after %v, expected 200 ms", i, interval)
		}
	}
}

// TestLayout: table I, with delays that vary from begin until end only.
func TestLayout(t *testing.T) {
	for _, kind := range []string{VariationPacket, VariationDrift} {
		plan := Layout([]Variation{{kind, 10 * time.Second, 50 * time.Second}}, 1)
		if err := plan.Validate(); err != nil {
			t.Fatal(err)
		}
		if len(plan.Paths) != len(tableOne) {
			t.Fatalf("%d paths, expected those of table I", len(plan.Paths))
		}
		first := plan.Links["path1"].Forth
		if first.Config.Delay != 20*time.Millisecond || first.Config.RateBPS != 400e6 {
			t.Errorf("%s: path 1 is %+v in its quiet state", kind, first.Config)
		}
		changes := first.Schedule
		if changes[0].At != 10*time.Second || changes[len(changes)-1].At != 50*time.Second ||
			changes[len(changes)-1].Config != first.Config {
			t.Errorf("%s: the variation has not the times of the paper", kind)
		}
		least, most := time.Hour, time.Duration(0)
		for _, c := range changes[:len(changes)-1] {
			least, most = min(least, c.Config.Delay-c.Config.Jitter), max(most, c.Config.Delay+c.Config.Jitter)
		}
		if least != 20*time.Millisecond || most != 70*time.Millisecond {
			t.Errorf("%s: delays from %v to %v, expected 20 to 70 ms", kind, least, most)
		}
		if plan.Links["path5"].Forth.Config.Loss != 0 || plan.Links["path1"].Back.Config.Loss != 0.0005 {
			t.Errorf("%s: the losses are not those of table I", kind)
		}
	}
	if plan := Layout(nil, 1); len(plan.Links["path1"].Forth.Schedule) != 0 {
		t.Error("the undisturbed network has a variation")
	}
}

// TestMeasure computes the figures of a run with a stall.
func TestMeasure(t *testing.T) {
	tr := defaultTrial()
	p := &performance{trial: &tr, begin: time.Second, end: 3 * time.Second, readings: []reading{
		{at: time.Second, sent: []uint64{1000, 0, 0, 0, 0}, packets: sentPackets{10, 10}},
		{at: 2 * time.Second, sent: []uint64{1000, 10_000, 0, 0, 0}, packets: sentPackets{20, 25}},
		{at: 3 * time.Second, sent: []uint64{46_000, 15_000, 0, 0, 0}, packets: sentPackets{30, 40}},
	}, passages: []passage{{0, time.Second}, {time.Second, 1020 * time.Millisecond},
		{2 * time.Second, 2040 * time.Millisecond}}}
	at := func(n int) time.Duration { return time.Duration(n) * time.Second / 30 }
	for i := range 60 {
		p.viewer.requests = append(p.viewer.requests, time.Second+at(i))
		d := delivery{captured: time.Second + at(i), received: time.Second + at(i) + 10*time.Millisecond, bytes: 1000}
		if i >= 30 && i < 40 { // a stall, after which ten frames arrive together
			d.received = time.Second + at(40)
		}
		p.viewer.frames = append(p.viewer.frames, d)
	}
	p.viewer.requests[45] += 100 * time.Millisecond
	o := experiment.NewOutcome()
	p.measure(o)
	for name, want := range map[string]float64{"fps": 30, "fps_worst": 30, "timely": 100 * 54. / 60, "sent": 1,
		"throughput": 0.24, "request_max": 133.333, "path1": 0.75, "path2": 0.25, "path5": 0, "cost": 1.5,
		"packet_delay": 30} {
		if got, ok := o.Figure(name); !ok || got < want-0.01 || got > want+0.01 {
			t.Errorf("%s is %g, expected %g", name, got, want)
		}
	}
	// A reading is missing: the run ended too early.
	for _, p.readings = range [][]reading{p.readings[:2], p.readings[:1], nil} {
		o := experiment.NewOutcome()
		p.measure(o)
		for _, name := range []string{"sent", "cost", "path1"} {
			if got, ok := o.Figure(name); ok {
				t.Errorf("%d readings: %s is %g, expected no figure", len(p.readings), name, got)
			}
		}
	}
}

// TestSegment finds the TCP segments with payload in frames, also in copies of an edge.
func TestSegment(t *testing.T) {
	from, to := netip.MustParseAddr("198.18.0.1"), netip.MustParseAddr("198.18.0.2")
	segmentOf := func(payload int, from, to netip.Addr) []byte {
		b := make([]byte, 40+payload)
		b[0], b[9], b[32] = 0x45, 6, 5<<4
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
		copy(b[12:], from.AsSlice())
		copy(b[16:], to.AsSlice())
		binary.BigEndian.PutUint32(b[24:], 4711)
		return b
	}
	ether := append(make([]byte, 12), 8, 0)
	outer := make([]byte, 28)
	outer[0], outer[9] = 0x45, 17
	header := wire.Header{Kind: wire.KindSequence, Path: 1}
	data := segmentOf(100, from, to)
	for _, test := range []struct {
		name  string
		frame []byte
		found bool
	}{
		{"plain", slices.Concat(ether, data), true},
		{"copy", slices.Concat(ether, outer, header.Append(nil), data), true},
		{"control message", slices.Concat(ether, outer, []byte{0x18}, make([]byte, 80)), false},
		{"acknowledgement", slices.Concat(ether, segmentOf(0, from, to)), false},
		{"other direction", slices.Concat(ether, segmentOf(100, to, from)), false},
		{"IPv6", slices.Concat(make([]byte, 12), []byte{0x86, 0xdd}, data), false},
		{"short", slices.Concat(ether, data[:30]), false},
		{"empty", nil, false},
	} {
		if sequence, ok := segment(test.frame, from, to); ok != test.found || ok && sequence != 4711 {
			t.Errorf("%s: sequence number %d, %v", test.name, sequence, ok)
		}
	}
}

// TestDescribeRuns has the figures of the first run of Algorithm 1.
func TestDescribeRuns(t *testing.T) {
	o, onset := experiment.NewOutcome(), time.Now()
	describeRuns(o, nil, onset)
	if got, _ := o.Figure("starts"); got != 0 || len(o.Notes) != 1 {
		t.Errorf("%g starts and the notes %q, expected none and a note", got, o.Notes)
	}
	run := duplicator.Run{Started: onset.Add(2 * time.Second), Packets: 250, Removed: [wire.MaxPaths]int{3: 101},
		Rewards: [][wire.MaxPaths]int{{30, 70}, {40, 80}}}
	describeRuns(o, []duplicator.Run{run, {Started: onset}}, onset)
	for name, want := range map[string]float64{"starts": 2, "started": 2, "reward1": 35, "reward2": 75, "reward3": 0,
		"removed4": 1.01} {
		if got, ok := o.Figure(name); !ok || got != want {
			t.Errorf("%s is %g, expected %g", name, got, want)
		}
	}
	if _, ok := o.Figure("removed1"); ok {
		t.Error("path 1 has left, expected that it stays")
	}
}

// TestUnable: a cell whose method this machine cannot have is skipped with the reason; other errors fail the cell.
func TestUnable(t *testing.T) {
	broken := errors.New("broken")
	for _, err := range []error{edge.ErrPrivileges, edge.ErrUnsupported, edgepair.ErrHost, broken} {
		arms["unable"] = arm{start: func(context.Context, *topology.Network, *trial, *experiment.Settings) (*method,
			error) {
			return nil, fmt.Errorf("attach: %w", err)
		}}
		_, skipped, got := (&trial{Arm: "unable"}).start(t.Context(), nil, &experiment.Settings{})
		if err == broken {
			if skipped != nil || !errors.Is(got, broken) {
				t.Errorf("got %+v and %v, expected the error", skipped, got)
			}
		} else if got != nil || skipped == nil || !strings.Contains(skipped.Reason, err.Error()) {
			t.Errorf("%v: got %+v and %v, expected a skip with the reason", err, skipped, got)
		}
	}
	delete(arms, "unable")
}

// TestRun measures a short run over the emulated network in each arm.
func TestRun(t *testing.T) {
	for _, arm := range []string{"undisturbed", "off", "redirection", "paper"} {
		t.Run(arm, func(t *testing.T) { measureShortRun(t, arm) })
	}
}

// measureShortRun repeats the run while the machine is too busy for the figures to mean much.
func measureShortRun(t *testing.T, arm string) {
	t.Helper()
	tr := defaultTrial()
	tr.Arm, tr.Quality, tr.Trigger, tr.Packets = arm, "nfov", triggerOnset, true
	var busy string
	for range 3 {
		o, err := run(t.Context(), tr, experiment.Settings{Duration: 3 * time.Second, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if o.Validity == experiment.Skipped {
			t.Skip(o.Reason)
		}
		fps, _ := o.Figure("fps")
		rate, _ := o.Figure("throughput")
		cost, _ := o.Figure("sent")
		delay, _ := o.Figure("packet_delay")
		starts, _ := o.Figure("starts")
		if fps >= 1 && rate >= 0.3 && cost >= 1 && delay >= 15 && (starts >= 1 || arm != "paper") {
			return
		}
		result := fmt.Sprintf("%g frames per second, %g Mbit/s at a cost of %g, %g ms per packet", fps, rate, cost,
			delay)
		if o.Validity == experiment.Valid {
			t.Fatal(result)
		}
		busy = result + ": " + o.Reason
		t.Log(busy)
	}
	t.Skip(busy)
}

// TestRunEnds: a run ends with its context.
func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	o, err := run(ctx, defaultTrial(), experiment.Settings{Duration: time.Hour, Seed: 1})
	if err == nil && o.Validity != experiment.Skipped {
		t.Errorf("the run ended without an error: %+v", o)
	}
}
