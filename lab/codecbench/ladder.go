package codecbench

import (
	"github.com/volsfu/volsfu/pkg/codec"
)

// Candidate is a codec on a number of threads. Name is the name of the single-threaded codec.
type Candidate struct {
	Codec   codec.Codec
	Name    string
	Threads int
}

// Ladder is the set of all combinations of its lists.
type Ladder struct {
	Candidates []Candidate
	// Speeds apply to all codecs. If the list is empty, each codec has its own steps.
	Speeds []int
	Bits   []int
	// Shares are in % of the points.
	Shares []float64
	// Colors lists whether colours are encoded. ColorQuality applies to codecs with lossy colours, ColorBits to other
	// codecs.
	Colors                  []bool
	ColorQuality, ColorBits []int
}

// Settings returns the distinct combinations, without parameters that a codec does not use.
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

// withColors returns a setting's combinations of colours and speeds.
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
