package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/decode"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/render"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestClockSettings(t *testing.T) {
	for _, test := range []struct {
		source, offset string
		shift          time.Duration
		fails          bool
	}{
		{"", "", 0, false},
		{"ptp", "", 0, false},
		{"estimated", "-1.5s", -1500 * time.Millisecond, false},
		{"sundial", "", 0, true},
		{"", "soon", 0, true},
	} {
		t.Setenv(clockOffsetVariable, test.offset)
		source, shift, err := clockSettings(test.source)
		if (err != nil) != test.fails || !test.fails && (string(source) != test.source || shift != test.shift) {
			t.Errorf("%q moved by %q: got %q, %v, %v", test.source, test.offset, source, shift, err)
		}
	}
	t.Setenv(clockOffsetVariable, "")
	if _, _, err := clockSettings("sundial"); !errors.Is(err, errClock) {
		t.Errorf("error is %v, expected errClock", err)
	}
}

func TestLayersTable(t *testing.T) {
	if text := layersTable(nil) + layersTable(&summary.Layers{}); text != "" {
		t.Errorf("nothing measured gives %q", text)
	}
	var book summary.LayerBook
	r := frametimes.Record{}
	r.Clocks[frametimes.Sender] = frametimes.Clock{Source: frametimes.SourceEstimated, Offset: 50 * time.Millisecond, Bound: 300 * time.Microsecond, Uncertainty: 20 * time.Microsecond}
	r.Clocks[frametimes.Receiver] = frametimes.Clock{
		Source: frametimes.SourceSystem, Bound: 2 * time.Millisecond, Uncertainty: 1100 * time.Microsecond, Disagreement: time.Millisecond,
	}
	for s := range frametimes.Stamp(frametimes.Stamps) {
		if s != frametimes.FirstSentHardware && s != frametimes.ServerFirstInHardware && s != frametimes.ServerFirstOutHardware && s != frametimes.FirstReceivedHardware {
			r.Set(s, time.Unix(1_800_000_000, 0).Add(time.Duration(s)*time.Millisecond))
		}
	}
	layers := r.Layers()
	book.Add(&r, &layers)
	text := layersTable(book.Sum())
	for _, want := range []string{
		"layers of 1 tile frames, 1 of them with every stage", "service                   28.000", "50000 µs added, ± 300 µs at most, ± 20 µs if the path is symmetric",
		"± at most ± symmetric", "28.000     2.300       1.120\n", "7.000     0.300       0.020\n", "1.000     0.000       0.000\n",
		"clock of the receiver: system, but the estimate finds it -1000 µs off, ± 1000 µs", "stamps of network cards: absent",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	r.Times[frametimes.FirstSentKernel], r.Times[frametimes.ServerFirstInKernel], r.Times[frametimes.ServerFirstOutKernel], r.Times[frametimes.FirstReceivedKernel] = 0, 0, 0, 0
	layers = r.Layers()
	var bare summary.LayerBook
	bare.Add(&r, &layers)
	if text := layersTable(bare.Sum()); !strings.Contains(text, "stamps of kernels and network cards: absent") {
		t.Errorf("no word of absent stamps in\n%s", text)
	}
}

// stopwatch keeps what it is told.
type stopwatch struct {
	decoded []int64
	shown   map[volumetric.TrackRef][]int64
}

func (s *stopwatch) FrameDecoded(f *client.Frame, began, done time.Time) {
	if !done.Before(began) {
		s.decoded = append(s.decoded, f.Number)
	}
}

func (s *stopwatch) FrameShown(track volumetric.TrackRef, number int64, began, done time.Time) {
	if !done.Before(began) {
		s.shown[track] = append(s.shown[track], number)
	}
}

// TestShownFramesAreTimed: a picture times the tiles of the frame number that it shows, and no others.
func TestShownFramesAreTimed(t *testing.T) {
	screen, err := render.NewScreen(render.Config{Now: time.Now, Every: 1})
	if err != nil {
		t.Fatal(err)
	}
	watch := &stopwatch{shown: make(map[volumetric.TrackRef][]int64)}
	v := &viewer{timed: watch, screen: screen}
	ref := volumetric.PublicationRef{Participant: "ada", Publication: "body"}
	track := func(tile int) volumetric.TrackRef {
		return volumetric.TrackRef{TileRef: volumetric.TileRef{PublicationRef: ref, Tile: tile}}
	}
	now := time.Now()
	for number := range int64(4) {
		for tile := range 2 {
			if number == 2 && tile == 1 {
				continue
			}
			v.time(&decode.Result{Frame: client.Frame{Track: track(tile), Number: number}, Began: now, Decoded: now})
		}
	}
	screen.Show(ref.String(), render.Frame{Number: 2, Clouds: []*pointcloud.Cloud{{}}, Decoded: now})
	screen.Close()
	v.takeDrawn()
	if len(watch.decoded) != 7 {
		t.Errorf("%d frames were decoded, expected 7", len(watch.decoded))
	}
	if got := watch.shown[track(0)]; len(got) != 1 || got[0] != 2 || len(watch.shown[track(1)]) != 0 {
		t.Errorf("shown are %v, expected frame 2 of tile 0 alone", watch.shown)
	}
	if left := v.undrawn[ref]; len(left) != 2 || left[0].number != 3 {
		t.Errorf("%v may still be drawn, expected both tiles of frame 3", left)
	}
}
