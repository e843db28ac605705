package pointcloud_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/synthetic"
	"github.com/volsfu/volsfu/pkg/codec"
	_ "github.com/volsfu/volsfu/pkg/codec/draco" // registers itself
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// subjects returns a figure of 100,000 points with labels and cameras, and a real person if the
// test data is present.
func subjects(b *testing.B) map[string]*pointcloud.Cloud {
	b.Helper()
	figure, err := synthetic.New(synthetic.Config{Points: 100_000})
	if err != nil {
		b.Fatal(err)
	}
	clouds := map[string]*pointcloud.Cloud{"figure": {}}
	figure.At(3*time.Second, clouds["figure"])
	root := os.Getenv("VOLSFU_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	data, err := os.ReadFile(filepath.Join(root, "seated-human", "ply", "dkvfx_000.ply"))
	if err != nil {
		b.Logf("without the real person: %v; set VOLSFU_TESTDATA", err)
		return clouds
	}
	var person pointcloud.Cloud
	if err := pointcloud.ReadPLY(bytes.NewReader(data), &person); err != nil {
		b.Fatal(err)
	}
	// Captures have an order that is independent of positions.
	rand.New(rand.NewPCG(1, 1)).Shuffle(person.Len(), person.Swap)
	clouds["person"] = &person
	return clouds
}

// coder encodes like volpeer at its high quality.
type coder struct {
	b       *testing.B
	encoder codec.Encoder
	params  codec.Params
	data    []byte
}

func newCoder(b *testing.B, cloud *pointcloud.Cloud) *coder {
	b.Helper()
	c, err := codec.ByName("draco")
	if err != nil {
		b.Skipf("skipped: %v", err)
	}
	return &coder{b: b, encoder: c.NewEncoder(), params: codec.Params{PositionBits: 11, Speed: 10, Box: cloud.Bounds()}}
}

// bits returns the size of all clouds together, each as a separate frame.
func (c *coder) bits(clouds ...pointcloud.Cloud) float64 {
	sum := 0
	for i := range clouds {
		var err error
		if c.data, err = c.encoder.Encode(c.data[:0], &clouds[i], c.params); err != nil {
			c.b.Fatal(err)
		}
		sum += 8 * len(c.data)
	}
	return float64(sum)
}

// BenchmarkTilingBits encodes tiles with Draco. It reports bits per point, and the increase in per
// cent over no tiles.
func BenchmarkTilingBits(b *testing.B) {
	for name, cloud := range subjects(b) {
		specs := []pointcloud.TilingSpec{
			{
				By:    "direction",
				Tiles: 1,
			}, {By: "direction", Tiles: 4}, {By: "direction", Tiles: 15}, {By: "octants"}, {By: "kmeans", Tiles: 4},
			{By: "kmeans", Tiles: 15},
		}
		if len(cloud.Labels) > 0 {
			specs = append(
				specs,
				pointcloud.TilingSpec{By: "cameras"},
				pointcloud.TilingSpec{By: "labels", Parts: synthetic.Parts()},
			)
		}
		for _, spec := range specs {
			tiler, err := spec.Open(cloud.Bounds())
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/%s/%d", name, spec.By, tiler.Len()), func(b *testing.B) {
				c, tiles := newCoder(b, cloud), make([]pointcloud.Cloud, tiler.Len())
				if err := new(pointcloud.Splitter).Split(tiler, cloud, tiles); err != nil {
					b.Fatal(err)
				}
				bits := 0.0
				for b.Loop() {
					bits = c.bits(tiles...)
				}
				b.ReportMetric(bits/float64(cloud.Len()), "bits/point")
				b.ReportMetric(100*(bits/c.bits(*cloud)-1), "%more")
			})
		}
	}
}

// BenchmarkDescriptionBits encodes descriptions of 60, 25 and 15 % with Draco. For each set of
// descriptions it reports bits per point, and the increase in per cent over the same number of
// points in one frame.
func BenchmarkDescriptionBits(b *testing.B) {
	sets := map[string][]int{
		"60":       {0},
		"25":       {1},
		"15":       {2},
		"25+15":    {1, 2},
		"60+15":    {0, 2},
		"60+25":    {0, 1},
		"60+25+15": {0, 1, 2},
	}
	for name, cloud := range subjects(b) {
		d, err := pointcloud.NewDescriptions(pointcloud.DescriptionConfig{Shares: []float64{60, 25, 15}})
		if err != nil {
			b.Fatal(err)
		}
		parts := make([]pointcloud.Cloud, 3)
		d.Split(cloud, parts)
		for set, members := range sets {
			b.Run(name+"/"+set, func(b *testing.B) {
				c := newCoder(b, cloud)
				var chosen []pointcloud.Cloud
				var merged pointcloud.Cloud
				for _, i := range members {
					chosen = append(chosen, parts[i])
					merged.AppendCloud(&parts[i])
				}
				bits := 0.0
				for b.Loop() {
					bits = c.bits(chosen...)
				}
				b.ReportMetric(bits/float64(merged.Len()), "bits/point")
				b.ReportMetric(100*(bits/c.bits(merged)-1), "%more")
			})
		}
	}
}
