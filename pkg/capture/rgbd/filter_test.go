package rgbd

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// scene is a depth image drawn with letters, one depth each.
type scene struct {
	rows   []string
	depths map[rune]uint16
}

func (s scene) workspace() (*workspace, Intrinsics) {
	in := Intrinsics{Width: len([]rune(s.rows[0])), Height: len(s.rows), FX: 1, FY: 1, DepthUnit: 0.001}
	w := newWorkspace(in)
	for y, row := range s.rows {
		for x, letter := range []rune(row) {
			w.depth[y*w.width+x] = s.depths[letter]
		}
	}
	return w, in
}

// kept draws what is left: the letters of the pixels that kept their depth.
func (s scene) kept(w *workspace) string {
	var out strings.Builder
	for y, row := range s.rows {
		for x, letter := range []rune(row) {
			if w.depth[y*w.width+x] == 0 {
				letter = '.'
			}
			out.WriteRune(letter)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func TestFilter(t *testing.T) {
	// p: person at 1 m, whose surface runs to q; b: wall at 2 m; m: pixels that mix both; n: noise in front.
	depths := map[rune]uint16{'p': 1000, 'q': 1015, 'b': 2000, 'm': 1400, 'n': 700, 'i': 1700}
	full := scene{depths: depths, rows: []string{
		"bbbbbbbbbbbb",
		"bbbbbbbbbbbb",
		"bbmppppmbbnb",
		"bbmpqqpmbbbb",
		"bbmpqqpmibbb",
		"bbmppppmbbbb",
		"bbbbbbbbbbbb",
		"bbbbbbbbbbbb",
	}}
	tests := []struct {
		name   string
		config Config
		near   float64
		kept   []string
	}{
		{name: "everything", config: Config{EdgeRatio: 0.02}, kept: full.rows},
		{name: "depth range", config: Config{EdgeRatio: 0.02, Near: 1, Far: 1.015}, kept: []string{
			"............", "............", "...pppp.....", "...pqqp.....", "...pqqp.....", "...pppp.....", "............", "............",
		}},
		{name: "flying pixels", config: Config{EdgeRatio: 0.02, EdgeNeighbors: 3}, kept: []string{
			"bbbbbbbbbbbb", "bbbbbbbbbbbb", "bb.pppp.bb.b", "bb.pqqp.bbbb", "bb.pqqp..bbb", "bb.pppp.bbbb", "bbbbbbbbbbbb", "bbbbbbbbbbbb",
		}},
		{name: "blobs below 16", config: Config{EdgeRatio: 0.02, MinBlobPixels: 16}, kept: []string{
			"bbbbbbbbbbbb", "bbbbbbbbbbbb", "bb.pppp.bb.b", "bb.pqqp.bbbb", "bb.pqqp..bbb", "bb.pppp.bbbb", "bbbbbbbbbbbb", "bbbbbbbbbbbb",
		}},
		{name: "blobs below 17", config: Config{EdgeRatio: 0.02, MinBlobPixels: 17}, kept: []string{
			"bbbbbbbbbbbb", "bbbbbbbbbbbb", "bb......bb.b", "bb......bbbb", "bb.......bbb", "bb......bbbb", "bbbbbbbbbbbb", "bbbbbbbbbbbb",
		}},
		{name: "finer edges", config: Config{EdgeRatio: 0.01, MinBlobPixels: 10}, kept: []string{
			"bbbbbbbbbbbb", "bbbbbbbbbbbb", "bb.pppp.bb.b", "bb.p..p.bbbb", "bb.p..p..bbb", "bb.pppp.bbbb", "bbbbbbbbbbbb", "bbbbbbbbbbbb",
		}},
		{name: "nothing left", config: Config{EdgeRatio: 0.02, MinBlobPixels: 1000}, kept: []string{
			"............", "............", "............", "............", "............", "............", "............", "............",
		}},
	}
	for _, test := range tests {
		w, in := full.workspace()
		f, err := newFilter(in, test.config)
		if err != nil {
			t.Fatal(err)
		}
		f.apply(w)
		if got, expected := full.kept(w), strings.Join(test.kept, "\n")+"\n"; got != expected {
			t.Errorf("%s: kept\n%sexpected\n%s", test.name, got, expected)
		}
	}
}

// TestFilterKeepsDiagonalsApart holds the flood fill to neighbours by edges, and away from the image's other side.
func TestFilterKeepsDiagonalsApart(t *testing.T) {
	s := scene{depths: map[rune]uint16{'a': 1000}, rows: []string{
		"aaa...",
		"...aaa",
		"a....a",
		"a....a",
	}}
	w, in := s.workspace()
	f, err := newFilter(in, Config{EdgeRatio: 0.02, MinBlobPixels: 4})
	if err != nil {
		t.Fatal(err)
	}
	f.apply(w)
	if got, expected := s.kept(w), "......\n...aaa\n.....a\n.....a\n"; got != expected {
		t.Errorf("kept\n%sexpected\n%s", got, expected)
	}
}

func TestDepthRange(t *testing.T) {
	in := Intrinsics{Width: 4, Height: 1, FX: 1, FY: 1, DepthUnit: 0.001, Near: 0.5, Far: 1.5}
	tests := []struct {
		name      string
		in        Intrinsics
		near, far float64
		expected  [2]uint16
	}{
		{"of the intrinsics", in, 0, 0, [2]uint16{500, 1500}},
		{"of the configuration", in, 0.7, 1.2, [2]uint16{700, 1200}},
		{"one of each", in, 0, 1.2, [2]uint16{500, 1200}},
		{"rounded inwards", in, 0.7001, 1.1999, [2]uint16{701, 1199}},
		{"beyond the image's range", in, 0.1, 1000, [2]uint16{100, math.MaxUint16}},
		{"of neither", Intrinsics{Width: 1, Height: 1, FX: 1, FY: 1, DepthUnit: 0.001}, 0, 0, [2]uint16{0, math.MaxUint16}},
	}
	for _, test := range tests {
		cfg := DefaultConfig()
		cfg.Near, cfg.Far = test.near, test.far
		f, err := newFilter(test.in, cfg)
		if err != nil || f.near != test.expected[0] || f.far != test.expected[1] {
			t.Errorf("%s: %d to %d, error %v, expected %v", test.name, f.near, f.far, err, test.expected)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	in := Intrinsics{Width: 4, Height: 1, FX: 1, FY: 1, DepthUnit: 0.001, Near: 0.5, Far: 1.5}
	tests := map[string]func(*Config){
		"2 to 1.5 m":                func(c *Config) { c.Near = 2 },
		"-1 to 1.5 m":               func(c *Config) { c.Near = -1 },
		"NaN to 1.5 m":              func(c *Config) { c.Near = math.NaN() },
		"0.5 to NaN m":              func(c *Config) { c.Far = math.NaN() },
		"0.5 to +Inf m":             func(c *Config) { c.Far = math.Inf(1) },
		"edge ratio is 0":           func(c *Config) { c.EdgeRatio = 0 },
		"edge ratio is NaN":         func(c *Config) { c.EdgeRatio = math.NaN() },
		"edge neighbours are 9":     func(c *Config) { c.EdgeNeighbors = 9 },
		"smallest blob has -1":      func(c *Config) { c.MinBlobPixels = -1 },
		"edge neighbours are -1":    func(c *Config) { c.EdgeNeighbors = -1 },
		"expected more than 0 and ": func(c *Config) { c.EdgeRatio = 1.1 },
	}
	for says, change := range tests {
		cfg := DefaultConfig()
		change(&cfg)
		if _, err := newFilter(in, cfg); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, expected an error that says %q", err, says)
		}
	}
}
