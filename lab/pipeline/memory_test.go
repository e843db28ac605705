package pipeline

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/exposition"
)

// TestCollections reads the Go runtime's lines within a program's output, written in pieces of any size.
func TestCollections(t *testing.T) {
	const said = `time=2026 level=INFO msg=joined
` + `gc 1 @0.012s 2%: 0.026+0.39+0.10 ms clock, 0.21+0.88/0.52/0+0.83 ms cpu, ` +
		`4->5->2 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 8 P
alice/body  30.0 fps 10->20->30 MB
` + `gc 2 @120.1s 0%: 0.03+0.4+0.1 ms clock, 0.2+0.9/0.5/0+0.8 ms cpu, ` +
		`30->31->17 MB, 34 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)
gc 3 @`
	for _, length := range []int{1, 7, 100, len(said)} {
		c := &collections{begun: time.Now()}
		for piece := range slices.Chunk([]byte(said), length) {
			if n, err := c.Write(piece); n != len(piece) || err != nil {
				t.Fatalf("got %d, %v", n, err)
			}
		}
		got := c.all()
		if len(got) != 2 || got[0].bytes != 2<<20 || got[1].bytes != 17<<20 || got[0].at < 0 || got[1].at < got[0].at {
			t.Errorf("in pieces of %d: got %v, want 2 and 17 MB", length, got)
		}
	}
	c := &collections{begun: time.Now()}
	for range 100 {
		_, _ = c.Write([]byte(strings.Repeat("x", 4096)))
	}
	if len(c.rest) > maxSaid {
		t.Errorf("%d bytes of a line without end are kept", len(c.rest))
	}
}

func FuzzCollections(f *testing.F) {
	f.Add([]byte("gc 1 @0.012s 2%: 1+2 ms clock, 4->5->2 MB, 4 MB goal\n"),
		[]byte("gc 2 @1s 0%: 99->99->99999999999999999999 MB\n"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		c := &collections{begun: time.Now()}
		_, _ = c.Write(first)
		_, _ = c.Write(second)
		for _, s := range c.all() {
			if s.bytes < 0 {
				t.Errorf("a heap of %g bytes", s.bytes)
			}
		}
	})
}

// TestQuarters: of 100 seconds, the first 20 do not count, so that quarters are 20 s long.
func TestQuarters(t *testing.T) {
	var samples []sample
	for second := range 110 {
		samples = append(samples, sample{time.Duration(second) * time.Second, float64(second)})
	}
	first, last := quarters(samples, 100*time.Second)
	if len(first) != 20 || first[0] != 20 || len(last) != 21 || last[0] != 80 || last[20] != 100 {
		t.Errorf("got %v and %v", first, last)
	}
	if first, last = quarters(samples, time.Hour); len(first) != 50 || first[0] != 60 || len(last) != 0 {
		t.Errorf("got %v and %v of an hour, want the samples after the first minute", first, last)
	}
}

// TestGrowth: growing memory misses its targets, temporary memory does not, and unknown memory meets no target.
func TestGrowth(t *testing.T) {
	every := func(size func(second int) float64) (samples []sample) {
		for second := range 601 {
			samples = append(samples, sample{time.Duration(second) * time.Second, size(second) * (1 << 20)})
		}
		return samples
	}
	flat := every(func(second int) float64 { return float64(100 + second%120) })
	growing := every(func(second int) float64 { return float64(100 + second) })
	for _, test := range []struct {
		name            string
		samples         []sample
		whole           time.Duration
		missed, skipped int
	}{
		{"flat", flat, 10 * time.Minute, 0, 0},
		{"growing", growing, 10 * time.Minute, 2, 0},
		// Resident memory does not show which part is garbage; the live heap after collections does.
		{"growing for a short time", growing, 100 * time.Second, 1, 0},
		{"unknown", nil, 10 * time.Minute, 0, 2},
	} {
		a := &actor{name: "server", resident: test.samples, heap: func() []sample { return test.samples }}
		lines := a.lines(test.whole)
		skipped := 0
		for _, l := range lines {
			if l.Skipped != "" {
				skipped++
			}
		}
		if n := len(missed(lines)); n != test.missed || skipped != test.skipped {
			t.Errorf("%s: %d missed and %d skipped of %v", test.name, n, skipped, lines)
		}
	}
}

// TestServerHeap: there is one sample for each garbage collection, independently of the number of scrapes.
func TestServerHeap(t *testing.T) {
	s := new(stage)
	for i, scraped := range []string{
		"go_memstats_last_gc_time_seconds 100\ngo_memstats_next_gc_bytes 4e6\n",
		"go_memstats_last_gc_time_seconds 100\ngo_memstats_next_gc_bytes 4e6\n",
		"go_memstats_last_gc_time_seconds 105.5\ngo_memstats_next_gc_bytes 6e6\n",
	} {
		series, err := exposition.Parse(strings.NewReader(scraped))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.collect(time.Duration(i)*time.Second, series); err != nil {
			t.Error(err)
		}
	}
	if want := []sample{{0, 2e6}, {2 * time.Second, 3e6}}; !slices.Equal(s.heap, want) {
		t.Errorf("got %v, want %v", s.heap, want)
	}
	if err := s.collect(0, exposition.Series{}); err == nil {
		t.Error("metrics without memory are accepted")
	}
}
