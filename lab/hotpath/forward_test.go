package hotpath

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hotpath/machinelimit"
	"github.com/volsfu/volsfu/test/program"
)

// smallLoad is a load that a busy machine carries under the race detector.
func smallLoad() Load {
	return Load{Publishers: 1, Receivers: 2, Tracks: 2, Qualities: 1, Mbps: 1, FrameRate: 20, Spread: defaultSpread}
}

// packets returns the packets that the server received and sent while the rig measured, including warming up, so that
// no packet is in flight at either end.
func (r *rig) packets() (in, out float64) {
	count := func(direction string) float64 {
		name, label := r.subject.figures().packets, `direction="`+direction+`"`
		return r.drained.Sum(name, label) - r.baseCounts.Sum(name, label)
	}
	return count("in"), count("out")
}

func needProc(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("CPU times of other processes are read from /proc")
	}
}

// TestFanout forwards some frames of one publisher to two receivers through the other server. Each receiver gets every
// packet, complete frames, and their times.
func TestFanout(t *testing.T) {
	needProc(t)
	for _, flags := range [][]string{nil, {BatchedFlag}} {
		t.Run(strings.Join(append([]string{"fanout"}, flags...), " "), func(t *testing.T) { fanOut(t, flags) })
	}
}

func fanOut(t *testing.T, flags []string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := startFanout(ctx, append(fanoutCommand(t), flags...))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.close(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	}()
	r, err := newRig(ctx, server, smallLoad())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := r.measure(ctx, 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	f := r.figures()
	if in, out := r.packets(); f.PacketsLost != 0 || f.FramesLost != 0 || out == 0 || out != 2*in {
		t.Errorf("%g packets in, %g out, %d and %d frames lost; want twice as many out, none lost", in, out,
			f.PacketsLost, f.FramesLost)
	}
	// The kernel counts the machine's time in ticks of 10 ms. A load this small may use none.
	if f.CPU <= 0 || f.Latency == nil || f.Latency.P50 <= 0 || f.FrameLatency == nil ||
		f.FrameLatency.P99 < f.FrameLatency.P50 || f.RSS == 0 || f.Goroutines == 0 || f.MachineBusy < 0 ||
		f.MachineBusy > 1 {
		t.Errorf("figures are missing: %+v", f)
	}
	single := f.SegmentsPerSend != nil && *f.SegmentsPerSend == 1 && f.Residence != nil && f.Residence.P50 > 0
	batched := f.SegmentsPerSend == nil && f.Residence == nil
	if single != (len(flags) == 0) || batched == single || f.PacerHold != nil {
		t.Errorf("residence %v, segments %v, hold %v; want sends of one packet, or neither if batched, and no pacer",
			f.Residence, f.SegmentsPerSend, f.PacerHold)
	}
	// Two publications in one connection are not supported.
	both := part{load: smallLoad(), publishes: true, receives: true}
	if _, err := server.attach(ctx, both); !errors.Is(err, ErrLoad) {
		t.Errorf("got %v, want ErrLoad", err)
	}
}

// builtServer returns the path of a built server.
func builtServer(t *testing.T) string {
	t.Helper()
	needProc(t)
	return program.Static().Path(t, "volsfu")
}

// TestForward measures a built server and checks properties that hold on a machine of any speed.
func TestForward(t *testing.T) {
	path := builtServer(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	options := Options{Load: smallLoad(), ServerBin: path, Duration: 500 * time.Millisecond}
	t.Run("compared", func(t *testing.T) {
		o := options
		o.Compare = fanoutCommand(t)
		result, err := Forward(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		if result.PacketsForwarded == 0 || result.CPU <= 0 || result.Residence == nil || result.CPURatio == nil ||
			*result.CPURatio <= 0 {
			t.Errorf("figures are missing: %+v", result)
		}
		result.Beside(&machinelimit.Limit{SealSegmented: 1, Receive: 1})
		object := checkKeys(t, result, "pacer_hold_us")
		compare, _ := object["compare"].(map[string]any)
		checkFigures(t, "compare", compare, "pacer_hold_us")
		for _, key := range []string{"cpu_ratio", "ceiling_us_per_packet", "limit"} {
			if object[key] == nil {
				t.Errorf("%s is missing", key)
			}
		}
		var text bytes.Buffer
		if err := result.WriteText(&text); err != nil || !strings.Contains(text.String(),
			"server CPU per forwarded packet") {
			t.Errorf("%v: %s", err, text.String())
		}
	})
	t.Run("unwatched", func(t *testing.T) { unwatchedTracks(ctx, t, path) })
	t.Run("together", func(t *testing.T) {
		o := options
		o.Load.Together, o.Load.Publishers, o.Load.Receivers = true, 2, 3
		if result, err := Forward(ctx, o); err != nil || result.PacketsForwarded == 0 {
			t.Errorf("got %+v, %v", result, err)
		}
	})
	t.Run("lossy", func(t *testing.T) {
		o := options
		o.Load.Receivers, o.Load.Mbps, o.Load.Loss, o.Load.RTT = 1, 8, 0.05, 4*time.Millisecond
		result, err := Forward(ctx, o)
		if err != nil || result.PacketsMissed == 0 || result.PacketsRecovered == 0 || result.Retransmissions == 0 ||
			result.FrameLatency == nil {
			t.Fatalf("got %+v, %v; want losses and repairs", result, err)
		}
		// Whole clients report the times of frames, not of packets.
		if object := checkKeys(t, result, "pacer_hold_us", "latency_us"); object["latency_us"] != nil {
			t.Errorf("a packet latency of %v, which was not measured", object["latency_us"])
		}
		var text bytes.Buffer
		if err := result.WriteText(&text); err != nil ||
			!regexp.MustCompile(`packet latency[^\n]* {2}-\n`).MatchString(text.String()) {
			t.Errorf("%v: expected a dash for the packet latency in\n%s", err, text.String())
		}
	})
	t.Run("paced", func(t *testing.T) {
		for _, pacing := range []Pacing{PacingOn, PacingOff} {
			o := options
			o.Pacing = pacing
			result, err := Forward(ctx, o)
			switch {
			case errors.Is(err, ErrPacing) && pacing == PacingOn:
			case err != nil:
				t.Errorf("pacing %s: %v", pacing, err)
			case pacing == PacingOff && result.PacerHold != nil:
				t.Errorf("a server that does not pace holds packets for %v", result.PacerHold)
			}
		}
	})
	t.Run("smooth", func(t *testing.T) {
		o := options
		o.Pacing, o.ComparePaced = PacingSmooth, true
		result, err := Forward(ctx, o)
		switch {
		case errors.Is(err, ErrPacing):
		case err != nil:
			t.Error(err)
		case result.CompareServer != "pacing on" || result.Compare == nil || result.PacerHold == nil:
			t.Errorf("got %+v, expected figures of two servers that pace", result)
		}
	})
	t.Run("checks", func(t *testing.T) { checkBuilt(ctx, t, path) })
	t.Run("traced", func(t *testing.T) { traceBuilt(ctx, t, path) })
}

// unwatchedTracks forwards two of four tracks to two receivers.
func unwatchedTracks(ctx context.Context, t *testing.T, path string) {
	load := smallLoad()
	load.UnwatchedTracks = 2
	// No frame is too late for a machine that stalls, and no path too narrow.
	server, err := startVolsfu(ctx, path, "--forward-max-lag", "10s", "--forward-cache-age", "10s",
		"--forward-queue-budget", "10s", "--forward-congestion-min-bps", "100000000",
		"--forward-congestion-start-bps", "100000000")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.close() }()
	r, err := newRig(ctx, server, load)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.close() }()
	if err := r.measure(ctx, 300*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if in, out := r.packets(); in == 0 || out != in {
		t.Errorf("%g packets in and %g out, want equal numbers", in, out)
	}
}

// checkBuilt runs the checks that do more than Forward on a built server.
func checkBuilt(ctx context.Context, t *testing.T, path string) {
	b := bench{serverBin: path, duration: 300 * time.Millisecond, forward: Forward, limit: machinelimit.Measure}
	burst := smallLoad()
	burst.Spread = 0
	lines, err := (&Burst{bench: b, Load: burst}).Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if l := line(t, lines, "warnings with the sysctl line if the buffers are limited"); !l.Met {
		t.Error(l)
	}
	_ = line(t, lines, "valid runs")
	room := Load{Publishers: 2, Receivers: 2, Together: true, Tracks: 2, Qualities: 2, Mbps: 1, FrameRate: 20,
		Spread: defaultSpread}
	lines, err = (&Memory{bench: b, Load: room, More: 1, CacheBytes: 1 << 20, CacheAge: time.Second,
		Growth: 1000}).Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		// Other tests keep the machine busy.
		if l.Missed() && l.Name != "valid runs" {
			t.Error(l)
		}
	}
	_ = line(t, lines, "valid runs")
	if l := line(t, lines, "resident memory"); l.Figure <= 0 {
		t.Error(l)
	}
}

// checkKeys checks that a report has all required names and returns the report. Names in unknown may lack a figure.
func checkKeys(t *testing.T, result *Result, unknown ...string) map[string]any {
	t.Helper()
	var text bytes.Buffer
	if err := result.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text.Bytes(), &object); err != nil {
		t.Fatal(err)
	}
	checkFigures(t, "the report", object, unknown...)
	return object
}

// checkFigures checks that the figures of one server have all required names, each with a figure unless listed in
// unknown.
func checkFigures(t *testing.T, name string, object map[string]any, unknown ...string) {
	t.Helper()
	quantiles := []string{"residence_us", "latency_us", "pacer_hold_us"}
	keys := append([]string{
		"cpu_us_per_packet", "packets_forwarded", "packets_lost", "frames_lost", "segments_per_send", "rss_bytes",
		"goroutines", "allocs_per_packet", "machine_busy",
	}, quantiles...)
	for _, key := range keys {
		if figure, there := object[key]; !there || figure == nil && !slices.Contains(unknown, key) {
			t.Errorf("%s: %s is missing", name, key)
		}
	}
	for _, key := range quantiles {
		times, known := object[key].(map[string]any)
		for _, quantile := range []string{"p50", "p99", "p999"} {
			if known && times[quantile] == nil {
				t.Errorf("%s: %s has no %s", name, key, quantile)
			}
		}
	}
}

func TestForwardRefuses(t *testing.T) {
	change := func(f func(*Options)) Options {
		o := Options{Load: smallLoad(), Duration: time.Second}
		f(&o)
		return o
	}
	tests := []struct {
		name    string
		options Options
		err     error
	}{
		{"no time", change(func(o *Options) { o.Duration = 0 }), ErrLoad},
		{"a load without tracks", change(func(o *Options) { o.Load.Tracks = 0 }), ErrLoad},
		{"losses with a comparison", change(func(o *Options) { o.Compare, o.Load.Loss = []string{"x"}, 0.1 }), ErrLoad},
		{"unwatched tracks with a comparison",
			change(func(o *Options) { o.Compare, o.Load.UnwatchedTracks = []string{"x"}, 1 }), ErrLoad},
		{"half of an address", change(func(o *Options) { o.URL = "ws://127.0.0.1:1" }), ErrLoad},
		{"pacing of a running server", change(func(o *Options) {
			o.URL, o.Metrics, o.Pacing = "ws://127.0.0.1:1", "http://127.0.0.1:1/metrics", PacingOff
		}), ErrPacing},
		{"half pacing", change(func(o *Options) { o.Pacing = "half" }), ErrPacing},
		{"smooth pacing with losses", change(func(o *Options) { o.Pacing, o.Load.Loss = PacingSmooth, 0.1 }), ErrLoad},
		{"two comparisons", change(func(o *Options) { o.Compare, o.ComparePaced = []string{"x"}, true }), ErrPacing},
		{"no server beside a test", change(func(*Options) {}), lab.ErrProgram},
		{"no such server", change(func(o *Options) { o.ServerBin = "/nowhere/volsfu" }), lab.ErrProgram},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := Forward(context.Background(), test.options); !errors.Is(err, test.err) {
				t.Errorf("got %v, want %v", err, test.err)
			}
		})
	}
}

func TestPublications(t *testing.T) {
	l := smallLoad()
	l.Qualities, l.UnwatchedTracks = 3, 4
	var tracks []int
	for _, p := range l.publications() {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		tracks = append(tracks, p.TrackCount())
	}
	if !slices.Equal(tracks, []int{6, 4}) || l.tracksPerPublisher() != 10 {
		t.Errorf("publications of %v tracks, %d in all; want 6 and 4", tracks, l.tracksPerPublisher())
	}
}
