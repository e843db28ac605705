package individual

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// settings returns the configuration of payload v1 over SRTP at 30 frames per second.
func settings() Config {
	return Config{FrameRate: 30, Min: 12_500_000, Max: 90_000_000, Share: 1, FragmentBytes: 1144, PacketBytes: 80,
		FrameBytes: 12, BusyShare: 0.9}
}

func control(t *testing.T, config Config) *Control {
	t.Helper()
	c, err := New(config, codec.Raw, codec.Params{PositionBits: 11})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWithinTarget: for any codec, frames are within 5 % of their target from the third frame after a jump of the rate,
// although frames vary and grow.
func TestWithinTarget(t *testing.T) {
	codecs := []struct {
		name string
		bits func(points float64) float64
	}{
		{"draco", func(n float64) float64 { return 27.4 - 1.8*math.Log2(n/125000) }},
		{"dense", func(n float64) float64 { return 19 - 1.2*math.Log2(n/125000) }},
		{"raw", func(float64) float64 { return 72 }},
		{"steep", func(n float64) float64 { return 33 - 3*math.Log2(n/125000) }},
	}
	for _, like := range codecs {
		t.Run(like.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			c := control(t, settings())
			content := 1.0
			encode := func(points int) int {
				content *= 1 + 0.004*random.NormFloat64()
				return int(float64(points) * like.bits(float64(points)) * content / 8)
			}
			c.Observe(15000, encode(15000), time.Millisecond)
			c.Observe(60000, encode(60000), 4*time.Millisecond)
			for i, estimate := range []volumetric.Bitrate{12_500_000, 75_000_000, 12_500_000, 40_000_000, 60_000_000} {
				for frame := range 30 {
					choice := c.Choose(estimate, 125_000, 1)
					bytes := encode(choice.Points)
					c.Observe(choice.Points, bytes, time.Duration(choice.Points)*80)
					off := float64(c.wire(bytes))/float64(choice.Target) - 1
					if choice.Bound == BoundRate && frame >= 2 && math.Abs(off) > 0.05 {
						t.Errorf("rate %d frame %d: %d points are %.1f %% off the target of %d bytes", i, frame,
							choice.Points, 100*off, choice.Target)
					}
					if choice.Bound != BoundRate && off > 0.05 {
						t.Errorf("rate %d frame %d: %.1f %% more than the target, though bound by %s", i, frame,
							100*off, choice.Bound)
					}
				}
			}
		})
	}
}

// TestBounds: the number of points is the minimum of four limits: bandwidth, view, encoding time and source.
func TestBounds(t *testing.T) {
	tests := []struct {
		name     string
		estimate volumetric.Bitrate
		points   int
		view     float64
		perPoint time.Duration
		points2  int
		bound    Bound
	}{
		// At 20 bits per point, 10,000 points are 25,000 bytes. In 22 packets these are 26,772 bytes.
		{"the path", 26_772 * 8 * 30, 125_000, 1, 50, 10_000, BoundRate},
		{"the view", 80_000_000, 100_000, 0.25, 50, 25_000, BoundView},
		{"time", 90_000_000, 125_000, 1, 1000, 30_000, BoundTime},
		{"the source", 90_000_000, 5_000, 1, 50, 5_000, BoundSource},
		{"no points in view", 90_000_000, 5_000, 0, 50, 0, BoundView},
		{"hardly any points in view", 90_000_000, 5_000, 1e-9, 50, 1, BoundView},
		{"an empty cloud", 90_000_000, 0, 1, 50, 0, BoundSource},
		{"less than one point", 1, 125_000, 1, 50, 0, BoundRate},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := settings()
			config.Min = 2_000_000
			c := control(t, config)
			// The model learns from distant numbers of points that each point needs 20 bits.
			for range 20 {
				c.Observe(2_000, 5_000, 2_000*test.perPoint)
				c.Observe(100_000, 250_000, 100_000*test.perPoint)
			}
			got := c.Choose(test.estimate, test.points, test.view)
			if test.name == "less than one point" {
				if want := 2_000_000 / 8 / 30; got.Target != want || got.Bound != BoundRate {
					t.Errorf("got %+v, expected a target of %d", got, want)
				}
				return
			}
			if got.Bound != test.bound || math.Abs(float64(got.Points-test.points2)) > 0.03*float64(test.points2) {
				t.Errorf("got %d points by %s, expected %d by %s", got.Points, got.Bound, test.points2, test.bound)
			}
		})
	}
}

// TestUnknown: without observations, the default size of a point is used.
func TestUnknown(t *testing.T) {
	c := control(t, settings())
	got := c.Choose(30_000_000, 125_000, 1)
	if got.Bound != BoundRate || got.Points < 25_000 || got.Points > 40_000 {
		t.Errorf("got %+v", got)
	}
	c.Observe(0, 100, time.Second)
	c.Observe(100, 0, time.Second)
	if again := c.Choose(30_000_000, 125_000, 1); again != got {
		t.Errorf("expected the same choice without observations, got %+v after %+v", again, got)
	}
}

// TestMisses: a frame misses its target only if the rate determined its size.
func TestMisses(t *testing.T) {
	c := control(t, settings())
	choice := Choice{Target: 11_000, Bound: BoundRate}
	// 10,012 bytes are 10,732 on the wire in nine packets; 9,012 bytes are 9,652 in eight packets.
	for bytes, want := range map[int]bool{10_000: false, 9_000: true, 12_000: true} {
		if got := c.Misses(choice, bytes); got != want {
			t.Errorf("%d bytes on the wire for %d: missed %v", c.wire(bytes), choice.Target, got)
		}
	}
	if choice.Bound = BoundTime; c.Misses(choice, 1000) {
		t.Error("a frame bound by time missed its target")
	}
}

// TestSlowMachine: one slow frame has no effect, and three have. The number of points recovers afterwards, however slow
// the machine was.
func TestSlowMachine(t *testing.T) {
	c := control(t, settings())
	encode := func(points int, perPoint time.Duration) { c.Observe(points, points, time.Duration(points)*perPoint) }
	for range 10 {
		encode(100_000, 100)
	}
	for i, want := range []int{150_000, 150_000, 60_000, 60_000} {
		encode(100_000, 500)
		if got := c.Choose(1e9, 150_000, 1); got.Points != want {
			t.Errorf("%d points after %d slow frames, expected %d", got.Points, i+1, want)
		}
	}
	for range 20 {
		encode(max(leastPoints, c.Choose(1e9, 150_000, 1).Points), time.Millisecond)
	}
	if got := c.Choose(1e9, 150_000, 1); got.Bound != BoundTime || got.Points != leastPoints {
		t.Errorf("a frame of 1,000 points takes a second: got %+v", got)
	}
	for range 3 {
		encode(leastPoints, 100)
	}
	if got := c.Choose(1e9, 150_000, 1); got.Points != 150_000 {
		t.Errorf("when the machine is idle again: got %+v", got)
	}
	if got := c.Choose(1e9, 200, 1); got.Points != 200 {
		t.Errorf("a small cloud: %+v", got)
	}
}

// TestWanted: the wanted rate follows from view and time, within the limits.
func TestWanted(t *testing.T) {
	c := control(t, settings())
	for range 20 {
		c.Observe(2_000, 5_000, 2_000*50)
		c.Observe(100_000, 250_000, 100_000*50)
	}
	// 100,000 points are 250,000 bytes and, in 219 packets, 267,532 bytes on the wire.
	for view, want := range map[float64]float64{1: 64.2e6, 0.5: 32.1e6, 0.01: 12.5e6} {
		if got := float64(c.Wanted(100_000, view)); math.Abs(got/want-1) > 0.03 {
			t.Errorf("%g of the points need %g bit/s, expected %g", view, got, want)
		}
	}
	if got := c.Wanted(10_000_000, 1); got != 90_000_000 {
		t.Errorf("above the limit: wanted %v", got)
	}
}

func TestSettings(t *testing.T) {
	for name, spoil := range map[string]func(*Config){
		"rate": func(c *Config) { c.FrameRate = math.NaN() }, "share": func(c *Config) { c.Share = 0 },
		"busy":   func(c *Config) { c.BusyShare = 2 },
		"bounds": func(c *Config) { c.Max = 1 }, "packets": func(c *Config) { c.FragmentBytes = 0 },
	} {
		config := settings()
		spoil(&config)
		if _, err := New(config, codec.Raw, codec.Params{}); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// FuzzChoose: for any observations, a choice is within its bounds.
func FuzzChoose(f *testing.F) {
	f.Add(10, 100, int64(5), int64(50_000_000), 1000, 0.5)
	f.Add(1<<30, 1, int64(-5), int64(-1), 1<<30, math.NaN())
	f.Add(1, 1<<30, int64(0), int64(math.MaxInt64), -4, math.Inf(1))
	f.Fuzz(func(t *testing.T, points, bytes int, took, estimate int64, available int, view float64) {
		c := control(t, settings())
		c.Observe(points, bytes, time.Duration(took))
		got := c.Choose(volumetric.Bitrate(estimate), available, view)
		if available <= 0 && got.Points != 0 || available > 0 && view > 0 && (got.Points < 1 ||
			got.Points > available) || got.Target < 0 || got.Expected < 0 {
			t.Fatalf("with %d points got %+v", available, got)
		}
	})
}
