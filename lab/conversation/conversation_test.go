package conversation

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/congestion/sender/sendertest"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/test/allocations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestMesh: a frame has the camera's images, and the mesh is the person without the wall.
func TestMesh(t *testing.T) {
	c := newCamera(1)
	frame := c.compose(nil)
	if len(frame) != FrameBytes || (FrameBytes+frametimes.SegmentBytes-1)/frametimes.SegmentBytes != 60 {
		t.Fatalf("a frame of %d bytes", len(frame))
	}
	var m mesh
	if !m.extract(frame) {
		t.Fatal("the frame is invalid")
	}
	// The person is an ellipse with half axes of 85 and 250 pixels.
	if area := math.Pi * 85 * 250; math.Abs(float64(len(m.vertices))-area) > 0.01*area ||
		len(m.colours) != len(m.vertices) {
		t.Errorf("%d points, want some %.0f", len(m.vertices), area)
	}
	if triangles := len(m.indices) / 3; triangles < 19*len(m.vertices)/10 || triangles > 2*len(m.vertices) {
		t.Errorf("%d triangles between %d points, want nearly two for each", triangles, len(m.vertices))
	}
	for i, v := range m.vertices {
		if math.Abs(float64(v[0])) > 0.32 || math.Abs(float64(v[1])) > 0.92 || v[2] < 1.3 || v[2] > 1.51 {
			t.Fatalf("point %d is at %v", i, v)
		}
	}
	for _, i := range m.indices {
		if int(i) >= len(m.vertices) {
			t.Fatalf("corner %d of %d points", i, len(m.vertices))
		}
	}
	if m.extract(frame[1:]) {
		t.Error("a shorter frame is valid")
	}
	buffer := frame
	if n := allocations.PerCall(5, func() {
		buffer = c.compose(buffer)
		m.extract(buffer)
	}); n > 0 {
		t.Errorf("%g allocations per frame", n)
	}
}

// TestPaced: the rates within a frame are the paper's at its frame rate, and in proportion to lower frame rates down to
// 10 per second.
func TestPaced(t *testing.T) {
	for fps, want := range map[float64][2]float64{30: {1.99, 1.51}, 15: {0.99, 0.75}, 10: {0.66, 0.5}, 3: {0.66, 0.5}} {
		up, down := DefaultPlan().Paced(fps)
		if math.Abs(float64(up)/1e9-want[0]) > 0.01 || math.Abs(float64(down)/1e9-want[1]) > 0.01 {
			t.Errorf("at %g frames per second %d and %d bit/s, want %v Gbit/s", fps, up, down, want)
		}
	}
}

// TestRates: with the settings of both hops, every frame from the second on, whose interval is known, leaves within its
// share of the frame interval until 14 s, on a path that passes ECT and marks nothing. L4S changes its pacing after
// 10 s without a mark.
func TestRates(t *testing.T) {
	for _, fps := range []float64{10, 3} {
		testRates(t, fps)
	}
}

func testRates(t *testing.T, fps float64) {
	p := DefaultPlan()
	settings := config.DefaultConfig()
	loader, flags := config.NewLoader(&settings), pflag.NewFlagSet("serve", pflag.ContinueOnError)
	loader.AddFlags(flags)
	if err := flags.Parse(p.serverFlags(fps)); err != nil {
		t.Fatal(err)
	}
	if err := loader.Load(nil); err != nil {
		t.Fatal(err)
	}
	up, uplink := p.senderConfig("ws://127.0.0.1", fps), congestion.DefaultConfig()
	uplink.Controller = string(up.Controller)
	uplink.Min, uplink.Start, uplink.Max = up.MinUplink, up.StartUplink, up.MaxUplink
	for name, hop := range map[string]struct {
		mode  pacing.Mode
		cfg   congestion.Config
		share float64
	}{
		"to the server":   {pacing.Mode(fmt.Sprintf("spread:%g", up.Spread)), uplink, p.Spread},
		"from the server": {settings.Forward.Pacing, settings.Forward.Congestion, p.Down},
	} {
		t.Run(fmt.Sprintf("%g per second %s", fps, name), func(t *testing.T) {
			t.Parallel()
			plan, err := hop.mode.Plan()
			if err != nil {
				t.Fatal(err)
			}
			if err := hop.cfg.Validate(); err != nil {
				t.Fatal(err)
			}
			start := time.Unix(1000, 0)
			loop := sendertest.Loop{Options: sender.Options{Plan: plan, Look: sender.LookInterval},
				Estimator: congestion.New(hop.cfg.Algorithm(true), hop.cfg, start), Delay: 50 * time.Microsecond,
				Interval: time.Duration(float64(time.Second) / fps), Packets: FrameBytes / 1144}
			frames := loop.Run(start, 14*time.Second)
			if float64(len(frames)) < 13*fps {
				t.Fatalf("%d frames left", len(frames))
			}
			// Ticks leave up to 2 ms early.
			span := time.Duration(hop.share * float64(time.Second) / max(fps, slowest))
			for _, f := range frames[1:] {
				if took := f.Left - f.Offered; took > span || took < span-3*time.Millisecond {
					t.Fatalf("the frame of %v left within %v, expected %v", f.Offered, took, span)
				}
			}
		})
	}
}

// TestCounted: frames of another receiver count if they were sent during the measurement and are complete.
func TestCounted(t *testing.T) {
	p := &parties{numbers: make([][]int64, 2)}
	frames := make(chan client.Frame, 5)
	for number := range int64(4) {
		frames <- client.Frame{Number: number, Data: make([]byte, FrameBytes)}
	}
	frames <- client.Frame{Number: 2}
	close(frames)
	p.count(frames, 1)
	if got := p.counted(1, 3); len(got) != 2 || got[0] != 0 || got[1] != 2 {
		t.Errorf("got %v, want none and 2", got)
	}
}

// TestDistributed: a frame is distributed when its last packet has left for the last receiver. A frame that a receiver
// lacks has no time.
func TestDistributed(t *testing.T) {
	begin := time.Unix(1000, 0)
	told := func(frame int64, in, out int) (r frametimes.Record) {
		r.Frame = frame
		r.Set(frametimes.ServerFirstIn, begin.Add(time.Duration(in)*time.Millisecond))
		r.Set(frametimes.ServerLastOut, begin.Add(time.Duration(out)*time.Millisecond))
		return r
	}
	p := &parties{receivers: make([]*client.Session, 2)}
	p.note(told(6, 0, 9), false)
	p.note(told(6, 0, 9), true)
	p.note(told(7, 2, 20), true)
	p.note(told(8, 40, 55), false)
	p.note(told(7, 1, 29), false)
	p.note(told(8, 40, 50), true)
	p.note(told(9, 70, 80), true)
	unknown := told(9, 70, 0)
	unknown.Times[frametimes.ServerLastOut] = 0
	p.note(unknown, false)
	got := p.distributed(7, 10)
	want := []Distribution{{7, 28 * time.Millisecond}, {8, 15 * time.Millisecond}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %v, want %v", got, want)
	}
}
