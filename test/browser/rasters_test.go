package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/volsfu/volsfu/test/claim"
)

// Requirements for a page that watches one person of rasters at 30 frames per second.
const (
	rasterDecode = 8    // ms, p95 of all tiles of a picture together
	rasterRate   = 29.5 // frames per second of each tile
)

// TestMeasureRasters has a page watch the recording of a seated person as rgbd in four tiles: the decoding time of a
// picture, and the frames per second.
func TestMeasureRasters(t *testing.T) {
	measuring(t)
	recording := filepath.Join(os.Getenv("VOLSFU_TESTDATA"), "seated-human", "rgbd")
	if _, err := os.Stat(recording); err != nil {
		t.Skipf("test data: %v; set VOLSFU_TESTDATA", err)
	}
	s := start(t, nil)
	volpeerPublishes(t, s, "ada", "--source", "rgbd:"+recording, "--codec", "rgbd", "--tiles", "4", "--fps", "30")
	v := begin(t, "rasters.mjs", pageURL(s), strconv.Itoa(*seconds))
	var measured struct {
		Lines           int
		Tiles, Whole    []float64
		Decoded, Failed int64
	}
	v.expect("measured", &measured)
	v.expect("done", nil)
	told(t, claim.AtMost(fmt.Sprintf("decode a picture of %d tiles, over %d s, p95", measured.Lines, *seconds),
		quantile(measured.Whole, 0.95), "ms", rasterDecode))
	told(t, claim.Information("decode a picture, median", quantile(measured.Whole, 0.5), "ms"))
	told(t, claim.Information("decode a tile, p95", quantile(measured.Tiles, 0.95), "ms"))
	told(t, claim.AtLeast("decoded per tile", float64(measured.Decoded)/float64(max(measured.Lines, 1)**seconds), "fps",
		rasterRate))
	told(t, claim.Exactly("frames that could not be decoded", measured.Failed, "", 0))
}

// quantile returns a quantile of values, 0 without any.
func quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(share*float64(len(values))))]
}
