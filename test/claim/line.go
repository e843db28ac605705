package claim

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Line is one result: a figure and, where the claim sets one, its target.
type Line struct {
	Name   string  `json:"name"`
	Figure float64 `json:"figure"`
	Unit   string  `json:"unit,omitempty"`
	// Target is the bound as it is printed, for instance "≥ 27", or stated; empty where the figure is for information.
	Target string `json:"target,omitempty"`
	// Met says that the figure reaches its target, or has none. A line that is skipped is neither met nor missed.
	Met bool `json:"met"`
	// Skipped says why nothing was measured; there is no figure then.
	Skipped string `json:"skipped,omitempty"`
	// Failed says how measuring failed; there is no figure then, and the target is missed.
	Failed string `json:"failed,omitempty"`
}

// Information is a figure without target.
func Information(name string, figure float64, unit string) Line {
	return Line{Name: name, Figure: finite(figure), Unit: unit, Met: true}
}

// AtLeast is a figure that has to reach a bound.
func AtLeast(name string, figure float64, unit string, bound float64) Line {
	return Line{Name: name, Figure: finite(figure), Unit: unit, Target: "≥ " + formatNumber(bound),
		Met: figure >= bound}
}

// AtMost is a figure that must not exceed a bound.
func AtMost(name string, figure float64, unit string, bound float64) Line {
	return Line{Name: name, Figure: finite(figure), Unit: unit, Target: "≤ " + formatNumber(bound),
		Met: figure <= bound}
}

// Exactly is a count that has to be as expected.
func Exactly(name string, count int64, unit string, expected int64) Line {
	return Line{Name: name, Figure: float64(count), Unit: unit, Target: "= " + strconv.FormatInt(expected, 10),
		Met: count == expected}
}

// Stated is a figure that a claim asks for without bounding it.
func Stated(name string, figure float64, unit string) Line {
	return Line{Name: name, Figure: finite(figure), Unit: unit, Target: stated, Met: true}
}

// stated stands in place of a bound.
const stated = "stated"

// Skip is a line about what could not be measured here.
func Skip(name, why string) Line { return Line{Name: name, Skipped: why} }

// Fail is a line about a run that failed.
func Fail(name, why string) Line { return Line{Name: name, Failed: why} }

// Missed says that the figure does not reach its target, or that measuring failed.
func (l Line) Missed() bool { return !l.Met && l.Skipped == "" }

// Measured reports whether the line has a figure.
func (l Line) Measured() bool { return l.Skipped == "" && l.Failed == "" }

// MarshalJSON leaves out figure and verdict if nothing was measured.
func (l Line) MarshalJSON() ([]byte, error) {
	if !l.Measured() {
		return json.Marshal(struct {
			Name    string `json:"name"`
			Skipped string `json:"skipped,omitempty"`
			Failed  string `json:"failed,omitempty"`
		}{l.Name, l.Skipped, l.Failed})
	}
	type plain Line
	return json.Marshal(plain(l))
}

// finite keeps what JSON cannot carry out of reports. Comparisons with targets are made before.
func finite(figure float64) float64 {
	if math.IsNaN(figure) || math.IsInf(figure, 0) {
		return 0
	}
	return figure
}

// formatNumber prints with as many digits as a reader can use: integers whole, other numbers with about five digits.
func formatNumber(v float64) string {
	switch {
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.Abs(v) >= 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case math.Abs(v) >= 1:
		return strconv.FormatFloat(v, 'f', 3, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}

// String prints the line without alignment, for progress.
func (l Line) String() string {
	if !l.Measured() {
		return fmt.Sprintf("%s: %s", l.Name, l.Unmeasured())
	}
	text := fmt.Sprintf("%s: %s", l.Name, l.Value())
	if l.Verdict() != "" {
		text += fmt.Sprintf(" (target %s: %s)", l.Target, l.Verdict())
	}
	return text
}

// Value is the figure with its unit.
func (l Line) Value() string {
	if l.Unit == "" {
		return formatNumber(l.Figure)
	}
	return formatNumber(l.Figure) + " " + l.Unit
}

// Unmeasured says why there is no figure.
func (l Line) Unmeasured() string {
	if l.Failed != "" {
		return "FAILED: " + l.Failed
	}
	return "skipped: " + l.Skipped
}

// Verdict is "met" or "MISSED", empty if the line has no bound to reach.
func (l Line) Verdict() string {
	switch {
	case l.Target == "" || l.Target == stated:
		return ""
	case l.Met:
		return "met"
	default:
		return "MISSED"
	}
}
