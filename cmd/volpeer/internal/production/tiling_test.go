package production

import (
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestCut checks the names of tiles.
func TestCut(t *testing.T) {
	spec, err := (&Options{Source: "synthetic", Tiling: "labels"}).cut()
	if err != nil {
		t.Fatal(err)
	}
	tiler, err := spec.Open(volumetric.BoundingBox{})
	if err != nil || tiler.Len() != 9 || tiler.Tiles()[0].Label != "head" {
		t.Errorf("the figure's parts are %v, error %v", tiler.Tiles(), err)
	}
	spec, err = (&Options{Source: "ply:faces", Tiling: "labels", Labels: "face=1+2,hair=7"}).cut()
	if err != nil || len(spec.Parts) != 2 || spec.Parts[0].Name != "face" || len(spec.Parts[0].Labels) != 2 ||
		spec.Parts[1].Labels[0] != 7 {
		t.Errorf("got %+v, error %v", spec, err)
	}
}

// TestSplitLevels checks that shares add up to all points, also if written with few digits.
func TestSplitLevels(t *testing.T) {
	for _, split := range []string{"60,25,15", "33.33,33.33,33.33", "100", "60,25,15:9:0"} {
		p := &Options{Qualities: defaultQualities, Split: split, Mode: string(volumetric.ModeDescriptions),
			Codec: "raw", Name: "body"}
		settings, err := p.Settings(slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatalf("%s: %v", split, err)
		}
		sum := 0.0
		for _, level := range settings.Levels {
			sum += level.Share
			if bits := level.Bits; strings.HasSuffix(split, ":9:0") != (bits == 9 && level.Speed == 0) {
				t.Errorf("%s: %d bits, speed %d", split, bits, level.Speed)
			}
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("%s: shares add up to %v, want 1", split, sum)
		}
	}
}
