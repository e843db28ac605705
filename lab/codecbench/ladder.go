package codecbench

import (
	"github.com/volsfu/volsfu/pkg/codec"
)

// Candidate is a codec on so many threads, by the name that it has on one.
type Candidate struct {
	Codec   codec.Codec
	Name    string
	Threads int
}

// Ladder is all combinations of what it lists.
type Ladder struct {
	Candidates []Candidate
	// Speeds are the same for all codecs; without any, each codec has its own steps.
	Speeds []int
	Bits   []int
	// Shares are in % of the points.
	Shares []float64
	// Colors say whether there are any. ColorQuality is for codecs that keep them with loss, ColorBits for the others.
	Colors                  []bool
	ColorQuality, ColorBits []int
}

// Settings are the combinations that differ: what a codec has no use for is left out.
func (l *Ladder) Settings() []Setting {
	var all []Setting
	for _, c := range l.Candidates {
		for _, share := range l.Shares {
			for _, bits := range l.Bits {
				s := Setting{Codec: c.Codec, Name: c.Name, Threads: c.Threads, Bits: bits, Share: share}
				all = append(all, l.withColors(s, c.Codec.Capabilities())...)
			}
		}
	}
	return all
}

// withColors are a setting's combinations of colours and speeds.
func (l *Ladder) withColors(s Setting, can codec.Capabilities) []Setting {
	var all []Setting
	for _, colors := range l.Colors {
		if s.Colors = colors && can.Colors; s.Colors != colors {
			continue
		}
		kept := []Setting{s}
		switch {
		case colors && can.ExactColors:
			kept = kept[:0]
			for _, s.ColorBits = range l.ColorBits {
				kept = append(kept, s)
			}
		case colors:
			kept = kept[:0]
			for _, s.ColorQuality = range l.ColorQuality {
				kept = append(kept, s)
			}
		}
		for _, k := range kept {
			for _, speed := range l.speeds(can) {
				k.Speed, k.Level = speed, 10-speed
				all = append(all, k)
			}
		}
		s.ColorBits, s.ColorQuality = 0, 0
	}
	return all
}

func (l *Ladder) speeds(can codec.Capabilities) []int {
	if len(l.Speeds) > 0 {
		return l.Speeds
	}
	return can.Steps
}
