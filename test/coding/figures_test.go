// Package coding measures the cost of coding clouds with Draco, which vollab cannot measure since it is built without
// cgo: vollab check capture runs these tests and reads the figures that they log. Without -full, the limits are suited
// to a busy machine with the race detector, and figures that depend on time have no target.
package coding

import (
	"flag"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/codec/draco"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/claim"
)

var full = flag.Bool("full", false, "measure at full size, with targets for times, on an otherwise idle machine")

// measured logs a figure that does not depend on the load of the machine, and fails the test if it misses its target.
func measured(t *testing.T, l claim.Line) {
	t.Helper()
	t.Log(claim.Figure(l))
	if l.Missed() {
		t.Errorf("missed: %s", l)
	}
}

// timed logs a figure that depends on the machine, together with its target. Missing the target does not fail the test.
func timed(t *testing.T, l claim.Line) {
	t.Helper()
	if !*full {
		l = claim.Information(l.Name, l.Figure, l.Unit)
	}
	t.Log(claim.Figure(l))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// needDraco returns Draco, or skips the test.
func needDraco(t *testing.T) codec.Codec {
	t.Helper()
	if !draco.Available() {
		t.Skipf("skipped: %v", draco.ErrUnavailable)
	}
	c, err := codec.ByName("draco")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// speeds are the fastest, which volpeer uses by default, and that of paper 000.
var speeds = []int{10, 7}

// fewPoints suffice to show that a measurement works.
const fewPoints = 2000

// subject returns a cloud of so many points in no order: a capture of a real person, with some points repeated a few
// millimetres aside if it has fewer, or a small cloud without -full.
func subject(t *testing.T, points int) (*pointcloud.Cloud, codec.Params) {
	t.Helper()
	if !*full {
		cloud := codectest.Cloud(1, fewPoints)
		return cloud, codec.Params{PositionBits: 11, Box: codectest.Box}
	}
	whole, cloud := codectest.RealCloud(t), new(pointcloud.Cloud)
	for i := range max(points, whole.Len()) {
		at, aside := i%whole.Len(), float32(i/whole.Len())*0.003
		p := whole.Positions[at]
		cloud.Append([3]float32{p[0] + aside, p[1] + aside, p[2] - aside}, whole.Colors[at])
	}
	return codectest.Sampled(cloud, points), codec.Params{PositionBits: 11, Box: cloud.Bounds()}
}
