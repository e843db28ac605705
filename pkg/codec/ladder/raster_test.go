package ladder

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/model"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestParseRasters(t *testing.T) {
	got, err := ParseRasters(DefaultRasters)
	want := []Raster{{"low", 0, 2, 0.003, 75}, {"mid", 0, 1, 0.0015, 75}, {"high", 0, 0, 0.00065, 80}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("default: %+v, %v, want %+v", got, err, want)
	}
	got, err = ParseRasters("a=1/1, b=1/2:2mm, c=3Mbit/s")
	if want = []Raster{{"a", 0, 0, 0.00065, 80}, {"b", 0, 1, 0.002, 75}, {Name: "c", Rate: 3e6}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("without all fields: %+v, %v, want %+v", got, err, want)
	}
	for _, text := range []string{"", "low", "a=1/3", "a=25%:9", "a=0Mbit", "a=5Mbit:11", "a=1/2:1.5", "a=1/2:0mm",
		"a=1/2:nanmm",
		"a=1/2:2000mm", "a=1/2:1mm:0", "a=1/2:1mm:101", "a=1/2:1mm:80:1", "a=1/1,a=1/2", "auto=1/1"} {
		if _, err := ParseRasters(text); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v, want an error around ErrSyntax", text, err)
		}
	}
}

// rasterFormula predicts frames of rasters: every choice takes 30 % more bits than the one before.
type rasterFormula struct{ larger float64 }

func (f *rasterFormula) Predict(_ codec.Codec, p codec.Params, points int) (model.Prediction, bool) {
	bits := 0.3
	for _, r := range rasterChoices {
		if bits *= 1.3; r.Params() == p {
			full := float64(points << (2 * r.Reduction))
			return model.Prediction{Bytes: int(f.larger * bits * full / 8), Took: time.Duration(points) * 50}, true
		}
	}
	return model.Prediction{}, false
}

// rasterSource is a seated person in four tiles.
func rasterSource() *RasterSource {
	return &RasterSource{Codec: tree{}, Tiles: 4, FrameRate: 30, Points: 64000}
}

// TestFindRaster checks that the best choice within the rate and the time is found.
func TestFindRaster(t *testing.T) {
	s, m := rasterSource(), &rasterFormula{larger: 1}
	if n := len(s.Trials()); n != len(rasterChoices) || n < 12 {
		t.Errorf("%d trials of %d choices, want a dozen or more", n, len(rasterChoices))
	}
	last := -1
	for _, rate := range []float64{1e3, 1e6, 2e6, 4e6, 8e6, 1e9} {
		w := Wish{Target: volumetric.Bitrate(rate)}
		r, ok := s.Find(m, w)
		i := slices.Index(rasterChoices, r.Raster)
		if !ok || i < last || r.Rate > w.Target && i > 0 {
			t.Errorf("%v: %v, %v", w.Target, r, ok)
		}
		if i+1 < len(rasterChoices) {
			if next, _ := s.Predict(m, w, Rung{Raster: rasterChoices[i+1]}); next.Rate <= w.Target {
				t.Errorf("%v: %v, but %v fits", w.Target, r, next)
			}
		}
		last = i
	}
	s.Budget = time.Millisecond
	if r, _ := s.Find(m, Wish{Target: 1e9}); r.Raster.Reduction != 1 {
		t.Errorf("within a millisecond: %v, want half of the raster", r)
	}
	if _, ok := s.Find(model.New(), Wish{Target: 1e6}); ok {
		t.Error("a model without frames knows a rung")
	}
}

// TestChoicesAscend checks that no choice is coarser than the one before but for the raster, and that step and quality
// are given up before the raster.
func TestChoicesAscend(t *testing.T) {
	for i, r := range rasterChoices[1:] {
		before := rasterChoices[i]
		if r.Reduction > before.Reduction ||
			r.Reduction == before.Reduction && (r.Step > before.Step || r.ColorQuality < before.ColorQuality) {
			t.Errorf("%v follows %v", r, before)
		}
	}
	if got, want := rasterChoices[8].String(), "1/1:3mm:50"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTuneRasters lowers the uplink. The lower quality keeps its rate; the higher follows, and returns.
func TestTuneRasters(t *testing.T) {
	s, m := rasterSource(), &rasterFormula{larger: 1}
	tuner, ok := NewTuner(s, []Wish{{Target: 1e6}, {Target: 8e6}}, m)
	if !ok {
		t.Fatal("the model knows no rung")
	}
	now, both := time.Unix(0, 0), []bool{true, true}
	full := slices.Clone(tuner.Rungs())
	if !tuner.Step(now, 4e6, both, m) {
		t.Fatal("nothing follows the uplink")
	}
	low := slices.Clone(tuner.Rungs())
	if !low[0].codes(full[0]) || low[1].Rate > 2e6 || low[1].Rate < 1.2e6 {
		t.Errorf("%v of %v, want 75 %% of 4 Mbit/s together", low, full)
	}
	for range 5 {
		now = now.Add(time.Second)
		tuner.Step(now, 100e6, both, m)
	}
	if got := tuner.Rungs(); !got[0].codes(full[0]) || !got[1].codes(full[1]) {
		t.Errorf("%v with enough capacity, want %v", got, full)
	}
	// Frames that become larger take a coarser choice.
	m.larger = 1.5
	if now = now.Add(time.Second); !tuner.Step(now, 100e6, both, m) || tuner.Rungs()[1].Rate > 8e6 {
		t.Errorf("%v with larger frames, want at most 8 Mbit/s", tuner.Rungs())
	}
}
