package rtc

import (
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestAffordable(t *testing.T) {
	p := volumetric.Publication{Tiles: make([]volumetric.Tile, 2), Qualities: []volumetric.QualityLevel{{Bitrate: 5e6},
		{Bitrate: 10e6}, {Bitrate: 40e6}}}
	for estimate, want := range map[volumetric.Bitrate]volumetric.Quality{1e6: 0, 12_500_000: 0, 20e6: 0, 21e6: 1,
		83e6: 1, 84e6: 2} {
		if got := Affordable(p, estimate); got != want {
			t.Errorf("%v carries quality %d, want %d", estimate, got, want)
		}
	}
}
