package gallery

import "github.com/volsfu/volsfu/pkg/volumetric"

// Split is a way to decide the qualities.
type Split string

// The splits.
const (
	// SplitAllocator is the server's allocator.
	SplitAllocator Split = "allocator"
	// SplitEqual gives every publication the same share of the downlink.
	SplitEqual Split = "equal shares"
	// SplitProportional gives every publication a share in proportion to the rate of its highest quality.
	SplitProportional Split = "proportional shares"
)

// splitShare is the share of the downlink that a fixed split distributes: the rest is for headers and for frames above
// the mean size.
const splitShare = 0.9

// fixed returns the quality of each guest's publication by a fixed split of a downlink: the highest that fits in its
// share, else off.
func fixed(split Split, all []guest, link volumetric.Bitrate) []volumetric.Quality {
	budget := splitShare * float64(link)
	var weights float64
	for i := range all {
		weights += weight(split, &all[i])
	}
	qualities := make([]volumetric.Quality, len(all))
	for i := range all {
		share := budget * weight(split, &all[i]) / weights
		qualities[i] = volumetric.QualityOff
		for q, level := range all[i].qualities() {
			if float64(level.Bitrate) <= share {
				qualities[i] = volumetric.Quality(q)
			}
		}
	}
	return qualities
}

// weight returns the weight of a guest in a split.
func weight(split Split, g *guest) float64 {
	if split == SplitEqual {
		return 1
	}
	levels := g.qualities()
	return float64(levels[len(levels)-1].Bitrate)
}
