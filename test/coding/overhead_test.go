package coding

import (
	"fmt"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec/draco/overhead"
	"github.com/volsfu/volsfu/test/claim"
)

const (
	// maxOverhead limits the cost of calling the codec from Go, in % of the codec's time.
	maxOverhead = 3
	// overheadPoints is the number of points of a person as volpeer publishes it.
	overheadPoints = 40_000
	// pointBytes is the size of a point in memory: three coordinates of 4 bytes and three channels of one.
	pointBytes = 15
	// maxAllocations is per frame, for the whole process: the codec allocates nothing, but the testing package and the
	// runtime do occasionally.
	maxAllocations = 1
)

// TestOverhead measures the time that Go adds to the codec's, and checks that no array of points is copied into Go's
// heap. The log also has the time of Draco for comparison.
func TestOverhead(t *testing.T) {
	needDraco(t)
	cloud, params := subject(t, overheadPoints)
	turns := 1
	if *full {
		turns = 31
	}
	for _, speed := range speeds {
		params.Speed = speed
		encode, decode, err := overhead.Measure(cloud, params, turns)
		if err != nil {
			t.Fatal(err)
		}
		for _, way := range []struct {
			name string
			overhead.Measurement
		}{{"encode", encode}, {"decode", decode}} {
			name := func(what string) string { return fmt.Sprintf("%s at speed %d: %s", way.name, speed, what) }
			timed(t, claim.AtMost(name("Go's part of the codec's time"), 100*way.Overhead, "%", maxOverhead))
			timed(t, claim.Information(name("processor time of a frame"), milliseconds(way.Codec), "ms"))
			timed(t, claim.Information(name("the same by Draco itself in C++"), milliseconds(way.Draco), "ms"))
			measured(t, claim.Exactly(name("copies of the points in Go's heap"),
				int64(way.AllocatedBytes)/int64(pointBytes*cloud.Len()), "", 0))
			timed(t, claim.AtMost(name("allocations per frame"), way.Allocations, "", maxAllocations))
		}
		measured(t, claim.Information(fmt.Sprintf("speed %d: bytes of a frame, of Draco's", speed),
			100*float64(encode.Bytes)/float64(encode.DracoBytes), "%"))
	}
}
