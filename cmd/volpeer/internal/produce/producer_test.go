package produce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

var box = volumetric.BoundingBox{Min: [3]float32{-1, 0, -1}, Max: [3]float32{1, 2, 1}}

func levels(t *testing.T, text string) []ladder.Level {
	t.Helper()
	l, err := ladder.ParseLevels(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func config(t *testing.T, tiles int, qualities string) Config {
	return Config{Tiling: pointcloud.TilingSpec{Tiles: tiles}, Levels: levels(t, qualities),
		Mode: volumetric.ModeAlternatives, Codec: codec.Raw, Box: box, Workers: 3, Limit: time.Hour}
}

// produced runs a producer over the given number of frames, one after the other.
func produced(t *testing.T, source *fakeSource, c Config, frames int) (*fakeSink, Counts) {
	t.Helper()
	p, err := New(source, c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sink := newFakeSink()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx, sink) }()
	var counts Counts
	for counts.Published < int64(frames) {
		published := counts.Published
		source.steps <- nil
		for range len(p.encoder.cutter.tiles) * len(c.Levels) {
			<-sink.wrote
		}
		gather(p, &counts, func() bool { return counts.Published == published })
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return sink, counts
}

// gather adds up counts while a condition holds.
func gather(p *Producer, counts *Counts, while func() bool) {
	for while() {
		counts.Add(p.Counts())
		time.Sleep(100 * time.Microsecond)
	}
}

// ids returns the numbers of the points in a cloud.
func ids(c *pointcloud.Cloud) []int {
	var list []int
	for _, color := range c.Colors {
		list = append(list, int(color[0])|int(color[1])<<8)
	}
	return list
}

func TestAlternatives(t *testing.T) {
	const points, frames = 4000, 3
	sink, counts := produced(t, newFakeSource(points), config(t, 4, "low,some=2000:12,high"), frames)
	if counts.Captured != frames || counts.Published != frames || counts.Dropped.All() != 0 ||
		counts.Sent != frames*12 || counts.Unsent != 0 || counts.Encode.Count() != frames {
		t.Errorf("got counts %+v", counts)
	}
	tiling, _ := pointcloud.NewTiling(4, box)
	for q, want := range []int{1000, 2000, 4000} {
		seen := make(map[int]bool)
		for tile := range 4 {
			list := sink.frames[[2]int{tile, q}]
			if len(list) != frames {
				t.Fatalf("tile %d quality %d: expected %d frames, got %d", tile, q, frames, len(list))
			}
			for i, r := range list {
				if r.number != uint32(i) || !r.capture.Equal(time.Unix(int64(i+1), 0)) {
					t.Errorf("frame %d has number %d and was captured at %v", i, r.number, r.capture)
				}
			}
			for _, id := range ids(&list[0].cloud) {
				if seen[id] {
					t.Errorf("quality %d: point %d is there twice", q, id)
				}
				seen[id] = true
			}
			for _, p := range list[0].cloud.Positions {
				// Quantisation may move a point across the border by half a step of 2 m / 511.
				near := min(abs(p[0]), abs(p[2])) < 0.002
				if tiling.Index(p) != tile && !near {
					t.Errorf("quality %d: point %v is in tile %d, expected %d", q, p, tile, tiling.Index(p))
				}
			}
		}
		if off := len(seen) - want; off < -2 || off > 2 {
			t.Errorf("quality %d has %d points, expected %d, rounded in each tile", q, len(seen), want)
		}
	}
}

func abs(v float32) float32 { return max(v, -v) }

// TestDescriptions checks that the qualities of a tile have no point in common, and together have all points.
func TestDescriptions(t *testing.T) {
	for _, qualities := range []string{"low,mid,high", "a=1000,b=1000,c=2000", "a=25%,b=75%"} {
		c := config(t, 2, qualities)
		c.Mode = volumetric.ModeDescriptions
		sink, _ := produced(t, newFakeSource(4000), c, 1)
		seen := make(map[int]int)
		for key, list := range sink.frames {
			for _, id := range ids(&list[0].cloud) {
				if other, twice := seen[id]; twice {
					t.Errorf("%s: point %d is in qualities %d and %d", qualities, id, other, key[1])
				}
				seen[id] = key[1]
			}
		}
		if len(seen) != 4000 {
			t.Errorf("%s: the descriptions have %d points together, expected 4000", qualities, len(seen))
		}
	}
	c := config(t, 2, "a=v10mm")
	c.Mode = volumetric.ModeDescriptions
	if _, err := New(newFakeSource(1), c); !errors.Is(err, ErrConfig) {
		t.Errorf("expected an error of descriptions made of voxels, got %v", err)
	}
}

func TestVoxels(t *testing.T) {
	sink, _ := produced(t, newFakeSource(4000), config(t, 1, "a=v500mm:16,b=v1000mm:16"), 1)
	// The box of 2 m is 64 voxels of 0.5 m, and 8 of 1 m.
	for q, want := range []int{64, 8} {
		if got := sink.frames[[2]int{0, q}][0].cloud.Len(); got != want {
			t.Errorf("quality %d has %d points, expected %d", q, got, want)
		}
	}
}

// TestSparse checks that tiles without points are empty frames, and that tiles with few points keep at least one.
func TestSparse(t *testing.T) {
	sink, counts := produced(t, newFakeSource(5), config(t, 15, "few=1%,high"), 1)
	if counts.Sent != 30 {
		t.Errorf("sent %d tiles, expected 30", counts.Sent)
	}
	for tile := range 15 {
		few, all := sink.frames[[2]int{tile, 0}][0].cloud.Len(), sink.frames[[2]int{tile, 1}][0].cloud.Len()
		if few != min(1, all) {
			t.Errorf("tile %d has %d points of %d, expected %d", tile, few, all, min(1, all))
		}
	}
}

// TestNewestWins keeps the first frame in the encoder while more are captured: only the last of them is encoded, with
// the next number.
func TestNewestWins(t *testing.T) {
	source := newFakeSource(100)
	p, err := New(source, Config{Tiling: pointcloud.TilingSpec{Tiles: 1}, Levels: levels(t, "high"),
		Mode: volumetric.ModeAlternatives, Codec: codec.Raw, Box: box, Workers: 1, Limit: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sink := newFakeSink()
	sink.enter, sink.leave = make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx, sink) }()
	source.steps <- nil
	<-sink.enter
	const behind = 5
	for range behind {
		source.steps <- nil
	}
	var counts Counts
	gather(p, &counts, func() bool { return counts.Captured < 1+behind })
	sink.leave <- struct{}{}
	<-sink.enter
	sink.leave <- struct{}{}
	gather(p, &counts, func() bool { return counts.Published < 2 })
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if counts.Captured != 6 || counts.Published != 2 || counts.Dropped != (Drops{Replaced: 4}) {
		t.Errorf("expected 6 captured, 2 published, 4 dropped, got %+v", counts)
	}
	list := sink.frames[[2]int{0, 0}]
	if len(list) != 2 || list[1].number != 1 || !list[1].capture.Equal(time.Unix(6, 0)) {
		t.Errorf("expected the sixth capture as frame 1, got frame %d of %v", list[1].number, list[1].capture)
	}
}

// TestUnwantedTilesAreNotEncoded checks that unwanted tiles are not encoded, and that the next capture after a tile is
// wanted includes the tile, with the next number.
func TestUnwantedTilesAreNotEncoded(t *testing.T) {
	source, sink := newFakeSource(100), newFakeSink()
	p, err := New(source, config(t, 2, "low,high"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx, sink) }()
	capture := func() Counts {
		t.Helper()
		var counts Counts
		source.steps <- nil
		gather(p, &counts, func() bool { return counts.Published+counts.Idle == 0 })
		return counts
	}
	all := capture()
	if all.Sent != 4 || all.Paused != 0 || all.Saved != 0 {
		t.Errorf("got %+v, want 4 tiles sent", all)
	}
	sink.set(map[[2]int]bool{{0, 0}: true, {0, 1}: true}, map[[2]int]bool{{1, 1}: true})
	if some := capture(); some.Sent != 1 || some.Paused != 2 || some.GivenUp != 1 ||
		some.Saved+some.Bytes != all.Bytes || some.Points >= all.Points/2 {
		t.Errorf("got %+v, want 1 tile sent, 2 paused, 1 given up, of %d bytes", some, all.Bytes)
	}
	sink.set(map[[2]int]bool{{0, 0}: true, {0, 1}: true, {1, 0}: true, {1, 1}: true}, nil)
	if none := capture(); none.Idle != 1 || none.Published != 0 || none.Paused != 4 || none.Saved != all.Bytes ||
		none.Encode.Count() != 0 {
		t.Errorf("got %+v, want nothing but an idle capture", none)
	}
	sink.set(nil, nil)
	capture()
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for key, want := range map[[2]int][]uint32{{0, 0}: {0, 2}, {1, 0}: {0, 1, 2}, {1, 1}: {0, 2}} {
		var numbers []uint32
		for _, r := range sink.frames[key] {
			numbers = append(numbers, r.number)
		}
		if !slices.Equal(numbers, want) {
			t.Errorf("tile %d at quality %d has frames %v, want %v", key[0], key[1], numbers, want)
		}
	}
}

// refusing reports every tile as wanted. The fakeSink then refuses unwanted tiles.
type refusing struct{ *fakeSink }

func (refusing) Wanted(int, volumetric.Quality) bool { return true }

// TestUnwantedTilesAreNotSent checks that a tile that becomes unwanted during encoding counts as paused, or as given
// up, and that a capture of which nothing is taken is not published.
func TestUnwantedTilesAreNotSent(t *testing.T) {
	p, err := New(newFakeSource(100), config(t, 2, "full=100%,half=50%"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	source := newFakeSource(100)
	source.steps <- nil
	var frame capture.Frame
	if err := source.Read(t.Context(), &frame); err != nil {
		t.Fatal(err)
	}
	sink := refusing{newFakeSink()}
	sink.set(map[[2]int]bool{{0, 0}: true, {0, 1}: true}, map[[2]int]bool{{1, 1}: true})
	if o := p.encoder.encode(&frame, time.Time{}, 0, sink); o.err != nil || o.sent != 1 || o.paused != 2 ||
		o.gaveUp != 1 || o.saved != 0 || o.bytes == 0 {
		t.Errorf("got %+v, want 1 tile sent, 2 paused and 1 given up, all encoded", o)
	}
	sink.set(map[[2]int]bool{{0, 0}: true, {0, 1}: true, {1, 0}: true, {1, 1}: true}, nil)
	if o := p.encoder.encode(&frame, time.Time{}, 1, sink); o.err != nil || o.sent != 0 || o.paused != 4 ||
		o.bytes != 0 {
		t.Errorf("got %+v, want all paused", o)
	}
}

// TestTilesWantedAgainAreEncodedFirst checks the order of the jobs, also in the frames afterwards.
func TestTilesWantedAgainAreEncodedFirst(t *testing.T) {
	c := config(t, 4, "full=100%,half=50%")
	c.Workers = 1
	p, err := New(newFakeSource(100), c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	source := newFakeSource(100)
	sink := newOrderedSink()
	low := [2]int{2, 0}
	usual := [][2]int{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {0, 0}, {1, 0}, {2, 0}, {3, 0}}
	without := slices.DeleteFunc(slices.Clone(usual), func(key [2]int) bool { return key == low })
	for number, test := range []struct {
		unwanted map[[2]int]bool
		want     [][2]int
	}{
		{nil, usual},
		{map[[2]int]bool{low: true}, without},
		{nil, append([][2]int{low}, without...)},
		{nil, usual},
	} {
		sink.set(test.unwanted, nil)
		sink.order = nil
		source.steps <- nil
		var frame capture.Frame
		if err := source.Read(t.Context(), &frame); err != nil {
			t.Fatal(err)
		}
		if outcome := p.encoder.encode(&frame, time.Time{}, uint32(number), sink); outcome.err != nil {
			t.Fatal(outcome.err)
		}
		if !slices.Equal(sink.order, test.want) {
			t.Errorf("frame %d: encoded %v, want %v", number, sink.order, test.want)
		}
	}
}

// orderedSink records the order of tiles and qualities.
type orderedSink struct {
	*fakeSink
	order [][2]int
}

func newOrderedSink() *orderedSink { return &orderedSink{fakeSink: newFakeSink()} }

func (s *orderedSink) WriteFrame(tile int, q volumetric.Quality, f client.OutgoingFrame) (bool, error) {
	s.order = append(s.order, [2]int{tile, int(q)})
	return s.fakeSink.WriteFrame(tile, q, f)
}

func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		name   string
		refuse error
		steps  func(chan error)
		want   error
	}{
		{"sink", broken, func(s chan error) { s <- nil }, broken},
		{"source ends", nil, func(s chan error) { s <- nil; s <- capture.ErrClosed }, capture.ErrClosed},
		{"source fails for good", nil, func(s chan error) {
			for range maxFailures {
				s <- broken
			}
		}, broken},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			source, sink := newFakeSource(10), newFakeSink()
			sink.refuse = test.refuse
			p, err := New(source, config(t, 1, "high"))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			test.steps(source.steps)
			if err := p.Run(t.Context(), sink); !errors.Is(err, test.want) {
				t.Errorf("expected %v, got %v", test.want, err)
			}
		})
	}
}

// TestHiccups checks that single failed captures and a lost connection do not end the production.
func TestHiccups(t *testing.T) {
	source, sink := newFakeSource(10), newFakeSink()
	sink.refuse = fmt.Errorf("line: %w", client.ErrNotConnected)
	p, err := New(source, config(t, 1, "high"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx, sink) }()
	var counts Counts
	for range 40 {
		published := counts.Published
		source.steps <- errors.New("hiccup")
		source.steps <- nil
		gather(p, &counts, func() bool { return counts.Published == published })
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if counts.Captured != 80 || counts.Dropped != (Drops{Failed: 40}) || counts.Published != 40 ||
		counts.Unsent != 40 || counts.Sent != 0 {
		t.Errorf("expected 80 captured, 40 dropped, 40 published and unsent, got %+v", counts)
	}
}

func TestMeasure(t *testing.T) {
	source := newFakeSource(4000)
	p, err := New(source, config(t, 4, "low,high"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	source.steps <- nil
	tiles, qualities, err := p.Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(tiles) != 4 || len(qualities) != 2 || qualities[0].Name != "low" || qualities[1].Name != "high" {
		t.Fatalf("got tiles %v and qualities %v", tiles, qualities)
	}
	// Raw has 9 bytes per point at 9 and at 11 bits, and 1,000 points in a tile are 9 packets: 9000 + 32 + 12 + 8 × 16
	// bytes, 30 times per second.
	if got, want := float64(qualities[1].Bitrate), 8*30*(9000+32+12+8*16.); got < want*0.99 || got > want*1.01 {
		t.Errorf("expected about %g bit/s of one tile at high quality, got %v", want, qualities[1].Bitrate)
	}
	if largest := p.encoder.jobs[:4]; !slices.ContainsFunc(largest, func(j job) bool { return j.quality == 1 }) ||
		largest[0].quality != 1 {
		t.Errorf("expected to begin with the high quality, got %v", p.encoder.jobs)
	}
}

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Tiling.Tiles = 3 }, "3 tiles"},
		{func(c *Config) { c.Levels = nil }, "0 qualities"},
	} {
		c := config(t, 1, "high")
		test.change(&c)
		if _, err := New(newFakeSource(1), c); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("expected an error with %q, got %v", test.want, err)
		}
	}
}
