package client

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestProgramsStampsOfFrames records the times of decoding and display by a shifted clock.
func TestProgramsStampsOfFrames(t *testing.T) {
	m := newRig(t, Config{FrameTimes: true, Receive: true, ClockShift: 30 * time.Millisecond})
	track := volumetric.TrackRef{TileRef: volumetric.TileRef{
		PublicationRef: volumetric.PublicationRef{Participant: "grace", Publication: "body"},
	}}
	part := frametimes.Record{Track: track, Frame: 7}
	part.SetLocal(frametimes.FirstReceived, epoch)
	m.tracing.Received(&part, epoch)
	m.session.FrameDecoded(&Frame{Track: track, Number: 7}, epoch, epoch.Add(time.Millisecond))
	m.session.FrameShown(track, 7, epoch, epoch.Add(2*time.Millisecond))
	m.tracing.Step(frametimes.Clock{Source: frametimes.SourceSystem}, 0, epoch.Add(time.Minute))
	select {
	case r := <-m.session.FrameTimes():
		for stamp, want := range map[frametimes.Stamp]time.Duration{
			frametimes.DecodingBegan: 30 * time.Millisecond, frametimes.Decoded: 31 * time.Millisecond,
			frametimes.RenderBegan: 30 * time.Millisecond, frametimes.Shown: 32 * time.Millisecond,
		} {
			if got := r.Local(stamp).Sub(epoch); got != want {
				t.Errorf("stamp %v is %v after the beginning, expected %v", stamp, got, want)
			}
		}
	default:
		t.Fatal("there is no record of the frame")
	}
}

// TestClockSources: on one host the system's clock serves both sides, unless it is shifted.
func TestClockSources(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   frametimes.Source
	}{
		{Config{URL: "ws://192.0.2.1"}, frametimes.SourceEstimated},
		{Config{URL: "ws://127.0.0.1", ClockShift: time.Minute}, frametimes.SourceEstimated},
		{Config{URL: "ws://localhost"}, frametimes.SourceSystem},
		{Config{URL: "ws://192.0.2.1", ClockSource: frametimes.SourcePTP}, frametimes.SourcePTP},
	} {
		clock := c.config.clock()
		if got := clock.Source(); got != c.want {
			t.Errorf("%s, moved by %v: the source is %q, expected %q", c.config.URL, c.config.ClockShift, got, c.want)
		}
	}
}
