package codecbench

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/codectest"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// lossy is raw with lossy colours: the lower the quality, the more of the last bits are lost.
type lossy struct{ codec.Codec }

func (lossy) Name() string { return "lossy" }

func (lossy) Capabilities() codec.Capabilities {
	return codec.Capabilities{Encodes: true, Colors: true, Steps: []int{0, 5}, MaxPoints: 1 << 20}
}

func (c lossy) NewEncoder() codec.Encoder { return worsener{c.Codec.NewEncoder()} }

type worsener struct{ codec.Encoder }

func (e worsener) Encode(dst []byte, cloud *pointcloud.Cloud, params codec.Params) ([]byte, error) {
	worse := new(pointcloud.Cloud)
	worse.CopyFrom(cloud)
	step := uint8(1 + (100-params.ColorQuality)/10)
	for i := range worse.Colors {
		for channel, v := range worse.Colors[i] {
			worse.Colors[i][channel] = v - v%step
		}
	}
	return e.Encoder.Encode(dst, worse, params)
}

// grey returns a cloud whose points have distances larger than the quantisation.
func grey(points int) *pointcloud.Cloud { return codectest.Cloud(1, points) }

func ladder() *Ladder {
	return &Ladder{
		Candidates: []Candidate{{codec.Raw, "raw", 1}, {lossy{codec.Raw}, "lossy", 1}},
		Bits:       []int{8, 11}, Shares: []float64{100, 50}, Colors: []bool{true, false}, ColorQuality: []int{50, 90},
		ColorBits: []int{4, 8},
	}
}

// TestSettings: combinations without a difference are omitted.
func TestSettings(t *testing.T) {
	l := ladder()
	got := make(map[string]int)
	for _, s := range l.Settings() {
		got[s.Name]++
		if s.Name == "raw" && s.ColorQuality != 0 || s.Name == "lossy" && s.ColorBits != 0 || !s.Colors &&
			s.ColorBits+s.ColorQuality > 0 || s.Level != 10-s.Speed {
			t.Errorf("got %+v", s)
		}
	}
	// Two bits and two shares. raw has one speed, and colours of 4 bits, of 8 bits and no colours. lossy has two
	// speeds.
	if got["raw"] != 4*3 || got["lossy"] != 4*3*2 {
		t.Errorf("got %v", got)
	}
	l.Speeds = []int{3, 4, 5}
	if n := len(l.Settings()); n != 2*4*3*3 {
		t.Errorf("got %d settings with three speeds", n)
	}
}

func run(t *testing.T, l *Ladder, points int) []Row {
	t.Helper()
	b, err := New([]*pointcloud.Cloud{grey(points), grey(points)}, codectest.Box, 3)
	if err != nil {
		t.Fatal(err)
	}
	var rows []Row
	for _, s := range l.Settings() {
		row, err := b.Run(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// TestRows compares the results with the known size of raw frames: 9 bytes per point at 11 bits, 6 at 8, and a header
// of 32.
func TestRows(t *testing.T) {
	rows := run(t, ladder(), 1000)
	find := func(match func(r *Row) bool) *Row {
		i := slices.IndexFunc(rows, func(r Row) bool { return match(&r) })
		if i < 0 {
			t.Fatal("missing row")
		}
		return &rows[i]
	}
	exact := find(func(r *Row) bool { return r.Name == "raw" && r.Bits == 11 && r.Share == 100 && r.ColorBits == 8 })
	if exact.Points != 1000 || exact.Bytes != 9032 || exact.BitsPerPoint != 72.26 || exact.Color != nil ||
		exact.PointToPoint == nil {
		t.Errorf("got %+v", exact)
	}
	// The error is at most half a step of 1.88 m / 2047; the mean square is a quarter of the step's square.
	step := float64(codectest.Box.Max[1]-codectest.Box.Min[1]) / 2047
	if want := 10 * math.Log10(3*1.88*1.88/(step*step/4)); math.Abs(*exact.PointToPoint-want) > 0.5 {
		t.Errorf("D1 is %.2f dB, want about %.2f", *exact.PointToPoint, want)
	}
	coarse := find(func(r *Row) bool { return r.Name == "raw" && r.Bits == 8 && r.Share == 100 && r.ColorBits == 8 })
	if drop := *exact.PointToPoint - *coarse.PointToPoint; math.Abs(drop-18.1) > 0.7 || coarse.Bytes != 6032 {
		t.Errorf("three bits fewer: %.2f dB and %d bytes, want 18.1 and 6032", drop, coarse.Bytes)
	}
	half := find(func(r *Row) bool { return r.Name == "raw" && r.Bits == 11 && r.Share == 50 && r.ColorBits == 8 })
	if half.Points != 500 || *half.PointToPoint > *exact.PointToPoint-20 {
		t.Errorf("got %+v with half the points, want much larger errors of geometry", half)
	}
	cut := find(func(r *Row) bool { return r.Name == "raw" && r.Bits == 11 && r.Share == 100 && r.ColorBits == 4 })
	// Colours in the middle of steps of 16 have a variance of 16²/12 in each channel.
	if want := 10 * math.Log10(255*255/(16*16/12.)); cut.Luma == nil || *cut.Luma < want || *cut.Luma > want+4 {
		t.Errorf("luma of 4 bits is %v dB, want a little above %.2f", cut.Luma, want)
	}
	good := find(func(r *Row) bool { return r.Name == "lossy" && r.Colors && r.ColorQuality == 90 && r.Share == 100 })
	poor := find(func(r *Row) bool { return r.Name == "lossy" && r.Colors && r.ColorQuality == 50 && r.Share == 100 })
	if *good.Color <= *poor.Color {
		t.Errorf("colours have %.2f dB at quality 90 and %.2f at 50", *good.Color, *poor.Color)
	}
	if plain := find(func(r *Row) bool { return !r.Colors }); plain.Color != nil || plain.Luma != nil ||
		plain.Encode.Least < 0 || plain.Encode.Median < plain.Encode.Least {
		t.Errorf("got %+v for a frame without colours", plain)
	}
	if _, err := json.Marshal(rows); err != nil {
		t.Error(err)
	}
}

func TestTable(t *testing.T) {
	rows := run(t, ladder(), 100)
	var out bytes.Buffer
	if err := Table(&out, rows); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(rows)+2 {
		t.Fatalf("got %d lines of %d rows", len(lines), len(rows))
	}
	for _, line := range lines {
		if strings.Count(line, "|") != strings.Count(lines[0], "|") || len([]rune(line)) != len([]rune(lines[0])) {
			t.Errorf("unexpected line %q", line)
		}
	}
	for _, word := range []string{"exact", "4 bits", "quality 90", "none", "100 (100 %)", "50 (50 %)"} {
		if !strings.Contains(out.String(), word) {
			t.Errorf("no %q in the table", word)
		}
	}
}

// TestPlots draws the plots of all available rows: each plot is well-formed, with every curve inside of its panel.
func TestPlots(t *testing.T) {
	l := ladder()
	l.Speeds = []int{0, 5, 9}
	l.ColorQuality = []int{50, codec.DefaultColorQuality}
	rows := run(t, l, 100)
	drawn := 0
	for _, p := range Plots() {
		var out bytes.Buffer
		ok, err := p.Draw(&out, rows)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			if out.Len() > 0 {
				t.Errorf("%s: a plot without rows was written", p.Name)
			}
			continue
		}
		drawn++
		text := out.String()
		for d := xml.NewDecoder(&out); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", p.Name, err)
			}
		}
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Count(text, "<path") < 2 {
			t.Errorf("%s: got\n%s", p.Name, text)
		}
		for _, a := range append(p.panels, p.x) {
			if !strings.Contains(text, strings.ReplaceAll(a.label, "'", "&#39;")) {
				t.Errorf("%s: no axis %q", p.Name, a.label)
			}
		}
	}
	if drawn < 5 {
		t.Errorf("%d plots were drawn, want all plots of these rows", drawn)
	}
	for _, p := range Plots() {
		if ok, err := p.Draw(io.Discard, nil); ok || err != nil {
			t.Errorf("%s: not drawn: %v, %v", p.Name, ok, err)
		}
	}
}

func TestErrors(t *testing.T) {
	if _, err := New(nil, codectest.Box, 1); !errors.Is(err, ErrFrames) {
		t.Errorf("no frames: got %v", err)
	}
	if _, err := New([]*pointcloud.Cloud{{}}, codectest.Box, 1); !errors.Is(err, ErrFrames) {
		t.Errorf("no points: got %v", err)
	}
	b, err := New([]*pointcloud.Cloud{grey(10)}, codectest.Box, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := Setting{Codec: codec.Raw, Bits: 31, Share: 100}
	if _, err := b.Run(t.Context(), s); !errors.Is(err, codec.ErrParams) {
		t.Errorf("31 bits: got %v, want ErrParams", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.Bits = 11
	if _, err := b.Run(ended, s); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

// TestFingerprint: the fingerprint does not depend on the order of points.
func TestFingerprint(t *testing.T) {
	a, b := grey(100), new(pointcloud.Cloud)
	for i := range a.Positions {
		j := (i * 37) % a.Len()
		b.Append(a.Positions[j], a.Colors[j])
	}
	if fingerprint(a) != fingerprint(b) {
		t.Error("the order of points changes the fingerprint")
	}
	b.Colors[5][1] ^= 1
	if fingerprint(a) == fingerprint(b) {
		t.Error("a colour does not change the fingerprint")
	}
}
