package e2e

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// metric reads one series of the server's metrics.
func metric(t *testing.T, c *testbed.Conference, series string) float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	value, err := c.Metric(ctx, series)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func strict(c *config.Config) { c.Rooms.Suppression.Policy = demand.Strict }

// TestUnwantedTracksArePaused uses one receiver that takes one of 15 tiles.
func TestUnwantedTracksArePaused(t *testing.T) {
	c := startConference(t, strict, unhurried)
	load := body(15, 3)
	load.FrameBytes, load.Step = 2000, 2
	join(t, c, atLeisure(testbed.Part{Room: "room", Identity: "alice", Loads: []testbed.Load{load}}))
	bob := join(t, c, atLeisure(testbed.Part{Room: "room", Identity: "bob", Receive: true}))
	first, last := tile("alice", "body", 0), tile("alice", "body", 14)
	wait.Until(t, "frames arrive", func() bool { return frames(bob, last) > 0 })
	one := 0
	choose(t, bob,
		signal.Choice{PublicationRef: first.PublicationRef, Quality: signal.Only(volumetric.QualityOff)},
		signal.Choice{PublicationRef: first.PublicationRef, Tile: &one, Quality: signal.Only(2)},
	)
	wait.Until(t, "44 of 45 tracks are paused", func() bool { return metric(t, c, "volsfu_tracks_paused") == 44 })
	arrived := func() (bytes float64, count int) {
		return metric(t, c, `volsfu_bytes_total{direction="in",kind="media"}`), frames(bob, first)
	}
	// Packets under way have arrived after ten more frames.
	before := frames(bob, first)
	wait.Until(t, "the first tile goes on", func() bool { return frames(bob, first) > before+10 })
	bytes, count := arrived()
	wait.Until(t, "a second has passed", func() bool { return frames(bob, first) > count+30 })
	after, counted := arrived()
	// All tracks together send 15 times 3,500 bytes for each frame, of which 2,000 are wanted, plus two packets'
	// descriptors.
	if per, all := (after-bytes)/float64(counted-count), 15*3500.0; per > all/4 {
		t.Errorf("the publisher sends %.0f bytes per frame, expected a quarter of %.0f at most", per, all)
	}
	if saved := metric(t, c, "volsfu_suppressed_bytes_total"); saved <= 0 {
		t.Errorf("%g bytes were saved", saved)
	}
	choose(t, bob, signal.Choice{PublicationRef: first.PublicationRef, Quality: signal.Auto()})
	before = frames(bob, last)
	wait.Until(t, "the last tile comes again",
		func() bool { return frames(bob, last) > before && bob.Tile(last).Quality == 2 })
}

// TestSwitchingToASuppressedQuality checks that the former quality continues until the new one arrives, and that no
// frame is missing in between, including the case that the new quality has just been paused, so that its last frames
// are still present.
func TestSwitchingToASuppressedQuality(t *testing.T) {
	c := startConference(t, strict, unhurried)
	load := body(1, 3)
	load.Step = 2
	join(t, c, atLeisure(testbed.Part{Room: "room", Identity: "alice", Loads: []testbed.Load{load}}))
	bob := join(t, c, atLeisure(testbed.Part{Room: "room", Identity: "bob", Receive: true}))
	ref := tile("alice", "body", 0)
	wait.Until(t, "the highest quality comes",
		func() bool { return frames(bob, ref) > 10 && bob.Tile(ref).Quality == 2 })
	random := rand.New(rand.NewPCG(1, 2))
	quality := 2
	for range 24 {
		wait.Until(t, "two tracks are paused", func() bool { return metric(t, c, "volsfu_tracks_paused") == 2 })
		since, some := frames(bob, ref), random.IntN(4)
		wait.Until(t, "some frames arrive", func() bool { return frames(bob, ref) >= since+some })
		quality = (quality + 1 + random.IntN(2)) % 3
		choose(t, bob, signal.Choice{PublicationRef: ref.PublicationRef,
			Quality: signal.Only(volumetric.Quality(quality))})
		wait.Until(t, "the quality comes", func() bool { return bob.Tile(ref).Quality == volumetric.Quality(quality) })
	}
	for _, s := range bob.Session.Stats() {
		if s.Undecodable != 0 || s.Missing != 0 {
			t.Errorf("%v: %d frames are undecodable, %d missing", s.Track, s.Undecodable, s.Missing)
		}
	}
	if err := bob.Failure(); err != nil {
		t.Error(err)
	}
}

// TestReceiversGetTheirEstimate checks that receivers get the estimate of their link, and may limit the bit rate.
func TestReceiversGetTheirEstimate(t *testing.T) {
	c := startConference(t)
	load := body(4, 3)
	load.FrameBytes, load.Step = 20_000, 2
	join(t, c, testbed.Part{Room: "room", Identity: "alice", Loads: []testbed.Load{load}})
	bob := join(t, c, testbed.Part{Room: "room", Identity: "bob", Receive: true})
	// lowered counts the tiles below their highest quality.
	lowered := func() (count int) {
		for i := range load.Tiles {
			if r := bob.Tile(tile("alice", "body", i)); r.Frames > 0 && r.Quality < 2 {
				count++
			}
		}
		return count
	}
	// Four tiles at 4.8 Mbit/s each.
	stalls, begun := wait.WatchStalls(t), time.Now()
	everything := func(b client.Bandwidth) bool {
		return b.Estimate > 20e6 && b.Allocated > 17e6 && b.Allocated == b.Wanted
	}
	wait.Until(t, "bob hears that he gets everything", func() bool {
		return everything(bob.Bandwidth()) || stalls.Longest() > stalled && time.Since(begun) > patience
	})
	if b := bob.Bandwidth(); !everything(b) {
		t.Skipf("this machine stalled for up to %v, and the link is estimated to carry %v", stalls.Longest(),
			b.Estimate)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := bob.Session.SetLimits(ctx, 8e6, 0); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "no more than 8 Mbit/s are allocated",
		func() bool { b := bob.Bandwidth(); return b.Allocated > 2e6 && b.Allocated < 8e6 })
	// One tile may keep its quality if the link can carry it, with another one paused instead.
	wait.Until(t, "lower qualities arrive", func() bool { return lowered() >= 2 })
	if err := bob.Session.SetLimits(ctx, 0, 0); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the highest qualities arrive again", func() bool { return lowered() == 0 })
}
