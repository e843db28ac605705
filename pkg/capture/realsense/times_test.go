package realsense

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
)

func milliseconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e6 }

func TestHostStampsAreTakenAsTheyAre(t *testing.T) {
	now := time.Now()
	var clock translation
	for _, domain := range []rs2.Domain{rs2.SystemTime, rs2.GlobalTime} {
		got := clock.capture(milliseconds(now.Add(-40*time.Millisecond)), domain, now)
		// A double represents current times in milliseconds with a step of a quarter of a
		// microsecond.
		if age := now.Sub(
			got,
		); age < 40*time.Millisecond-time.Microsecond ||
			age > 40*time.Millisecond+time.Microsecond {
			t.Errorf("domain %d: image of 40 ms ago is said to be %v old", domain, age)
		}
	}
}

func TestStampsOfAnotherYearAreTranslated(t *testing.T) {
	now := time.Now()
	for _, off := range []time.Duration{-5 * time.Second, time.Hour} {
		var clock translation
		for i := range 3 {
			arrival := now.Add(time.Duration(i) * 33 * time.Millisecond)
			if got := clock.capture(
				milliseconds(arrival.Add(off)),
				rs2.SystemTime,
				arrival,
			); arrival.Sub(got) > time.Microsecond ||
				got.After(arrival) {
				t.Errorf("clock off by %v: image that arrives at once is said to be %v old", off, arrival.Sub(got))
			}
		}
	}
}

// TestHardwareClock simulates two minutes of images that need 8 to 28 ms, with a camera clock that
// is 50 ppm fast.
func TestHardwareClock(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	begin := time.Now()
	var clock translation
	for i := range 120 * 30 {
		taken := begin.Add(time.Duration(i) * time.Second / 30)
		late := time.Duration(random.IntN(20_000)) * time.Microsecond
		stamp := float64(i) * 1000 / 30 * 1.00005
		got := clock.capture(stamp, rs2.HardwareClock, taken.Add(8*time.Millisecond+late))
		if i < 30 {
			continue
		}
		// Within two windows, the clocks drift apart by 1 ms. The fastest of 30 images is within 4
		// ms of 8 ms (probability of more: 0.8^30).
		if off := got.Sub(taken.Add(8 * time.Millisecond)); off < -1100*time.Microsecond || off > 4*time.Millisecond {
			t.Fatalf("image %d: off by %v", i, off)
		}
	}
}

func TestHardwareClockReset(t *testing.T) {
	now := time.Now()
	var clock translation
	clock.capture(900_000, rs2.HardwareClock, now)
	clock.capture(900_033, rs2.HardwareClock, now.Add(33*time.Millisecond))
	now = now.Add(time.Minute)
	if got := clock.capture(5, rs2.HardwareClock, now); !got.Equal(now) {
		t.Errorf("the first image after a reset is said to be %v old", now.Sub(got))
	}
	if got := clock.capture(
		38,
		rs2.HardwareClock,
		now.Add(43*time.Millisecond),
	); !got.Equal(
		now.Add(33 * time.Millisecond),
	) {
		t.Errorf("the image after that is said to be of %v after it, expected 33 ms", got.Sub(now))
	}
}
