package ladder

import (
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/model"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// tree is a codec with capabilities only.
type tree struct{ codec.Codec }

func (tree) FourCC() codec.FourCC { return codec.FourCC{'t', 'r', 'e', 'e'} }
func (tree) Capabilities() codec.Capabilities {
	return codec.Capabilities{Encodes: true, Colors: true, ExactColors: true, Steps: []int{0, 5, 9}}
}

// formula predicts like a tree codec: 2.5 bits per point for each bit of its coordinates, one bit
// less for every doubling of the points, and less at lower speeds, which take more time.
type formula struct {
	// larger and slower are factors on size and time.
	larger, slower float64
	// unknown contains the bits without a prediction.
	unknown map[int]bool
}

func (f *formula) Predict(_ codec.Codec, p codec.Params, points int) (model.Prediction, bool) {
	n := float64(points)
	perPoint := 2.5*float64(p.PositionBits) + 14 - math.Log2(n)
	took := 60 * n
	switch {
	case p.Speed < 5:
		perPoint, took = 0.8*perPoint, 2*took
	case p.Speed < 9:
		perPoint, took = 0.95*perPoint, 1.2*took
	}
	took *= f.slower
	return model.Prediction{
		Bytes: int(f.larger * perPoint * n / 8),
		Took:  time.Duration(took),
		Most:  time.Duration(1.5 * took),
	}, !f.unknown[p.PositionBits]
}

func source() Source {
	return Source{
		Codec: tree{}, Params: codec.Params{Box: volumetric.BoundingBox{Max: [3]float32{1, 1.8, 1}}},
		Tiles: 4, FrameRate: 30, Points: 40000, Spacing: 0.002, TileOverhead: 20, PacketOverhead: 0.014,
	}
}

var free = Wish{Bits: -1, Speed: -1}

// TestFind expects a bit rate as close to the target from below as the number of points permits,
// computed from the model for all tiles together.
func TestFind(t *testing.T) {
	m := &formula{larger: 1, slower: 1}
	for _, mbit := range []float64{1, 3, 5, 8, 12, 20} {
		s, w := source(), free
		w.Target = volumetric.Bitrate(mbit * 1e6)
		r, ok := s.Find(m, w)
		if !ok || r.Rate > w.Target || float64(r.Rate) < 0.9*float64(w.Target) {
			t.Errorf("%v: got %v, %v", w.Target, r, ok)
		}
		p, _ := m.Predict(s.Codec, codec.Params{PositionBits: r.Bits, Speed: r.Speed}, r.Points/4)
		if want := volumetric.Bitrate(8 * 4 * 30 * float64(p.Bytes+20) * 1.014); r.Rate != want {
			t.Errorf("%v: the rate is %v, want %v", w.Target, r.Rate, want)
		}
	}
}

// TestFindStaysWithinTheCloud expects at most all points, and at least the smallest rung.
func TestFindStaysWithinTheCloud(t *testing.T) {
	s, m := source(), &formula{larger: 1, slower: 1}
	for target, want := range map[volumetric.Bitrate]int{1e9: 40000, 1: minPoints} {
		w := free
		w.Target = target
		if r, ok := s.Find(m, w); !ok || r.Points != want {
			t.Errorf("%v: got %v, %v, want %d points", target, r, ok, want)
		}
	}
	// Bit rate beyond all points makes steps finer: 40,000 points at 11 bits take 34.4 Mbit/s, and
	// each further bit 3.1.
	for target, want := range map[volumetric.Bitrate]int{35e6: 11, 38e6: 12, 1e9: 13} {
		w := Wish{Target: target, Bits: -1, Speed: 9}
		if r, ok := s.Find(m, w); !ok || r.Points != 40000 || r.Bits != want {
			t.Errorf("%v: got %v, %v, want all points at %d bits", target, r, ok, want)
		}
	}
	s.Points = 50
	w := free
	w.Target = 1e9
	if r, ok := s.Find(m, w); !ok || r.Points != 50 {
		t.Errorf("got %v, %v, want all 50 points", r, ok)
	}
}

// TestBits expects one bit less for half the points on each axis of a surface; 2 mm in 1.8 m
// require 11 bits.
func TestBits(t *testing.T) {
	s := source()
	for points, want := range map[int]int{40000: 11, 10000: 10, 2500: 9} {
		if got := s.bits(points); got != want {
			t.Errorf("%d points: got %d bits, want %d", points, got, want)
		}
	}
}

// TestFindWithinTime expects the slowest speed, with the most points, if there is time, and fewer
// points otherwise.
func TestFindWithinTime(t *testing.T) {
	w := free
	w.Target = 12e6
	for _, test := range []struct {
		budget time.Duration
		speed  int
	}{{0, 0}, {10 * time.Millisecond, 0}, {time.Millisecond, 9}, {200 * time.Microsecond, 9}} {
		s := source()
		s.Budget = test.budget
		r, ok := s.Find(&formula{larger: 1, slower: 1}, w)
		if !ok || r.Speed != test.speed || test.budget > 0 && r.Took > test.budget {
			t.Errorf("within %v: got %v in %v, %v, want speed %d", test.budget, r, r.Took, ok, test.speed)
		}
	}
	// If all points fit at any speed, the fastest suffices.
	w.Target = 1e9
	s := source()
	if r, _ := s.Find(&formula{larger: 1, slower: 1}, w); r.Speed != 9 {
		t.Errorf("got %v, want the fastest", r)
	}
}

func TestWishes(t *testing.T) {
	s, m := source(), &formula{larger: 1, slower: 1}
	r, ok := s.Find(m, Wish{Target: 5e6, Bits: 12, Speed: 6})
	if !ok || r.Bits != 12 || r.Speed != 6 || r.Rate > 5e6 {
		t.Errorf("got %v, %v, want 12 bits at speed 6", r, ok)
	}
	if _, ok := s.Find(&formula{unknown: map[int]bool{12: true}}, Wish{Target: 5e6, Bits: 12, Speed: 6}); ok {
		t.Error("found what the model does not know")
	}
}

// TestTrials observes the trials; afterwards the model knows every setting that Find considers.
func TestTrials(t *testing.T) {
	s, truth, learnt := source(), &formula{larger: 1, slower: 1}, model.New()
	for _, r := range s.Trials(free) {
		p, _ := truth.Predict(s.Codec, s.params(r), r.Points/s.Tiles)
		learnt.Observe(
			model.Observation{
				Codec:  s.Codec,
				Params: s.params(r),
				Points: r.Points / s.Tiles,
				Bytes:  p.Bytes,
				Took:   p.Took,
			},
		)
	}
	if n := len(s.Trials(free)); n > 60 {
		t.Errorf("%d trials, want at most 60", n)
	}
	for _, mbit := range []float64{0.3, 1, 5, 20} {
		w := free
		w.Target = volumetric.Bitrate(mbit * 1e6)
		want, _ := s.Find(truth, w)
		got, ok := s.Find(learnt, w)
		if !ok || math.Abs(float64(got.Points)/float64(want.Points)-1) > 0.1 {
			t.Errorf("%v: got %v, %v, want %v", w.Target, got, ok, want)
		}
	}
}
