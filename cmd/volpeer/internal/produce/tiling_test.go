package produce

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// labelledSource is a fakeSource whose points are seen by cameras 0, 1 or both, and have labels 1 to 3.
type labelledSource struct{ *fakeSource }

// labelOf returns a label that is independent of the order of points.
func labelOf(i int) uint16 { return 1 + uint16(uint32(i)*2654435761>>16%3) }

func (s labelledSource) Read(ctx context.Context, frame *capture.Frame) error {
	if err := s.fakeSource.Read(ctx, frame); err != nil {
		return err
	}
	for i := range frame.Cloud.Len() {
		frame.Cloud.Sources = append(frame.Cloud.Sources, labelOf(i))
		frame.Cloud.Labels = append(frame.Cloud.Labels, labelOf(i))
	}
	return nil
}

// TestEveryTiling checks for every tiling that each tile is a frame, even without points, and that all tiles together
// are the object.
func TestEveryTiling(t *testing.T) {
	for _, spec := range []pointcloud.TilingSpec{
		{By: "cameras"}, {By: "octants"}, {By: "kmeans", Tiles: 7},
		{By: "labels", Parts: []pointcloud.Part{{Name: "a", Labels: []uint16{1}},
			{Name: "b", Labels: []uint16{9}}}},
	} {
		const points = 900
		source, sink := labelledSource{newFakeSource(points)}, newFakeSink()
		c := config(t, 1, "low,high")
		c.Tiling = spec
		p, err := New(source, c)
		if err != nil {
			t.Fatal(err)
		}
		source.steps <- nil
		tiles, qualities, err := p.Measure(t.Context())
		if err != nil || len(qualities) != 2 || qualities[1].Bitrate <= qualities[0].Bitrate {
			t.Fatalf("%s: qualities %v, error %v", spec.By, qualities, err)
		}
		source.steps <- nil
		var frame capture.Frame
		if err := source.Read(t.Context(), &frame); err != nil {
			t.Fatal(err)
		}
		outcome := p.encoder.encode(&frame, time.Time{}, 0, sink)
		p.Close()
		if outcome.err != nil || outcome.sent != 2*len(tiles) {
			t.Errorf("%s: %d frames sent of %d tiles, error %v", spec.By, outcome.sent, len(tiles), outcome.err)
		}
		seen, empty := make(map[int]bool), 0
		for tile := range tiles {
			cloud := &sink.frames[[2]int{tile, 1}][0].cloud
			if cloud.Len() == 0 {
				empty++
			}
			for _, id := range ids(cloud) {
				if seen[id] {
					t.Fatalf("%s: point %d is in two tiles", spec.By, id)
				}
				seen[id] = true
			}
		}
		if len(seen) != points {
			t.Errorf("%s: tiles have %d points together, want %d", spec.By, len(seen), points)
		}
		if want := map[string]int{"cameras": 12, "labels": 1}[spec.By]; empty != want {
			t.Errorf("%s: %d tiles are empty, want %d", spec.By, empty, want)
		}
	}
}

// TestTilingThatTheSourceDoesNotAllow checks that such a tiling is an error before anything is published.
func TestTilingThatTheSourceDoesNotAllow(t *testing.T) {
	source := newFakeSource(10)
	c := config(t, 1, "high")
	c.Tiling = pointcloud.TilingSpec{By: "cameras"}
	p, err := New(source, c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	source.steps <- nil
	if _, _, err := p.Measure(t.Context()); !errors.Is(err, pointcloud.ErrTiling) {
		t.Errorf("got %v, want ErrTiling", err)
	}
}

// TestImportance checks that qualities have as many points as evenly sampled, but more points of higher weight.
func TestImportance(t *testing.T) {
	source, sink := labelledSource{newFakeSource(4000)}, newFakeSink()
	c := config(t, 1, "low,high")
	c.Importance = &pointcloud.ImportanceConfig{Cell: 0.1, Labels: map[uint16]float64{2: 3}}
	p, err := New(source, c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	source.steps <- nil
	var frame capture.Frame
	if err := source.Read(t.Context(), &frame); err != nil {
		t.Fatal(err)
	}
	if outcome := p.encoder.encode(&frame, time.Time{}, 0, sink); outcome.err != nil {
		t.Fatal(outcome.err)
	}
	var counts [3]int
	for _, id := range ids(&sink.frames[[2]int{0, 0}][0].cloud) {
		counts[labelOf(id)-1]++
	}
	// Three fifths of 1,000 points have the label that weighs three times as much as the two others.
	if counts[1] < 570 || counts[1] > 630 {
		t.Errorf("a quarter of the points has %v by label, want about 200, 600, 200", counts)
	}
	if all := sink.frames[[2]int{0, 1}][0].cloud.Len(); counts[0]+counts[1]+counts[2] != 1000 || all != 4000 {
		t.Errorf("the qualities have %v and %d points, want 1000 and 4000", counts, all)
	}
	c.Mode = volumetric.ModeDescriptions
	if _, err := New(source, c); !errors.Is(err, ErrConfig) {
		t.Errorf("descriptions by importance: got %v, want ErrConfig", err)
	}
}
