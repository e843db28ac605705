package claim

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Line is one result: a figure and, if the claim sets one, its target.
type Line struct {
	Name   string  `json:"name"`
	Figure float64 `json:"figure"`
	Unit   string  `json:"unit,omitempty"`
	// Target is the bound as it is printed, for example "≥ 27", or "stated". Target is empty if the figure is for
	// information.
	Target string `json:"target,omitempty"`
	// Met is set if the figure reaches its target or has none. A skipped line is neither met nor missed.
	Met bool `json:"met"`
	// Skipped is the reason for which nothing was measured. There is no figure then.
	Skipped string `json:"skipped,omitempty"`
	// Failed is the error of the measurement. There is no figure then, and the target is missed.
	Failed string `json:"failed,omitempty"`
}

// Information returns a line with a figure without a target.
func Information(name string, figure float64, unit string) Line {
	return Line{Name: name, Figure: finite(figure), Unit: unit, Met: true}
}

// AtLeast returns a line whose figure must reach a bound.
func AtLeast(name string, figure float64, unit string, bound float64) Line {
	return Line{Name: name, Figure: finite(figure), Unit: unit, Target: "≥ " + formatNumber(bound),
		Met: figure >= bound && !math.IsInf(figure, 0)}
}

// AtMost returns a line whose figure must not exceed a bound.
func AtMost(name string, figure float64, unit string, bound float64) Line {
	return Line{Name: name, Figure: finite(figure), Unit: unit, Target: "≤ " + formatNumber(bound),
		Met: figure <= bound}
}

// Between returns a line whose figure must reach one bound and must not exceed another.
func Between(name string, figure float64, unit string, least, most float64) Line {
	return Line{Name: name, Figure: finite(figure), Unit: unit,
		Target: formatNumber(least) + " to " + formatNumber(most), Met: figure >= least && figure <= most}
}

// Exactly returns a line whose count must equal the expected count.
func Exactly(name string, count int64, unit string, expected int64) Line {
	return Line{Name: name, Figure: float64(count), Unit: unit, Target: "= " + strconv.FormatInt(expected, 10),
		Met: count == expected}
}

// Stated returns a line with a figure that a claim requires without a bound.
func Stated(name string, figure float64, unit string) Line {
	return Line{Name: name, Figure: finite(figure), Unit: unit, Target: stated, Met: true}
}

// stated is the target of a line without a bound.
const stated = "stated"

// Skip returns a line without a figure, because the measurement is not possible here.
func Skip(name, why string) Line { return Line{Name: name, Skipped: why} }

// Fail returns a line about a failed measurement.
func Fail(name, why string) Line { return Line{Name: name, Failed: why} }

// Missed reports whether the figure misses its target or the measurement failed.
func (l Line) Missed() bool { return !l.Met && l.Skipped == "" }

// Measured reports whether the line has a figure.
func (l Line) Measured() bool { return l.Skipped == "" && l.Failed == "" }

// MarshalJSON omits the figure and the verdict if nothing was measured.
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

// finite replaces NaN and infinities, which JSON cannot represent, by 0. Figures are compared with targets before.
func finite(figure float64) float64 {
	if math.IsNaN(figure) || math.IsInf(figure, 0) {
		return 0
	}
	return figure
}

// formatNumber formats a number with a useful precision: integers in full, other numbers with about five digits.
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

// String returns the line without alignment, for progress messages.
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

// Value returns the figure with its unit.
func (l Line) Value() string {
	if l.Unit == "" {
		return formatNumber(l.Figure)
	}
	return formatNumber(l.Figure) + " " + l.Unit
}

// Unmeasured returns the reason for which there is no figure.
func (l Line) Unmeasured() string {
	if l.Failed != "" {
		return "FAILED: " + l.Failed
	}
	return "skipped: " + l.Skipped
}

// Verdict returns "met" or "MISSED", or an empty string if the line has no bound.
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
