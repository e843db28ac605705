package present

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestAccounts plays 2,000 frames of four tiles, some of them late or lost. The shown numbers increase, and every tile
// of every number is either decoded when its frame is due, or held.
func TestAccounts(t *testing.T) {
	const tiles, frames, interval = 4, 2000, 33.
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		var arrivals []Arrival
		for n := range frames {
			for tile := range tiles {
				if n > 0 && n < frames-1 && random.IntN(50) == 0 {
					continue
				}
				late := 20 + 10*random.Float64()
				if n > 0 && random.IntN(30) == 0 {
					late += 150 * random.Float64()
				}
				capture := interval * float64(n)
				arrivals = append(arrivals, Arrival{Tile: tile, Number: int64(n), Capture: at(capture),
					First: at(capture + 15), Decoded: at(capture + late)})
			}
		}
		slices.SortStableFunc(arrivals, func(a, b Arrival) int { return a.Decoded.Compare(b.Decoded) })
		stage := NewStage(150 * time.Millisecond)
		stage.Add(&volumetric.Publication{Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
			FrameRate: 30})
		player := stage.Player("body")
		have := make(map[int64]int) // tiles decoded before their number was due
		shown, held := int64(-1), 0
		step := func(now time.Time) {
			for _, s := range stage.Step(now) {
				if s.Number <= shown {
					t.Fatalf("seed %d: frame %d is shown after %d", seed, s.Number, shown)
				}
				shown = s.Number
				for _, n := range s.Held {
					held += n
				}
			}
			if len(player.frames) > history+20 {
				t.Fatalf("seed %d: %d frames are remembered", seed, len(player.frames))
			}
		}
		for _, a := range arrivals {
			for {
				next, ok := stage.Next(a.Decoded)
				if !ok || next.After(a.Decoded) {
					break
				}
				step(next)
			}
			if a.Number > shown {
				have[a.Number]++
			}
			stage.Decoded("body", a)
			step(a.Decoded)
		}
		step(arrivals[len(arrivals)-1].Decoded.Add(time.Second))
		if shown != frames-1 {
			t.Errorf("seed %d: the last frame shown is %d, expected %d", seed, shown, frames-1)
		}
		sum := 0
		for _, n := range have {
			sum += n
		}
		if sum+held != tiles*frames {
			t.Errorf("seed %d: %d tiles there and %d held, expected %d together", seed, sum, held, tiles*frames)
		}
		if held > tiles*frames/20 {
			t.Errorf("seed %d: %d of %d tiles held, expected about the 2 %% that never came", seed, held, tiles*frames)
		}
	}
}

// BenchmarkStage decodes one frame of four tiles, tile by tile, and shows the frame.
func BenchmarkStage(b *testing.B) {
	stage := NewStage(150 * time.Millisecond)
	stage.Add(&volumetric.Publication{Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
		FrameRate: 30})
	b.ReportAllocs()
	for n := range b.N {
		capture := at(33 * float64(n))
		for tile := range 4 {
			decoded := capture.Add(time.Duration(20+tile) * time.Millisecond)
			stage.Decoded("body", Arrival{Tile: tile, Number: int64(n), Capture: capture, First: capture,
				Decoded: decoded})
			stage.Step(decoded)
			stage.Next(decoded)
		}
		stage.Step(capture.Add(50 * time.Millisecond))
	}
}
