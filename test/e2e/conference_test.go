// Package e2e tests the packages together: whole conferences of real clients over loopback.
package e2e

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// patience limits the wait for an event that usually takes a fraction of a second; busy machines take longer.
const patience = 30 * time.Second

// stalled is a delay of wake-ups above which a machine is too busy for results that depend on real time. Estimators
// take stalls for queues. The server's times of a frame are collected for half a second, and pass six goroutines within
// the two seconds for which the frame's record waits.
const stalled = 100 * time.Millisecond

// startConference starts a server, which ends with all its clients at the end of the test.
func startConference(t *testing.T, adjust ...func(*config.Config)) *testbed.Conference {
	t.Helper()
	settings := testbed.ConferenceConfig()
	for _, f := range adjust {
		f(&settings)
	}
	c, err := testbed.NewConference(settings, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		goleak.VerifyNone(t)
	})
	return c
}

// wide does not treat a stalled machine as a full link.
func wide(c *config.Config) {
	c.Forward.Congestion.Min, c.Forward.Congestion.Start = testbed.Everything, testbed.Everything
}

var unhurried = testbed.Unhurried

// atLeisure returns the configuration of a peer with the same properties.
func atLeisure(part testbed.Part) testbed.Part {
	part.MinUplink, part.QueueBudget, part.Deadline = testbed.Everything, repairTime, repairTime
	return part
}

// join connects a peer and waits until it is connected.
func join(t *testing.T, c *testbed.Conference, part testbed.Part) *testbed.Peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p, err := c.Join(ctx, part)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// frames returns the number of received frames of a tile.
func frames(p *testbed.Peer, ref volumetric.TileRef) int { return p.Tile(ref).Frames }

func tile(participant, publication string, index int) volumetric.TileRef {
	return volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: participant,
		Publication: publication}, Tile: index}
}

func body(tiles, qualities int) testbed.Load {
	return testbed.Load{Name: "body", Tiles: tiles, Qualities: qualities, FrameBytes: 5000, Rate: 30}
}

func choose(t *testing.T, p *testbed.Peer, choices ...signal.Choice) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.Session.SetQuality(ctx, choices...); err != nil {
		t.Fatal(err)
	}
}

func TestEverybodyGetsEveryTileOfEverybody(t *testing.T) {
	c := startConference(t, unhurried)
	names := []string{"alice", "bob", "carol"}
	peers := map[string]*testbed.Peer{}
	for _, name := range names {
		peers[name] = join(t, c, atLeisure(testbed.Part{Room: "room", Identity: name,
			Loads: []testbed.Load{body(4, 2)}, Receive: true}))
	}
	for _, receiver := range names {
		for _, publisher := range names {
			if publisher == receiver {
				continue
			}
			for i := range 4 {
				wait.Until(t, receiver+" has frames of "+publisher,
					func() bool { return frames(peers[receiver], tile(publisher, "body", i)) > 10 })
			}
		}
		if err := peers[receiver].Failure(); err != nil {
			t.Errorf("%s: %v", receiver, err)
		}
	}
}

func TestQualityFollowsChoices(t *testing.T) {
	c := startConference(t, unhurried)
	join(t, c, atLeisure(testbed.Part{Room: "room", Identity: "alice", Loads: []testbed.Load{body(2, 3)}}))
	bob := join(t, c, atLeisure(testbed.Part{Room: "room", Identity: "bob", Receive: true}))
	first, second := tile("alice", "body", 0), tile("alice", "body", 1)
	arrives := func(ref volumetric.TileRef, q volumetric.Quality) {
		t.Helper()
		before := frames(bob, ref)
		wait.Until(t, "the quality arrives", func() bool {
			return frames(bob, ref) > before &&
				bob.Tile(ref).Quality == q
		})
	}
	arrives(first, 2)
	arrives(second, 2)
	zero := 0
	choose(t, bob, signal.Choice{PublicationRef: first.PublicationRef, Tile: &zero, Quality: signal.Only(0)})
	arrives(first, 0)
	arrives(second, 2)
	choose(t, bob, signal.Choice{PublicationRef: first.PublicationRef, Quality: signal.Only(1)})
	arrives(first, 1)
	arrives(second, 1)
	choose(t, bob, signal.Choice{PublicationRef: first.PublicationRef, Quality: signal.Only(volumetric.QualityOff)})
	wait.Until(t, "bob is notified that both tiles are off", func() bool {
		off := map[int]bool{}
		for _, s := range bob.Sendings() {
			off[s.Track.Tile] = s.Quality == volumetric.QualityOff
		}
		return off[0] && off[1]
	})
	choose(t, bob, signal.Choice{PublicationRef: first.PublicationRef, Quality: signal.Auto()})
	arrives(first, 2)
	arrives(second, 2)
	for _, s := range bob.Session.Stats() {
		if s.Undecodable != 0 {
			t.Errorf("%v: %d undecodable frames", s.Track, s.Undecodable)
		}
	}
	if err := bob.Failure(); err != nil {
		t.Error(err)
	}
}

func TestDescriptionsForwardAnySubset(t *testing.T) {
	c := startConference(t, unhurried)
	load := body(2, 3)
	load.Mode = volumetric.ModeDescriptions
	join(t, c, atLeisure(testbed.Part{Room: "room", Identity: "alice", Loads: []testbed.Load{load}}))
	bob := join(t, c, atLeisure(testbed.Part{Room: "room", Identity: "bob", Receive: true}))
	expected := func() map[volumetric.TrackRef]int64 {
		counts := map[volumetric.TrackRef]int64{}
		for _, s := range bob.Session.Stats() {
			counts[s.Track] = s.Complete
		}
		return counts
	}
	wait.Until(t, "all six descriptions arrive", func() bool {
		counts := expected()
		n := 0
		for _, frames := range counts {
			if frames > 5 {
				n++
			}
		}
		return n == 6
	})
	choose(t, bob, signal.Choice{PublicationRef: tile("alice", "body", 0).PublicationRef,
		Quality: signal.Selection{Qualities: []volumetric.Quality{0, 2}}})
	before := expected()
	wait.Until(t, "the middle description stops and the others go on", func() bool {
		after := expected()
		for track, n := range after {
			if track.Quality == 1 && n > before[track] {
				before = after
				return false
			}
		}
		for track, n := range after {
			if track.Quality != 1 && n <= before[track]+5 {
				return false
			}
		}
		return true
	})
}

func TestLeavingDoesNotDisturbOthers(t *testing.T) {
	c := startConference(t, unhurried)
	enter := func(name string, loads ...testbed.Load) *testbed.Peer {
		return join(t, c, atLeisure(testbed.Part{Room: "room", Identity: name, Loads: loads, Receive: true}))
	}
	alice, bob, carol := enter("alice", body(2, 2)), enter("bob", body(2, 2)), enter("carol")
	wait.Until(t, "carol has both", func() bool {
		return frames(carol, tile("alice", "body", 1)) > 5 && frames(carol, tile("bob", "body", 1)) > 5
	})
	bob.Leave()
	wait.Until(t, "the others are notified that bob has left", func() bool {
		return alice.Count("left") == 1 && carol.Count("left") == 1
	})
	before := frames(carol, tile("alice", "body", 0))
	wait.Until(t, "alice's frames go on", func() bool { return frames(carol, tile("alice", "body", 0)) > before+20 })
	again := enter("bob", body(2, 2))
	seen := frames(carol, tile("bob", "body", 0))
	wait.Until(t, "bob's frames arrive again", func() bool {
		return frames(carol, tile("bob", "body", 0)) > seen+5 && frames(again, tile("alice", "body", 0)) > 5
	})
	if err := carol.Failure(); err != nil {
		t.Error(err)
	}
}
