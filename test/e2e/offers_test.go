package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/e2e/puppet"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// observer is a participant that counts offers, and packets by SSRC.
type observer struct {
	*puppet.Puppet
	t    *testing.T
	name string

	mu      sync.Mutex
	packets map[uint32]int
}

func observe(t *testing.T, c *testbed.Conference, name string, publications ...volumetric.Publication) *observer {
	t.Helper()
	o := &observer{t: t, name: name, packets: map[uint32]int{}}
	p, err := puppet.Dial(puppet.Config{URL: c.Server.URL(), RTP: o.take})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	o.Puppet = p
	if _, err := p.Join(&signal.Join{Version: 1, Room: "room", Identity: name, Receive: true,
		Publications: publications}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, name+" is connected", p.Connected)
	return o
}

func (o *observer) take(ssrc uint32, _ []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.packets[ssrc]++
}

func (o *observer) received(ssrc uint32) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.packets[ssrc]
}

// slotOf is the slot that carries a tile.
func (o *observer) slotOf(ref volumetric.TileRef) (puppet.Slot, bool) {
	for _, s := range o.Slots() {
		if s.Carries != nil && *s.Carries == ref {
			return s, true
		}
	}
	return puppet.Slot{}, false
}

// flow waits until new packets of every tile of a publication arrive.
func (o *observer) flow(participant, publication string, tiles int) {
	o.t.Helper()
	slots := make([]puppet.Slot, tiles)
	before := make([]int, tiles)
	for i := range slots {
		ref := tile(participant, publication, i)
		wait.Until(o.t, fmt.Sprintf("%s has a slot for %v", o.name, ref), func() bool {
			var ok bool
			slots[i], ok = o.slotOf(ref)
			return ok
		})
		before[i] = o.received(slots[i].Streams.SSRC)
	}
	for i := range slots {
		ref := tile(participant, publication, i)
		wait.Until(o.t, fmt.Sprintf("%s receives %v", o.name, ref),
			func() bool { return o.received(slots[i].Streams.SSRC) > before[i] })
	}
}

// ebb waits until no slot carries a publication.
func (o *observer) ebb(participant, publication string) {
	o.t.Helper()
	ref := volumetric.PublicationRef{Participant: participant, Publication: publication}
	wait.Until(o.t, fmt.Sprintf("%s has no slot for %v", o.name, ref), func() bool {
		for _, s := range o.Slots() {
			if s.Carries != nil && s.Carries.PublicationRef == ref {
				return false
			}
		}
		return true
	})
}

// offers returns the number of offers so far. It first requests the server's clock: the room handles the request after
// everything that is pending.
func (o *observer) offers() int {
	o.t.Helper()
	for range 2 {
		if _, err := o.Request(&signal.Time{}); err != nil {
			o.t.Fatal(err)
		}
	}
	return o.Count(signal.TypeOffer)
}

// publishMore adds a publication to a connected peer, and sends its frames until the test ends.
func publishMore(t *testing.T, p *testbed.Peer, load testbed.Load) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	publisher, err := p.Session.Publish(ctx, load.Publication())
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.Background())
	var feeding sync.WaitGroup
	feeding.Go(func() {
		ticker := time.NewTicker(time.Duration(float64(time.Second) / load.Rate))
		defer ticker.Stop()
		for number := uint32(0); ; number++ {
			select {
			case now := <-ticker.C:
				for i := range load.Tiles * load.Qualities {
					frame := client.OutgoingFrame{Number: number, Capture: now, Data: make([]byte, load.FrameBytes)}
					// Frames before the negotiation are dropped.
					_, _ = publisher.WriteFrame(i/load.Qualities, volumetric.Quality(i%load.Qualities), frame)
				}
			case <-running.Done():
				return
			}
		}
	})
	t.Cleanup(func() {
		stop()
		feeding.Wait()
	})
}

func TestOthersCostAtMostOneOffer(t *testing.T) {
	c := startConference(t, wide)
	observers := []*observer{observe(t, c, "alice"), observe(t, c, "bob", body(2, 1).Publication())}
	for _, o := range observers {
		if n := o.offers(); n != 1 {
			t.Errorf("joining cost %s %d offers, expected 1", o.name, n)
		}
	}
	unpublish := func(p *testbed.Peer, name string) {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := p.Session.Unpublish(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	desk := testbed.Load{Name: "desk", Tiles: 9, Qualities: 3, FrameBytes: 500, Rate: 10}
	large := testbed.Load{Name: "body", Tiles: 15, Qualities: 2, FrameBytes: 500, Rate: 10}
	var carol, dave *testbed.Peer
	steps := []struct {
		name   string
		do     func()
		settle func(o *observer)
		most   int
	}{
		{"somebody joins", func() {
			carol = join(t, c, testbed.Part{Room: "room", Identity: "carol", Loads: []testbed.Load{large},
				Receive: true})
		},
			func(o *observer) { o.flow("carol", "body", 15) }, 1},
		{"a second publication", func() { publishMore(t, carol, desk) },
			func(o *observer) { o.flow("carol", "desk", 9) }, 1},
		{"another one joins", func() {
			dave = join(t, c, testbed.Part{Room: "room", Identity: "dave", Loads: []testbed.Load{large, desk}})
		},
			func(o *observer) { o.flow("dave", "body", 15); o.flow("dave", "desk", 9) }, 1},
		{"a publication ends", func() { unpublish(carol, "desk") }, func(o *observer) { o.ebb("carol", "desk") }, 1},
		{"it comes again", func() { publishMore(t, carol, desk) }, func(o *observer) { o.flow("carol", "desk", 9) }, 1},
		{"somebody leaves", func() { dave.Leave() }, func(o *observer) { o.ebb("dave", "body"); o.ebb("dave", "desk") },
			1},
		{"qualities are switched", func() {
			for _, o := range observers {
				for q := range volumetric.Quality(2) {
					choice := signal.Choice{PublicationRef: tile("carol", "body", 0).PublicationRef,
						Quality: signal.Only(q)}
					told := o.Count(signal.TypeSending)
					if _, err := o.Request(&signal.SetQuality{Choices: []signal.Choice{choice}}); err != nil {
						t.Fatal(err)
					}
					wait.Until(t, o.name+" is told of the switch",
						func() bool { return q == 1 || o.Count(signal.TypeSending) > told })
				}
			}
		}, func(o *observer) { o.flow("carol", "body", 15) }, 0},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			var before []int
			for _, o := range observers {
				o.t = t
				before = append(before, o.offers())
			}
			step.do()
			for i, o := range observers {
				step.settle(o)
				if n := o.offers() - before[i]; n > step.most {
					t.Errorf("%d offers to %s, expected at most %d", n, o.name, step.most)
				}
			}
		})
	}
	if err := carol.Failure(); err != nil {
		t.Error(err)
	}
}

func TestManyPublicationsOfManyTracks(t *testing.T) {
	c := startConference(t, wide)
	var loads []testbed.Load
	for i := range 7 {
		loads = append(loads, testbed.Load{Name: fmt.Sprintf("object %d", i), Tiles: 2, Qualities: 1,
			FrameBytes: 300, Rate: 10})
	}
	// The maximum number of tracks of a publication.
	loads = append(loads, testbed.Load{Name: "all of it", Tiles: 16, Qualities: 4, FrameBytes: 300, Rate: 5})
	alice := join(t, c, testbed.Part{Room: "room", Identity: "alice", Loads: loads})
	bob := join(t, c, testbed.Part{Room: "room", Identity: "bob", Receive: true})
	for _, load := range loads {
		for i := range load.Tiles {
			ref := tile("alice", load.Name, i)
			wait.Until(t, fmt.Sprintf("bob has frames of %v", ref), func() bool { return frames(bob, ref) > 2 })
		}
	}
	choose(t, bob, signal.Choice{PublicationRef: tile("alice", "all of it", 0).PublicationRef, Quality: signal.Only(1)})
	for i := range 16 {
		wait.Until(t, "every tile follows the choice",
			func() bool { return bob.Tile(tile("alice", "all of it", i)).Quality == 1 })
	}
	if err := bob.Failure(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var refused *signal.Error
	if _, err := alice.Session.Publish(ctx, body(1, 1).Publication()); !errors.As(err, &refused) ||
		refused.Code != signal.CodeLimit {
		t.Errorf("ninth publication: got %v, expected %q", err, signal.CodeLimit)
	}
	if err := alice.Session.Unpublish(ctx, "object 0"); err != nil {
		t.Fatal(err)
	}
	if _, err := alice.Session.Publish(ctx, body(13, 5).Publication()); !errors.As(err, &refused) ||
		refused.Code != signal.CodeLimit {
		t.Errorf("65 tracks: got %v, expected %q", err, signal.CodeLimit)
	}
}
