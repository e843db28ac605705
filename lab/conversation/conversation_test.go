package conversation

import (
	"math"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/frametimes"
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
	if n := testing.AllocsPerRun(5, func() {
		buffer = c.compose(buffer)
		m.extract(buffer)
	}); n > 0 {
		t.Errorf("%g allocations per frame", n)
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
