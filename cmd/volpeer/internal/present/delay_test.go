package present

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestDelayFalls checks that one late frame raises the delay, and that the delay falls by 10 ms per second after a
// hundred frames on time.
func TestDelayFalls(t *testing.T) {
	d := NewDelay(150 * time.Millisecond)
	const interval = 33 * time.Millisecond
	d.interval = interval
	now := time.Unix(0, 0)
	step := func(late time.Duration) time.Duration {
		now = now.Add(interval)
		d.observe("body", 10*time.Millisecond, late)
		return d.At(now)
	}
	if got := step(20 * time.Millisecond); got != interval {
		t.Errorf("expected the frame interval at least, got %v", got)
	}
	if got := step(80 * time.Millisecond); got != 85*time.Millisecond {
		t.Errorf("expected 85ms after a frame that was 80 ms late, got %v", got)
	}
	for range 97 {
		if got := step(20 * time.Millisecond); got != 85*time.Millisecond {
			t.Fatalf("expected 85ms to stay, got %v", got)
		}
	}
	before := step(20 * time.Millisecond)
	for range 30 {
		step(20 * time.Millisecond)
	}
	if fallen := before - d.At(now); fallen < 9*time.Millisecond || fallen > 11*time.Millisecond {
		t.Errorf("expected to fall by 10 ms in a second, fell by %v", fallen)
	}
	for range 300 {
		step(20 * time.Millisecond)
	}
	if got := d.At(now); got != interval {
		t.Errorf("expected the frame interval in the end, got %v", got)
	}
	d.forget("body")
	if got := d.At(now); got != interval {
		t.Errorf("expected the delay to stay where nothing comes, got %v", got)
	}
}

// TestDelayFallsToItsBound drains a queue on the path, so that all frames arrive 400 ms earlier from one moment on.
func TestDelayFallsToItsBound(t *testing.T) {
	const deadline, interval = 150 * time.Millisecond, 33 * time.Millisecond
	d := NewDelay(deadline)
	d.interval = interval
	now := time.Unix(0, 0)
	step := func(begun time.Duration) time.Duration {
		now = now.Add(interval)
		d.observe("body", begun, begun+20*time.Millisecond)
		return d.At(now)
	}
	for range windowSize {
		if got := step(450 * time.Millisecond); got != 475*time.Millisecond {
			t.Fatalf("expected 475ms while frames are 470 ms late, got %v", got)
		}
	}
	// The usual arrival is the median of the window, which takes half a window to follow.
	for range windowSize/2 + 1 {
		step(50 * time.Millisecond)
	}
	if got := d.At(now); got != 50*time.Millisecond+deadline {
		t.Errorf("expected the deadline after the first packets' arrival, 200ms, got %v", got)
	}
	// The delay falls slowly when the window contains no late frame.
	for range windowSize / 2 {
		step(50 * time.Millisecond)
	}
	before := d.At(now)
	for range 30 {
		step(50 * time.Millisecond)
	}
	if fallen := before - d.At(now); fallen < 9*time.Millisecond || fallen > 11*time.Millisecond {
		t.Errorf("expected to fall by 10 ms in a second, fell by %v from %v", fallen, before)
	}
}

func TestWindow(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var w window
	var all []time.Duration
	for range 1000 {
		v := time.Duration(random.IntN(50)) // many equal ones
		w.add(v)
		all = append(all, v)
		recent := slices.Sorted(slices.Values(all[max(0, len(all)-windowSize):]))
		if !slices.Equal(recent, w.sorted) {
			t.Fatalf("after %d the window holds %d values, expected the newest %d", len(all), len(w.sorted),
				len(recent))
		}
		if got, want := w.quantile(0.5), recent[(len(recent)-1)/2]; got != want {
			t.Fatalf("the median is %v, expected %v", got, want)
		}
	}
}

func TestPassed(t *testing.T) {
	p := NewPlayer(volumetric.ModeAlternatives, 150*time.Millisecond)
	decoded := func(tile int, number int64, capture float64) {
		p.Decoded(Arrival{Tile: tile, Number: number, Capture: at(capture), First: at(capture), Decoded: at(capture)})
	}
	decoded(0, 10, 0)
	decoded(1, 10, 0)
	if p.Passed(0, 9, at(-30)) {
		t.Error("nothing was shown yet")
	}
	p.Step(at(100), 0)
	decoded(0, 12, 66)
	p.Step(at(200), 0)
	tests := []struct {
		tile    int
		number  int64
		capture float64
		want    bool
	}{
		{0, 11, 33, true},
		{0, 12, 66, false},
		{0, 13, 99, false},
		{1, 11, 33, false}, // the tile itself still shows frame 10
		{1, 9, -30, true},
		{0, 3, 5000, false}, // restarted
		{7, 1, -300, false}, // a tile never seen
	}
	for _, test := range tests {
		if got := p.Passed(test.tile, test.number, at(test.capture)); got != test.want {
			t.Errorf("tile %d frame %d: expected %v, got %v", test.tile, test.number, test.want, got)
		}
	}
}

func TestAudio(t *testing.T) {
	const delay, packet = 50 * time.Millisecond, 20 * time.Millisecond
	var a Audio
	a.Arrived(at(20), packet, at(25), delay)
	a.Arrived(at(0), packet, at(26), delay) // out of order
	a.Arrived(at(0), packet, at(27), delay) // twice
	a.Step(at(60), delay)
	a.Arrived(at(-100), packet, at(60), delay) // 90 ms too late
	if a.Late() != 1 || len(a.waiting) != 1 {
		t.Errorf("expected one late packet and one that waits, got %d and %d", a.Late(), len(a.waiting))
	}
	tests := []struct {
		capture float64
		want    float64
		ok      bool
	}{
		{-1, 0, false},
		{0, 50, true},
		{15, 65, true},
		{200, 250, true}, // concealed
		{230, 0, false},
	}
	for _, test := range tests {
		got, ok := a.PlayedAt(at(test.capture))
		if ok != test.ok || ok && !got.Equal(at(test.want)) {
			t.Errorf("sound captured at %g: expected %g, %v, got %v, %v", test.capture, test.want, test.ok,
				got.Sub(at(0)), ok)
		}
	}
}
