package pipeline

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/test/claim"
)

// missed returns the names of lines that miss their targets.
func missed(lines []claim.Line) (names []string) {
	for _, l := range lines {
		if l.Missed() {
			names = append(names, l.Name)
		}
	}
	return names
}

func found(t *testing.T, lines []claim.Line, name string) claim.Line {
	t.Helper()
	i := slices.IndexFunc(lines, func(l claim.Line) bool { return l.Name == name })
	if i < 0 {
		t.Fatalf("no line %q among %v", name, lines)
	}
	return lines[i]
}

// TestPublished reads output of volpeer publish --json.
func TestPublished(t *testing.T) {
	for _, test := range []struct {
		name, text string
		rate       float64
		missed     []string
	}{
		{"all targets met",
			`{"frames_captured":610,"frames_published":600,"frames_dropped":0,"frames_idle":10,
			"encode_ms":{"p50":12.5,"p95":20,"p99":21,"max":30}}`, 30, nil},
		{"too slow",
			`{"frames_captured":600,"frames_published":450,"frames_dropped":150,
			"frames_dropped_for":{"superseded":100,"too_late":30,"source_behind":15,"capture_failed":5}}`,
			22.5, []string{"frames encoded, of 30 requested per second"}},
		{"no subscribers",
			`{"frames_captured":600,"frames_idle":600,"encode_ms":{"p50":null,"p95":null,"p99":null,"max":null}}`, 0,
			[]string{"frames encoded, of 30 requested per second"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var p published
			if err := json.Unmarshal([]byte(test.text), &p); err != nil {
				t.Fatal(err)
			}
			lines := p.lines("")
			if got := missed(lines); !slices.Equal(got, test.missed) {
				t.Errorf("missed %q, want %q", got, test.missed)
			}
			if l := found(t, lines, "frames encoded, of 30 requested per second"); l.Figure != test.rate {
				t.Errorf("got %v, want %g", l, test.rate)
			}
			behind := found(t, lines, "frames dropped because the source was behind or failed").Figure
			if test.rate == 22.5 && behind != 20 {
				t.Errorf("the source was behind %g times, want 20", behind)
			}
		})
	}
}

// TestWatched reads output of volpeer watch --json, also without frames.
func TestWatched(t *testing.T) {
	for _, test := range []struct {
		name, text string
		median     float64
		missed     []string
	}{
		{"all targets met", `{"fps":29.5,"latency_ms":{"p50":20,"p95":30,"p99":35,"max":50}}`, 20, nil},
		{"slow, and with broken frames",
			`{"fps":26.9,"frames_undecodable":2,"latency_ms":{"p50":20,"p95":30,"p99":35,"max":50}}`, 20,
			[]string{"frames decoded per second and tile", "frames undecodable"}},
		{"no frames", `{"latency_ms":{"p50":null,"p95":null,"p99":null,"max":null}}`, notMeasured,
			[]string{"frames decoded per second and tile"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var w watched
			if err := json.Unmarshal([]byte(test.text), &w); err != nil {
				t.Fatal(err)
			}
			if got := missed(w.lines("")); !slices.Equal(got, test.missed) {
				t.Errorf("missed %q, want %q", got, test.missed)
			}
			if got := w.Latency.median(); got != test.median && !(math.IsNaN(got) && math.IsNaN(test.median)) {
				t.Errorf("median %g, want %g", got, test.median)
			}
			if claim.AtMost("whole", w.Latency.median(), "ms", maxPath).Met != (test.median == 20) {
				t.Error("no latency met its target")
			}
		})
	}
}

// TestColors: JPEG frames of 37 dB are halfway between two of Draco's frames, in the logarithm.
func TestColors(t *testing.T) {
	var report struct {
		Rows []row `json:"rows"`
	}
	text := `{"source":"x","rows":[
		{"codec":"draco","speed":10,"color_bits":5,"bytes":400,"ycbcr_psnr_db":40,"encode_ms":{"median":1}},
		{"codec":"draco","speed":10,"color_bits":4,"bytes":100,"ycbcr_psnr_db":34},
		{"codec":"draco","speed":10,"color_bits":8,"bytes":800,"ycbcr_psnr_db":null},
		{"codec":"draco","speed":0,"color_bits":8,"bytes":600,"ycbcr_psnr_db":null},
		{"codec":"draco+jpeg","speed":10,"color_quality":85,"bytes":120,"ycbcr_psnr_db":37},
		{"codec":"draco+jpeg","speed":10,"color_quality":92,"bytes":300,"ycbcr_psnr_db":40},
		{"codec":"draco+jpeg","speed":0,"color_quality":85,"bytes":120,"ycbcr_psnr_db":37}]}`
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	lines := colorLines(report.Rows)
	for name, want := range map[string]float64{
		"speed 10, JPEG of quality 85: fewer bytes than Draco's colours at equal loss": 40,
		"speed 10, JPEG of quality 92: fewer bytes than Draco's colours at equal loss": 25,
		"speed 10, JPEG of quality 85: fewer bytes than exact colours":                 85,
		"speed 0, JPEG of quality 85: fewer bytes than exact colours":                  80,
	} {
		if got := found(t, lines, name).Figure; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %g, want %g", name, got, want)
		}
	}
	unmeasured := "speed 0, JPEG of quality 85: fewer bytes than Draco's colours at equal loss"
	if got := missed(lines); !slices.Equal(got,
		[]string{"speed 10, JPEG of quality 92: fewer bytes than Draco's colours at equal loss", unmeasured}) {
		t.Errorf("missed %q", got)
	}
	if l := found(t, lines, unmeasured); l.Failed == "" {
		t.Errorf("got %v without Draco's colours at that loss", l)
	}
}

// TestEnduranceLines: damaged frames must be rejected, and undamaged frames must be decoded.
func TestEnduranceLines(t *testing.T) {
	good := []tile{{publisherName, 300, 0, 30}, {publisherName, 290, 0, 29}, {vandalName, 20, 200, 3}}
	bad := []tile{{publisherName, 300, 1, 20}, {vandalName, 220, 0, 30}}
	for _, test := range []struct {
		tiles  []tile
		missed string
	}{
		{good, ""},
		{bad,
			"frames decoded per second and tile|undamaged frames undecodable|damaged frames rejected"},
		{nil, "frames decoded per second and tile|damaged frames rejected"},
	} {
		if got := strings.Join(missed(enduranceLines(test.tiles, 220)), "|"); got != test.missed {
			t.Errorf("%v: missed %q, want %q", test.tiles, got, test.missed)
		}
	}
}
