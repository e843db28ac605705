package model

import (
	"bufio"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/test/transcript"
)

// coder is a codec with capabilities only.
type coder struct {
	codec.Codec
	fourCC codec.FourCC
	can    codec.Capabilities
}

func (c coder) FourCC() codec.FourCC             { return c.fourCC }
func (c coder) Capabilities() codec.Capabilities { return c.can }

var coders = map[string]codec.Codec{
	"tree": coder{
		fourCC: codec.FourCC{'t', 'r', 'e', 'e'},
		can:    codec.Capabilities{Colors: true, ExactColors: true, Steps: []int{0, 5, 9}},
	},
	"lossy": coder{
		fourCC: codec.FourCC{'l', 'o', 's', 's'},
		can:    codec.Capabilities{Colors: true, Steps: []int{0}, SequentialSteps: []int{0}},
	},
	"plain": coder{fourCC: codec.FourCC{'p', 'l', 'a', 'n'}, can: codec.Capabilities{Steps: []int{0}}},
}

// TestTranscripts runs the transcripts of testdata. Their lines are
//
//	TIMES x CODEC BITS SPEED [quality=N] [plain] [sequential]: POINTS points, BYTES bytes, TIME
//	CODEC BITS SPEED [quality=N] [plain] [sequential]: POINTS points
//
// The first form observes frames, TIMES times. The second form requests a prediction, which follows
// after ">".
func TestTranscripts(t *testing.T) {
	transcript.Play(t, "testdata/*.txt", play)
}

func play(t *testing.T, text string) string {
	t.Helper()
	m := New()
	var out strings.Builder
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, ">") {
			continue
		}
		fmt.Fprintln(&out, line)
		if line == "" || line[0] == '#' {
			continue
		}
		what, frame, _ := strings.Cut(line, ": ")
		times := 0
		if count, rest, many := strings.Cut(what, " x "); many {
			times, what = number(t, count), rest
		}
		c, params := setup(t, strings.Fields(what))
		words := strings.Fields(strings.ReplaceAll(frame, ",", ""))
		points := number(t, words[0])
		if times == 0 {
			fmt.Fprintln(&out, ">", told(m.Predict(c, params, points)))
			continue
		}
		took, err := time.ParseDuration(words[4])
		if err != nil {
			t.Fatal(err)
		}
		for range times {
			m.Observe(Observation{c, params, points, number(t, words[2]), took})
		}
	}
	return out.String()
}

func setup(t *testing.T, words []string) (codec.Codec, codec.Params) {
	t.Helper()
	params := codec.Params{PositionBits: number(t, words[1]), Speed: number(t, words[2])}
	for _, word := range words[3:] {
		switch quality, lossy := strings.CutPrefix(word, "quality="); {
		case lossy:
			params.ColorQuality = number(t, quality)
		case word == "plain":
			params.NoColors = true
		case word == "sequential":
			params.Sequential = true
		default:
			t.Fatalf("got %q", word)
		}
	}
	c, ok := coders[words[0]]
	if !ok {
		t.Fatalf("no codec %q", words[0])
	}
	return c, params
}

func number(t *testing.T, word string) int {
	t.Helper()
	n, err := strconv.Atoi(word)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// told returns a prediction with three digits, because the last digits of a sum differ between
// machines.
func told(p Prediction, known bool) string {
	if !known {
		return "unknown"
	}
	round := func(v float64) float64 {
		r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
		return r
	}
	ms := func(d time.Duration) float64 { return round(float64(d) / float64(time.Millisecond)) }
	return fmt.Sprintf("%.0f bytes, %g ms, rarely above %g ms", round(float64(p.Bytes)), ms(p.Took), ms(p.Most))
}

// TestPredictionsAreFinite expects predictions between 0 and the limits for any observations.
func TestPredictionsAreFinite(t *testing.T) {
	c := coders["tree"]
	for _, o := range []Observation{
		{c, codec.Params{}, 0, 10, time.Second}, {c, codec.Params{}, 10, 0, time.Second},
		{c, codec.Params{}, 10, 10, 0}, {c, codec.Params{}, -5, 10, time.Second},
		{c, codec.Params{}, 1, 1, 1}, {c, codec.Params{}, 1, math.MaxInt32, time.Hour},
		{c, codec.Params{}, math.MaxInt32, 1, 1},
	} {
		m := New()
		m.Observe(o)
		m.Observe(Observation{c, codec.Params{}, 1000, 3000, time.Millisecond})
		for _, points := range []int{0, 1, 2, 1000, 1 << 22} {
			p, known := m.Predict(c, codec.Params{}, points)
			if !known || p.Bytes < 0 || p.Took < 0 || p.Most < p.Took || p.Most > time.Hour {
				t.Errorf("after %+v: %d points are predicted as %+v, %v", o, points, p, known)
			}
		}
	}
}

func TestNoAllocations(t *testing.T) {
	m, c := New(), coders["tree"]
	if n := testing.AllocsPerRun(100, func() {
		m.Observe(Observation{c, codec.Params{PositionBits: 11}, 1000, 3000, time.Millisecond})
		m.Predict(c, codec.Params{PositionBits: 11}, 500)
	}); n > 0 {
		t.Errorf("%.1f allocations per frame, want none", n)
	}
}

// TestOnePoint learns from frames of one point, whose logarithm is 0, and predicts others.
func TestOnePoint(t *testing.T) {
	m := New()
	for range 3 {
		m.Observe(
			Observation{
				Codec:  coders["tree"],
				Params: codec.Params{PositionBits: 11},
				Points: 1,
				Bytes:  20,
				Took:   30 * time.Microsecond,
			},
		)
	}
	for _, points := range []int{1, 2, 1000, 1 << 20} {
		p, known := m.Predict(coders["tree"], codec.Params{PositionBits: 11}, points)
		if !known || p.Bytes <= 0 || p.Bytes > 20*points || p.Took < 0 || p.Most < p.Took {
			t.Errorf("%d points are predicted to be %+v", points, p)
		}
	}
}
