package paper003

import (
	"maps"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/synthetic"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/zstd"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// qualities are the numbers of points of the paper's three resolutions. The paper contains neither points nor rates.
// The largest has about 50 Mbit/s at 30 frames per second, so that this machine carries copies on all five paths; the
// others have the shares of the paper's camera modes in its pixels: 2,073,600 of FHD, 921,600 of HD, and 368,640 of the
// narrow field of view.
var qualities = map[string]int{"nfov": 10_700, "hd": 26_700, "fhd": 60_000}

// scaled is the note on the rates of the experiments.
const scaled = "The qualities are scaled so that this machine carries copies on all five paths of the largest: it " +
	"has about 50 Mbit/s, of the 400 Mbit/s of paths 1 and 2. The paper does not have the rates of its qualities."

// qualityNames returns the names, sorted.
func qualityNames() []string { return slices.Sorted(maps.Keys(qualities)) }

// prepared is the number of frames that are encoded before the run, and sent in turn: those of one second.
const prepared = 30

// positionBits is the precision of positions: 1.5 mm for a person.
const positionBits = 11

// encode returns frames of the synthetic figure.
func encode(points int, interval time.Duration, seed uint64) ([][]byte, error) {
	figure, err := synthetic.New(synthetic.Config{Points: points, Seed: int(seed)})
	if err != nil {
		return nil, err
	}
	encoder := zstd.Codec.NewEncoder()
	var frames [][]byte
	var cloud pointcloud.Cloud
	for i := range prepared {
		figure.At(time.Duration(i)*interval, &cloud)
		frame, err := encoder.Encode(nil, &cloud, codec.Params{PositionBits: positionBits, Box: synthetic.Box()})
		if err != nil {
			return nil, err
		}
		frames = append(frames, frame)
	}
	return frames, nil
}
