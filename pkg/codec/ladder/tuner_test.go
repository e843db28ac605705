package ladder

import (
	"bufio"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/transcript"
)

// TestTranscripts runs the transcripts of testdata. Their first line contains the targets in
// Mbit/s; the others are
//
//	MS UPLINK [without Q…] [larger F] [slower F]
//
// for a step MS milliseconds after the beginning with an uplink of UPLINK Mbit/s, 0 if unknown.
// "without" lists qualities that are not wanted; "larger" and "slower" change the size and the time
// of frames by a factor. If a rung changes, the rungs follow after ">".
func TestTranscripts(t *testing.T) {
	transcript.Play(t, "testdata/*.txt", play)
}

func play(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	var tuner *Tuner
	m, epoch := &formula{larger: 1, slower: 1}, time.Unix(0, 0)
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, ">") {
			continue
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if tuner == nil {
			tuner = begin(t, m, words)
			fmt.Fprint(&out, rungs(tuner))
			continue
		}
		*m = formula{larger: 1, slower: 1}
		wanted := make([]bool, len(tuner.Rungs()))
		for q := range wanted {
			wanted[q] = true
		}
		for i := 2; i+1 < len(words); i += 2 {
			switch value := number(t, words[i+1]); words[i] {
			case "without":
				wanted[int(value)] = false
			case "larger":
				m.larger = value
			case "slower":
				m.slower = value
			default:
				t.Fatalf("got %q", words[i])
			}
		}
		now := epoch.Add(time.Duration(number(t, words[0])) * time.Millisecond)
		if tuner.Step(now, volumetric.Bitrate(number(t, words[1])*1e6), wanted, m) {
			fmt.Fprint(&out, rungs(tuner))
		}
	}
	return out.String()
}

func begin(t *testing.T, m Model, words []string) *Tuner {
	t.Helper()
	var wishes []Wish
	for _, word := range words {
		w := free
		w.Target = volumetric.Bitrate(number(t, word) * 1e6)
		wishes = append(wishes, w)
	}
	s := source()
	s.Budget = 5 * time.Millisecond
	tuner, ok := NewTuner(&s, wishes, m)
	if !ok {
		t.Fatal("nothing found")
	}
	return tuner
}

func number(t *testing.T, word string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(word, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// rungs returns the rungs with three digits, because the last digits depend on the machine.
func rungs(t *Tuner) string {
	var out strings.Builder
	for _, r := range t.Rungs() {
		fmt.Fprintf(
			&out,
			"> %.3g points, %d bits, speed %d: %.3g Mbit/s\n",
			float64(r.Points),
			r.Bits,
			r.Speed,
			float64(r.Rate)/1e6,
		)
	}
	return out.String()
}

// TestSqueeze expects that the sum is at most the given capacity, that no rate rises or is lost,
// and that the order of the rates is kept.
func TestSqueeze(t *testing.T) {
	for _, test := range []struct {
		rates   []volumetric.Bitrate
		carried float64
		want    []volumetric.Bitrate
	}{
		{[]volumetric.Bitrate{1e6, 5e6, 20e6}, 0, []volumetric.Bitrate{1e6, 5e6, 20e6}},
		{[]volumetric.Bitrate{1e6, 5e6, 20e6}, 26e6, []volumetric.Bitrate{1e6, 5e6, 20e6}},
		{[]volumetric.Bitrate{2e6}, 1e6, []volumetric.Bitrate{1e6}},
		{nil, 1e6, nil},
		// 1 + 4^½ + 16^½.
		{[]volumetric.Bitrate{1e6, 4e6, 16e6}, 7e6, []volumetric.Bitrate{1e6, 2e6, 4e6}},
	} {
		got := Squeeze(test.rates, test.carried)
		if len(got) != len(test.want) {
			t.Errorf("%v in %g: got %v", test.rates, test.carried, got)
			continue
		}
		for i, want := range test.want {
			if math.Abs(float64(got[i]-want)) > 2 {
				t.Errorf("%v in %g: got %v, want %v", test.rates, test.carried, got, test.want)
			}
		}
	}
	property := func(a, b, c uint32, carried uint32) bool {
		rates := []volumetric.Bitrate{volumetric.Bitrate(a) + 1, 0, 0}
		rates[1] = rates[0] + volumetric.Bitrate(b)
		rates[2] = rates[1] + volumetric.Bitrate(c)
		got := Squeeze(rates, float64(carried)+1)
		total := 0.0
		for i, r := range got {
			total += float64(r)
			if r > rates[i] || i > 0 && r < got[i-1] {
				return false
			}
		}
		return total <= float64(carried)+4
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}
