package plot

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// ticks are round values on a linear axis.
type ticks struct {
	whole bool // only whole numbers
}

// Ticks implements plot.Ticker.
func (t ticks) Ticks(low, high float64) []plot.Tick {
	step := stepOf(high - low)
	if t.whole {
		step = max(1, step)
	}
	var all []plot.Tick
	for i := math.Ceil(low/step - 1e-9); i <= high/step+1e-9; i++ {
		// Six digits hide rounding errors of round values. Adding 0 converts -0 to 0.
		all = append(all, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step+0, 'g', 6, 64)})
	}
	return all
}

// stepOf returns a round interval that divides a range into four to ten parts.
func stepOf(reach float64) float64 {
	if !(reach > 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(reach)))
	switch {
	case reach/power < 2:
		return power / 5
	case reach/power < 5:
		return power / 2
	}
	return power
}

// decades are the powers of ten of a logarithmic axis, with unlabelled ticks between them.
type decades struct{}

// Ticks implements plot.Ticker.
func (decades) Ticks(low, high float64) []plot.Tick {
	var all []plot.Tick
	for power := math.Floor(math.Log10(low)); power <= math.Ceil(math.Log10(high)); power++ {
		for digit := 1.0; digit < 10; digit++ {
			v := digit * math.Pow(10, power)
			if v < low*(1-1e-9) || v > high*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if digit == 1 {
				t.Label = strconv.FormatFloat(v, 'g', 6, 64)
			}
			all = append(all, t)
		}
	}
	return all
}
