package control

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/rival"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/lab/topology/topologytest"
	"github.com/volsfu/volsfu/test/long"
)

// TestNetworks: the network of each case is valid, every flow has its round trip, and the bottlenecks exist.
func TestNetworks(t *testing.T) {
	for _, text := range []string{"prague:2", "cubic:1", "cliff", "bleach:mark", "room:3", "uplink:20", "steady:10"} {
		o := short(20)
		o.RTT, o.RivalRTT = 20*time.Millisecond, 50*time.Millisecond
		sc, err := newScenario(text, o)
		if err != nil {
			t.Fatal(err)
		}
		n := sc.network()
		if err := n.Validate(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		for _, p := range n.Paths {
			rtt, want := time.Duration(0), o.RTT
			if p.From == hostRival {
				want = o.RivalRTT
			}
			for _, passage := range p.Through {
				rtt += n.Links[passage.Link].Forth.Config.Delay + n.Links[passage.Link].Back.Config.Delay
			}
			if rtt != want {
				t.Errorf("%s: the round trip from %s to %s is %v, expected %v", text, p.From, p.To, rtt, want)
			}
		}
		for _, hop := range sc.bottlenecks() {
			d := n.Links[hop.link].Forth
			if hop.way == topology.Back {
				d = n.Links[hop.link].Back
			}
			if d.Config.RateBPS != sc.trace.RateAt(0) || d.Config.QueueBytes == 0 || (d.Trace != nil) != sc.cliff {
				t.Errorf("%s: the bottleneck %s is %+v", text, hop.link, d.Config)
			}
		}
	}
}

// live runs a case on hosts, or skips the test without root.
func live(t *testing.T, text string, o Options) *Result {
	t.Helper()
	r, err := RunLive(t.Context(), text, o)
	topologytest.Need(t, err)
	result := r.Result()
	t.Logf("%s: %+v, low latency %+v, classic %+v, emulation %+v", text, result, result.LowLatency, result.Classic,
		result.Emulation)
	return result
}

// TestHosted: a server sends through DualPI2 as ECT(1), and the queue of L4S packets is measured. The controller of
// paper 000 sends ECT(1) on every path. The default controller judges the path by delays, to which a busy machine adds.
func TestHosted(t *testing.T) {
	o := short(3)
	o.Queue, o.Estimator.Controller = netem.QueueDualPI2, congestion.ControllerPaper000
	r := live(t, "steady:5", o)
	if r.LowLatency == nil || r.LowLatency.Packets < 100 || r.LowLatency.Marked == 0 || r.LowLatency.P99 <= 0 ||
		r.Emulation == nil {
		t.Errorf("low latency %+v, emulation %+v", r.LowLatency, r.Emulation)
	}
	if len(r.Codepoints) == 0 || r.Codepoints[0].Codepoint != ecn.ECT1.String() {
		t.Errorf("packets left with %v, expected ECT(1)", r.Codepoints)
	}
	if r.FramesSent == 0 || r.Utilisation <= 0 || r.EstimateShare <= 0 || r.Latency.P50 <= 0 || r.Latency.P50 > 1000 {
		t.Errorf("%+v", r)
	}
}

// TestHostedBeside: real competitors share the bottleneck.
func TestHostedBeside(t *testing.T) {
	long.Test(t)
	if _, err := exec.LookPath(rival.Program); err != nil {
		t.Skipf("skipped: %v", err)
	}
	for text, begin := range map[string]float64{"prague:2": 5, "cubic:1": 10} {
		o := short(begin + 6)
		o.Seed, o.LinkBPS, o.Queue, o.Estimator.Controller = 8, 20e6, netem.QueueDualPI2, congestion.ControllerAuto
		r := live(t, text, o)
		if r.Others == nil || r.Others.ShareOfFair == nil || *r.Others.ShareOfFair < 0.2 || r.ShareOfFair == nil ||
			*r.ShareOfFair <= 0 || r.Others.Loss > 0.1 {
			t.Errorf("%s: share %v, others %+v", text, r.ShareOfFair, r.Others)
		}
		marked := r.LowLatency
		if text == "cubic:1" {
			marked = r.Classic
		}
		if marked == nil || marked.Packets < 1000 {
			t.Errorf("%s: low latency %+v, classic %+v", text, r.LowLatency, r.Classic)
		}
	}
}

// TestHostedChanges: the link changes in the run, and the figures of the change are those of real packets.
func TestHostedChanges(t *testing.T) {
	long.Test(t)
	o := short(18)
	o.LinkBPS, o.Estimator.Controller = 20e6, congestion.ControllerAuto
	if r := live(t, "cliff", o); r.Cliff == nil || r.Cliff.LongestQueue <= 5 || r.Cliff.ShortAfter <= 0 {
		t.Errorf("%+v", r.Cliff)
	}
	o = short(13)
	o.LinkBPS, o.Estimator.Controller = 20e6, congestion.ControllerAuto
	r := live(t, "bleach:clear", o)
	// Reports of a busy machine come late: a run that the measurement itself rejects has no target.
	if !r.Emulation.Valid {
		t.Skipf("skipped: the machine has disturbed the emulated network: %s", r.Emulation.Reason)
	}
	left := func(c CodepointFigures) bool {
		return c.Codepoint == ecn.NotECT.String() && c.Seconds > bleachAt.Seconds()
	}
	if r.FallbackSeconds == nil || !slices.ContainsFunc(r.Codepoints, left) {
		t.Fatalf("%v, codepoints %v", r.FallbackSeconds, r.Codepoints)
	}
	if *r.FallbackSeconds > 2 {
		t.Errorf("the fallback takes %g s, expected at most 2 s", *r.FallbackSeconds)
	}
}

// TestHostedUplinks: the bottleneck is in front of the server.
func TestHostedUplinks(t *testing.T) {
	long.Test(t)
	r := live(t, "uplink:5", short(6))
	if r.FramesSent == 0 || r.Utilisation <= 0 || r.EstimateShare <= 0 || r.Queue.Max <= 0 {
		t.Errorf("%+v", r)
	}
	o := short(18)
	o.LinkBPS = 5e6
	r = live(t, "room:2", o)
	if r.Room == nil || len(r.Room.Hops) != 4 || r.JainIndex == nil || r.FramesSent == 0 {
		t.Fatalf("%+v", r)
	}
	for _, h := range r.Room.Hops {
		if h.Before <= 0 || h.WhileMarks <= 0 {
			t.Errorf("%+v", h)
		}
	}
}

// TestExternal: a sender of others has the place of the server. The programs of the test send nothing, so the link
// stays empty.
func TestExternal(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"scream_bw_test_tx", "scream_bw_test_rx"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\nexec sleep 60\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	e, err := rival.Scream(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"fair:2", "room:2", "uplink:5", "bleach:clear"} {
		if _, err := RunExternal(t.Context(), text, DefaultOptions(), e); !errors.Is(err, ErrCase) {
			t.Errorf("%s: %v, expected ErrCase", text, err)
		}
	}
	o := DefaultOptions()
	o.Audio = true
	if _, err := RunExternal(t.Context(), "steady:5", o, e); !errors.Is(err, ErrCase) {
		t.Errorf("with audio: %v, expected ErrCase", err)
	}
	o = short(1.5)
	o.Queue = netem.QueueDualPI2
	r, err := RunExternal(t.Context(), "steady:5", o, e)
	topologytest.Need(t, err)
	if r.Utilisation != 0 || r.Emulation == nil {
		t.Errorf("%+v", r)
	}
	failing := filepath.Join(folder, "scream_bw_test_tx")
	if err := os.WriteFile(failing, []byte("#!/bin/sh\necho no such option >&2\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := RunExternal(t.Context(), "steady:5", o, e); err == nil {
		t.Error("a sender that fails is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RunLive(ctx, "prague:1", DefaultOptions()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, expected that the run was cancelled", err)
	}
	for _, arguments := range [][]string{
		{"steady:5", "--scream", folder}, {"steady:5", "--live", "--scream", folder, "--udp-prague", folder},
	} {
		if _, err := command(t, arguments...); !errors.Is(err, ErrCase) {
			t.Errorf("%v: %v, expected ErrCase", arguments, err)
		}
	}
}
