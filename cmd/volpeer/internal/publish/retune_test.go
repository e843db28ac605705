package publish

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/production"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/watch"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// scales records the sizes of the frames that are handed over and sent.
type scales struct {
	produce.Sink
	mu sync.Mutex
	// sizes has the size of the newest frame of each quality, sent the number of consecutive sent frames.
	sizes, sent [2]int
}

func (s *scales) WriteFrame(tile int, quality volumetric.Quality, f client.OutgoingFrame) (bool, error) {
	wanted := s.Wanted(tile, quality)
	s.mu.Lock()
	s.sizes[quality] = len(f.Data)
	s.sent[quality]++
	if !wanted {
		s.sent[quality] = 0
	}
	s.mu.Unlock()
	return s.Sink.WriteFrame(tile, quality, f)
}

// settled reports whether the higher quality has been sent for a while in frames of no more than that size.
func (s *scales) settled(most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sizes[1] > 0 && s.sizes[1] <= most && s.sent[1] >= 20
}

// TestQualitiesFollowTheUplink publishes with bitrates that the uplink cannot carry, to a watcher of the higher
// quality: its frames become smaller instead of being omitted, and the lower quality is unchanged.
func TestQualitiesFollowTheUplink(t *testing.T) {
	v := openVenue(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := slog.New(slog.DiscardHandler)
	p := &options{
		Options: production.Options{
			Source: "synthetic", Capture: capture.Options{FPS: 30, Points: 3000}, Tiles: 1,
			Qualities: "low=400kbit,high=3Mbit",
			Codec:     "raw", Name: "body", Mode: string(volumetric.ModeAlternatives), Within: time.Hour,
		},
		room: v.enter("alice"), most: 1.5e6,
	}
	settings, err := p.check(log)
	if err != nil {
		t.Fatal(err)
	}
	source, err := capture.Open(p.Source, p.Capture)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	b, err := p.prepare(ctx, settings, source)
	if err != nil {
		t.Fatal(err)
	}
	defer b.producer.Close()
	if high := b.description.Qualities[1].Bitrate; high > 3e6 || high < 2.5e6 {
		t.Errorf("the high quality is announced with %v, want just under 3 Mbit/s", high)
	}
	b.console, b.log = io.Discard, log
	session, err := p.enter(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	weighed := &scales{Sink: b.sink}
	b.sink = weighed
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		if err := b.run(ctx, session, 0); err != nil {
			t.Error(err)
		}
	})
	watching := &watch.Options{Room: v.enter("bob"), Seconds: 300, Quality: "high"}
	running.Go(func() {
		if err := watching.Run(ctx, nil, io.Discard, io.Discard, log); err != nil {
			t.Error(err)
		}
	})
	// 3 Mbit/s are frames of 12,500 bytes. 75 % of 1.5 Mbit/s can be used, and 0.4 Mbit/s belong to the lower quality.
	const most int = (1_500_000*75/100 - 400_000) / 8 / 30
	wait.Until(t, "smaller frames of the high quality that are sent", func() bool { return weighed.settled(most) })
	weighed.mu.Lock()
	defer weighed.mu.Unlock()
	if low := weighed.sizes[0]; low > 0 && low < 400_000*85/100/8/30 {
		t.Errorf("frames of the low quality have %d bytes, want it to stay at 400 kbit/s", low)
	}
}
