package allocate

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// numbers reads a scene's numbers from bytes: arbitrary viewpoints, poses, boxes and rates of clients.
type numbers []byte

func (n *numbers) float() float64 {
	var word [4]byte
	copied := copy(word[:], *n)
	*n = (*n)[copied:]
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(word[:])))
}

func (n *numbers) three() [3]float64 { return [3]float64{n.float(), n.float(), n.float()} }
func (n *numbers) four() [4]float64  { return [4]float64{n.float(), n.float(), n.float(), n.float()} }

// FuzzAllocate checks that every strategy stays within the budget, except for one tile if nothing fits, for any
// numbers.
func FuzzAllocate(f *testing.F) {
	seed := func(values ...float32) {
		var data []byte
		for _, v := range values {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		f.Add(data)
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	seed()
	seed(5e6, 0, 0, 0, 0, 0, 0, 1, 1.5, 1, 0, 0, -3, 0, 0, 0, 1, 1, 1, -1, -1, -1, 1, 1, 1, 0, 0, 1e6, 0.5, 2e6, 1)
	seed(5e6, nan, inf, 0, nan, 0, 0, 1, nan, inf, inf, nan, -3, 0, inf, 0, 1, nan, -1, -inf, -1, nan, 1, inf, 1, nan,
		inf, 1e30, nan, -2e6, inf)
	seed(1e30, 1e5, 1e5, 1e5, 1, 1, 1, 1, 3, 9, 1e5, 1e5, 1e5, 1, 0, 0, 0, 1e-3, 1e-3, 1e5, 1e5, 1e5, 1e5, 1e5, 1e5)
	f.Fuzz(func(t *testing.T, data []byte) {
		n := numbers(data)
		scene := Scene{Budget: volumetric.Bitrate(min(max(n.float(), -1e18), 1e18))}
		eye := Viewpoint{Position: n.three(), Orientation: n.four(), FOV: n.float(), Aspect: n.float()}
		scene.Viewpoint = &eye
		for range 3 {
			object := Object{Pose: Pose{Position: n.three(), Orientation: n.four(), Scale: n.float()},
				Priority: n.float(), Mode: volumetric.ModeAlternatives}
			if len(n)%2 == 1 {
				object.Mode = volumetric.ModeDescriptions
			} else {
				object.Picture = Picture(len(n) % 3)
			}
			for range 2 {
				tile := Tile{Current: QualitySet(len(n) % 4), Held: len(n)%7 == 0}
				tile.Choice = Choice{Explicit: len(n)%5 == 0, Qualities: QualitySet(len(n) % 9)}
				low, high := n.three(), n.three()
				for axis := range 3 {
					tile.Box.Min[axis], tile.Box.Max[axis] = float32(low[axis]), float32(high[axis])
				}
				for range 3 {
					tile.Levels = append(tile.Levels, Level{
						Rate: volumetric.Bitrate(min(max(n.float(), -1e18), 1e18)), Detail: n.float(),
						Pixels: n.float(), FrameRate: n.float(), Paused: len(n)%3 == 0,
					})
				}
				object.Tiles = append(object.Tiles, tile)
			}
			scene.Objects = append(scene.Objects, object)
		}
		for _, strategy := range Strategies() {
			a := newAllocator(t, func(c *Config) { c.Strategy = strategy })
			result := a.Allocate(&scene)
			if overspends(a, &scene, result) || result.Wanted < result.Rate || result.Rate == 0 && result.Wanted > 0 {
				t.Errorf("%s: rate %d of a budget of %d, wanted %d", strategy, result.Rate, scene.Budget, result.Wanted)
			}
			if sum := VisibleQuality(eye, &scene, result.Tiles); !(sum >= 0 && sum < 6.1) {
				t.Errorf("%s: visible quality %v", strategy, sum)
			}
		}
		var p Predictor
		p.Observe(eye)
		eye.At = epoch.Add(holdAfter / 10)
		eye.Position[0]++
		p.Observe(eye)
		if v, known := p.Predict(eye.At.Add(holdAfter / 5)); known && !vector(v.Position).usable() &&
			vector(eye.Position).usable() {
			t.Errorf("predicts %+v from %+v", v, eye)
		}
	})
}
