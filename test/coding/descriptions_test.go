package coding

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/claim"
)

// shares are the sizes of the descriptions, in % of the points.
var shares = []float64{60, 25, 15}

// point is a decoded point.
type point struct {
	position [3]float32
	color    [3]uint8
}

// pointsOf counts the points of clouds, each after quantisation: decoded points are on the grid already.
func pointsOf(grid codec.Grid, clouds ...*pointcloud.Cloud) map[point]int {
	set := make(map[point]int)
	for _, cloud := range clouds {
		for i, p := range cloud.Positions {
			set[point{grid.Position(grid.Steps(p)), cloud.Colors[i]}]++
		}
	}
	return set
}

// TestDescriptions codes the descriptions of a cloud separately, and compares the decoded points of each subset with
// the points that were encoded. It also reports the sizes of the descriptions, and those of frames with as many points
// each that do not complement each other.
func TestDescriptions(t *testing.T) {
	draco := needDraco(t)
	const points = 60_000
	cloud, params := subject(t, points)
	params.Speed = speeds[0]
	splitter, err := pointcloud.NewDescriptions(pointcloud.DescriptionConfig{Shares: shares})
	if err != nil {
		t.Fatal(err)
	}
	parts, decoded := make([]pointcloud.Cloud, len(shares)), make([]pointcloud.Cloud, len(shares))
	splitter.Split(cloud, parts)
	encoder, decoder := draco.NewEncoder(), draco.NewDecoder()
	encode := func(cloud *pointcloud.Cloud) []byte {
		frame, err := encoder.Encode(nil, cloud, params)
		if err != nil {
			t.Fatal(err)
		}
		return frame
	}
	bits := make([]int, len(shares))
	for i := range parts {
		frame := encode(&parts[i])
		bits[i] = 8 * len(frame)
		if err := decoder.Decode(&decoded[i], frame); err != nil {
			t.Fatal(err)
		}
	}
	grid := params.Grid()
	whole := 1<<len(shares) - 1
	equal := 0
	for set := 1; set <= whole; set++ {
		var sent, received []*pointcloud.Cloud
		var merged pointcloud.Cloud
		var names []string
		together := 0
		for i := range parts {
			if set>>i&1 == 0 {
				continue
			}
			sent, received = append(sent, &parts[i]), append(received, &decoded[i])
			merged.AppendCloud(&parts[i])
			names = append(names, fmt.Sprint(shares[i]))
			together += bits[i]
		}
		original := sent
		if set == whole {
			original = []*pointcloud.Cloud{cloud}
		}
		if maps.Equal(pointsOf(grid, received...), pointsOf(grid, original...)) {
			equal++
		}
		if len(sent) > 1 {
			alone := 8 * len(encode(&merged))
			measured(t, claim.Information(strings.Join(names, "+")+" %: more bits than one frame of these points",
				100*(float64(together)/float64(alone)-1), "%"))
		}
	}
	measured(t, claim.Exactly(
		"subsets of the descriptions that decode to their points, all of them to those of the capture",
		int64(equal), "", int64(whole)))
	measureUplink(t, cloud, bits, func(cloud *pointcloud.Cloud) int { return 8 * len(encode(cloud)) })
}

// measureUplink compares the bit rates of a publisher: of all descriptions, and of alternatives for receivers of all,
// of 40 % and of 15 % of the points, which the descriptions serve as well.
func measureUplink(t *testing.T, cloud *pointcloud.Cloud, bits []int, size func(*pointcloud.Cloud) int) {
	t.Helper()
	descriptions := 0
	for _, b := range bits {
		descriptions += b
	}
	alternatives := size(cloud)
	var sampler pointcloud.Sampler
	for _, share := range []float64{shares[1] + shares[2], shares[2]} {
		var part pointcloud.Cloud
		sampler.Sample(cloud, &part, cloud.Portion(share/100))
		alternatives += size(&part)
	}
	perPoint := float64(cloud.Len())
	measured(t, claim.Information("uplink: descriptions of 60, 25 and 15 %, per captured point",
		float64(descriptions)/perPoint, "bits"))
	measured(t, claim.Information("uplink: alternatives of 100, 40 and 15 %, per captured point",
		float64(alternatives)/perPoint, "bits"))
}
