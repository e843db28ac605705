package gallery

import (
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/long"
)

// TestAllocatorIsBetterThanFixedSplits compares the values of the decisions without a network, from the viewpoints of
// the measurement.
func TestAllocatorIsBetterThanFixedSplits(t *testing.T) {
	all := guests()
	scene := sceneOf(all)
	config := allocate.DefaultConfig()
	a, err := allocate.New(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range []volumetric.Bitrate{8e6, 20e6, 50e6} {
		for _, left := range []float64{0, turned} {
			eye := viewpoint(left)
			scene.Viewpoint, scene.Budget = &eye, volumetric.Bitrate(splitShare*float64(link))
			result := a.Allocate(&scene)
			best := allocate.Value(&config.View, eye, &scene, result.Tiles)
			for _, split := range []Split{SplitEqual, SplitProportional} {
				qualities := fixed(split, all, link)
				value := allocate.Value(&config.View, eye, &scene,
					decisions(&scene, func(object, _ int) volumetric.Quality { return qualities[object] }))
				t.Logf("%v at %.0f°: %.2f times the value of %s, %v", link, left*180/math.Pi, best/value, split,
					qualities)
				if best < 1.05*value {
					t.Errorf("%v at %.0f°: the value is %.2f times that of %s", link, left*180/math.Pi, best/value,
						split)
				}
			}
		}
	}
}

// TestEncoder compares the rate of an encoder with a key frame per second with the nominal rate.
func TestEncoder(t *testing.T) {
	level := webcamLevels[1]
	e := newEncoder(&level, 1)
	bytes := 0
	const seconds = 20
	for i := range seconds * framesPerSecond {
		frame := e.Next(i%framesPerSecond == 0)
		if frame.Key != (i%framesPerSecond == 0) {
			t.Fatalf("frame %d: key is %v", i, frame.Key)
		}
		bytes += len(frame.Data)
	}
	if rate := 8 * float64(bytes) / seconds; math.Abs(rate/float64(level.Bitrate)-1) > 0.1 {
		t.Errorf("the rate is %.0f bit/s, expected about %v", rate, level.Bitrate)
	}
}

// TestRun runs the allocator for a short time.
func TestRun(t *testing.T) {
	long.Test(t)
	r, err := Run(t.Context(), Options{Split: SplitAllocator, Link: 20e6, Settle: 3 * time.Second, View: time.Second,
		Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	if !(r.Ahead > 0.05 && r.Ahead <= 1) || r.Received <= 0 {
		t.Errorf("the result is %+v", r)
	}
}
