package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

// full returns a diagram with every feature.
func full() *Diagram {
	return &Diagram{
		Title: "Latency < 50 ms & more", X: Axis{Label: "delay, ms"},
		Panels: []Panel{
			{Y: Axis{Label: "latency, ms", FromZero: true}, Limits: []Limit{{33, "one frame"}}, Curves: []Curve{
				{Name: "ours", Kind: LineAndDots,
					Points: []Point{{X: 0, Y: 10, Low: 9, High: 11}, {X: 10, Y: 20, Mark: "here"}}},
				{Name: "theirs", Kind: Steps, Points: []Point{{X: 0, Y: 12}, {X: 10, Y: 30}}},
				{Name: "the paper", Kind: Reference, Like: "ours", Points: []Point{{X: 5, Y: 18, Low: 15, High: 21}}},
			}},
			{Y: Axis{Label: "rate", Log: true},
				Curves: []Curve{{Name: "ours", Kind: Dots,
					Points: []Point{{X: 0, Y: 0.1}, {X: 10, Y: 1000}, {X: 5, Y: 0}}}}},
		},
	}
}

// svg draws a diagram and counts its elements by name.
func svg(t *testing.T, d *Diagram) (string, map[string]int) {
	t.Helper()
	var b bytes.Buffer
	if err := d.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	elements := make(map[string]int)
	for decoder := xml.NewDecoder(bytes.NewReader(b.Bytes())); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return b.String(), elements
		}
		if err != nil {
			t.Fatalf("%v in %s", err, b.String())
		}
		if start, ok := token.(xml.StartElement); ok {
			elements[start.Name.Local]++
		}
	}
}

func TestDiagram(t *testing.T) {
	text, elements := svg(t, full())
	if !strings.HasPrefix(text, "<svg ") || elements["svg"] != 1 || elements["title"] != 1 {
		t.Errorf("expected one svg element with a title, got %v", elements)
	}
	for _, word := range []string{
		"Latency &lt; 50 ms &amp; more", ">latency, ms<", ">delay, ms<", ">ours<", ">theirs<", ">the paper<",
		">one frame<", ">here<", ">1000<", "sans-serif",
	} {
		if !strings.Contains(text, word) {
			t.Errorf("expected %q in the drawing", word)
		}
	}
	if strings.Contains(text, ">-0<") {
		t.Error("expected no tick at -0")
	}
}

func TestBars(t *testing.T) {
	d := &Diagram{Title: "Bars", Groups: []string{"a\nb", "c"}, Reference: "the paper",
		Panels: []Panel{{Y: Axis{Label: "ms"}, Bars: []Bars{
			{Name: "one", Points: []Point{{X: 0, Y: 3, Low: 2, High: 4}, {X: 1, Y: 5}},
				References: []Point{{X: 0, Y: 4}}},
			{Name: "two", Points: []Point{{X: 1, Y: 2}}},
		}}}}
	beside, _ := svg(t, d)
	d.Panels[0].Stacked = true
	stacked, _ := svg(t, d)
	if beside == stacked {
		t.Error("expected a different drawing of stacked bars")
	}
	for _, word := range []string{">a<", ">b<", ">c<", ">one<", ">two<", ">the paper<"} {
		if !strings.Contains(beside, word) {
			t.Errorf("expected %q in the drawing", word)
		}
	}
}

func TestSpanOfStackedBars(t *testing.T) {
	p := Panel{Stacked: true}
	heights := map[float64]float64{}
	p.span(Point{X: 1, Y: 3}, heights)
	if low, high := p.span(Point{X: 1, Y: 2}, heights); low != 3 || high != 5 {
		t.Errorf("expected the second bar from 3 to 5, got %g to %g", low, high)
	}
	if low, high := p.span(Point{X: 0, Y: 2}, heights); low != 0 || high != 2 {
		t.Errorf("expected another group from 0 to 2, got %g to %g", low, high)
	}
	p = Panel{Y: Axis{Log: true}}
	if low, high := p.span(Point{Y: 50}, heights); low != 10 || high != 50 {
		t.Errorf("expected 10 to 50 on a logarithmic axis, got %g to %g", low, high)
	}
}

func TestNothingToDraw(t *testing.T) {
	for name, d := range map[string]*Diagram{
		"no panel":  {Title: "a"},
		"no points": {Title: "a", Panels: []Panel{{Curves: []Curve{{Name: "b"}}}}},
		"no number": {Title: "a", Panels: []Panel{{Curves: []Curve{{Points: []Point{{Y: math.NaN()}}}}}}},
		"nothing above 0": {Title: "a", Panels: []Panel{{Y: Axis{Log: true},
			Curves: []Curve{{Points: []Point{{Y: -1}}}}}}},
		"nothing as infinite": {Title: "a", Panels: []Panel{{Bars: []Bars{{Points: []Point{{Y: math.Inf(1)}}}}}}},
	} {
		if err := d.WriteSVG(io.Discard); !errors.Is(err, ErrEmpty) {
			t.Errorf("%s: expected that there is nothing to draw, got %v", name, err)
		}
	}
}

// TestZeros: if all values are zero, the range of the axis is not empty.
func TestZeros(t *testing.T) {
	text, _ := svg(t, &Diagram{Title: "Drops", Groups: []string{"a"},
		Panels: []Panel{{Y: Axis{Label: "packets"}, Bars: []Bars{{Name: "ours", Points: []Point{{X: 0, Y: 0}}}}}}})
	if strings.Contains(text, ">-0.") || !strings.Contains(text, ">1<") {
		t.Errorf("expected an axis from 0 to 1 in %s", text)
	}
}

// TestStrangeValues: unusual values of measurements do not make the report fail.
func TestStrangeValues(t *testing.T) {
	for name, points := range map[string][]Point{
		"one":       {{X: 1, Y: 1}},
		"all equal": {{X: 1, Y: 5}, {X: 1, Y: 5}},
		"zero":      {{X: 0, Y: 0}},
		"tiny":      {{X: 1e-12, Y: 1e-12}, {X: 2e-12, Y: 3e-12}},
		"huge":      {{X: 1, Y: 1e15}, {X: 2, Y: -1e15}},
		"holes": {{X: 1, Y: 1}, {X: math.NaN(), Y: 2}, {X: 3, Y: math.Inf(-1)},
			{X: 4, Y: 2, Low: math.NaN(), High: 3}},
	} {
		for _, log := range []bool{false, true} {
			d := &Diagram{Title: name, X: Axis{Label: "x"},
				Panels: []Panel{{Y: Axis{Label: "y", Log: log},
					Curves: []Curve{{Name: "c", Kind: LineAndDots, Points: points}}}}}
			if err := d.WriteSVG(io.Discard); err != nil && !(log && errors.Is(err, ErrEmpty)) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		low, high float64
		want      string
	}{
		{0, 10, "0 2 4 6 8 10"},
		{0, 1.9, "0 0.2 0.4 0.6 0.8 1 1.2 1.4 1.6 1.8"},
		{-40, 40, "-40 -30 -20 -10 0 10 20 30 40"},
	} {
		var got []string
		for _, tick := range (ticks{}).Ticks(test.low, test.high) {
			got = append(got, tick.Label)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%g to %g: expected %s, got %s", test.low, test.high, test.want, strings.Join(got, " "))
		}
	}
	var counted []string
	for _, tick := range (ticks{whole: true}).Ticks(3.4, 4.6) {
		counted = append(counted, tick.Label)
	}
	if strings.Join(counted, " ") != "4" {
		t.Errorf("whole numbers from 3.4 to 4.6: expected 4, got %v", counted)
	}
	var got []string
	for _, tick := range (decades{}).Ticks(0.1, 100) {
		if tick.Label != "" {
			got = append(got, tick.Label)
		}
	}
	if want := "0.1 1 10 100"; strings.Join(got, " ") != want {
		t.Errorf("expected %s, got %v", want, got)
	}
}
