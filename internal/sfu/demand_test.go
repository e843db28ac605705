package sfu

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// asked returns the wanted qualities in the last message to the player about its body, tile by tile, "" before the
// first message.
func (p *player) asked() string {
	m, n := latest[*signal.Wanted](p.shelf)
	if n == 0 {
		return ""
	}
	var tiles []string
	for _, tile := range m.Publications[0].Tiles {
		tiles = append(tiles, strings.Trim(strings.ReplaceAll(fmt.Sprint(tile), " ", ""), "[]"))
	}
	return strings.Join(tiles, ",")
}

func (p *player) expectAsked(want string) {
	p.stage.t.Helper()
	if got := p.asked(); got != want {
		p.stage.t.Fatalf("%s was asked for %q, expected %q", p.Identity, got, want)
	}
}

func strictly(c *Config) { c.Suppression.Policy = demand.Strict }

// TestOnlyTakenQualitiesAreWanted checks that a choice makes a suppressed quality wanted, and that the former quality
// is forwarded until the new quality arrives.
func TestOnlyTakenQualitiesAreWanted(t *testing.T) {
	s := newStage(t, strictly)
	alice := s.enter("alice", false, true, ladder(2, 3))
	alice.expectAsked(",")
	bob, carol := s.enter("bob", true, false), s.enter("carol", true, false)
	bob.attach()
	alice.expectAsked("2,2")
	carol.attach()
	bob.begin()
	carol.begin()
	carol.choose(-1, signal.Only(0))
	alice.expectAsked("02,02")
	bob.choose(0, signal.Only(1))
	alice.expectAsked("012,02")
	// Both receivers still see quality 2 of the first tile.
	s.pass(time.Second)
	alice.expectAsked("012,02")
	bob.begin()
	alice.expectAsked("012,02")
	carol.begin()
	alice.expectAsked("01,02")
	bob.choose(-1, signal.Only(volumetric.QualityOff))
	alice.expectAsked("0,0")
	s.ask(func(r *Room) { carol.subscriber.Slots.Release() })
	alice.expectAsked(",")
	if s.counts.paused != 6 {
		t.Errorf("%d tracks count as paused, expected 6", s.counts.paused)
	}
}

// TestLowestTaken checks that a publisher with two paths is told the tiles of which a receiver takes the lowest
// quality, and that other publishers are not.
func TestLowestTaken(t *testing.T) {
	s := newStage(t, strictly)
	alice := s.enter("alice", false, true)
	s.ask(func(r *Room) {
		alice.participant.asked.multipath = &signal.Multipath{}
		if err := r.publish(alice.participant, ladder(2, 3)); err != nil {
			t.Fatal(err)
		}
		r.announce(&alice.Presence, alice.participant.Publications)
	})
	carol := s.enter("carol", false, true, ladder(2, 3))
	bob := s.enter("bob", true, false)
	bob.attach()
	bob.choose(0, signal.Only(0))
	s.pass(3 * time.Second)
	m, _ := latest[*signal.Wanted](alice.shelf)
	if got := m.Publications[0].LowestTaken; !slices.Equal(got, []bool{true, false}) {
		t.Errorf("alice was told %v, expected the first tile only", got)
	}
	if m, n := latest[*signal.Wanted](carol.shelf); n == 0 || m.Publications[0].LowestTaken != nil {
		t.Errorf("carol was told %+v, expected a message without lowest qualities", m)
	}
}

// TestPublishersBeginWhileReceiversConnect checks that the expected quality of a slot is wanted from its assignment on.
func TestPublishersBeginWhileReceiversConnect(t *testing.T) {
	s := newStage(t, strictly)
	alice := s.enter("alice", false, true, ladder(2, 3))
	bob := s.enter("bob", true, false)
	bob.connected = false
	bob.attach()
	alice.expectAsked("0,0")
	bob.expectCarried("-1 -1")
	s.ask(func(*Room) {
		bob.connected = true
		bob.subscriber.Choices.SetAll([]signal.Choice{choiceOf(0, signal.Only(1))})
		bob.refresh(s.now)
	})
	bob.expectCarried("1 2")
	alice.expectAsked("1,2")
}

// TestASwitchThatIsCalledOff checks that the showing quality stays in use if a switch is cancelled.
func TestASwitchThatIsCalledOff(t *testing.T) {
	s := newStage(t, strictly)
	alice := s.enter("alice", false, true, ladder(1, 3))
	bob := s.enter("bob", true, false)
	bob.attach()
	bob.begin()
	bob.choose(0, signal.Only(0))
	alice.expectAsked("02")
	bob.choose(0, signal.Only(2))
	alice.expectAsked("2")
}

func TestPublishersThatDoNotPauseAreNotAsked(t *testing.T) {
	s := newStage(t, strictly)
	alice := s.enter("alice", false, false, ladder(1, 3))
	bob := s.enter("bob", true, false)
	bob.way.path, bob.way.share = known(100e6), 0.2
	bob.attach()
	s.pass(5 * time.Second)
	if alice.asked() != "" || s.counts.paused != 0 || s.counts.bits != 0 {
		t.Errorf("asked for %q, %d tracks paused, %g bits saved", alice.asked(), s.counts.paused, s.counts.bits)
	}
}

// TestNeighboursAreKeptForAWhile checks the hold time, also without receivers.
func TestNeighboursAreKeptForAWhile(t *testing.T) {
	s := newStage(t, nil)
	alice := s.enter("alice", false, true, ladder(3, 4))
	s.pass(1990 * time.Millisecond)
	alice.expectAsked("")
	s.pass(20 * time.Millisecond)
	alice.expectAsked(",,")
	bob := s.enter("bob", true, false)
	bob.attach()
	alice.expectAsked("23,23,23")
	bob.begin()
	bob.choose(0, signal.Only(0))
	bob.begin()
	alice.expectAsked("0123,23,23")
	s.pass(2010 * time.Millisecond)
	alice.expectAsked("01,23,23")
	// A choice of no quality keeps no track near. A link without capacity carries one tile and keeps the lowest quality
	// of the other tile near.
	bob.choose(0, signal.Only(volumetric.QualityOff))
	bob.way.path = known(100e3)
	s.pass(100 * time.Millisecond)
	bob.expectCarried("-1 0 -1")
	bob.begin()
	s.pass(2100 * time.Millisecond)
	alice.expectAsked(",01,0")
}

// TestSavedBitsAreCounted suppresses 1 and 2 of the 7 Mbit/s of a tile for one second.
func TestSavedBitsAreCounted(t *testing.T) {
	s := newStage(t, strictly)
	s.enter("alice", false, true, ladder(1, 3))
	bob := s.enter("bob", true, false)
	bob.attach()
	if s.counts.paused != 2 {
		t.Fatalf("%d tracks are paused, expected 2", s.counts.paused)
	}
	before := s.counts.bits
	s.pass(time.Second)
	if saved := s.counts.bits - before; saved < 2.9e6 || saved > 3.1e6 {
		t.Errorf("%g bits were saved in a second, expected 3e6", saved)
	}
}

// TestParityFollowsTheGreatestNeed checks that parity rises at once and falls after the hold time.
func TestParityFollowsTheGreatestNeed(t *testing.T) {
	s := newStage(t, nil)
	alice := s.enter("alice", false, true, ladder(1, 1))
	bob, carol := s.enter("bob", true, false), s.enter("carol", true, false)
	bob.attach()
	carol.attach()
	parity := func() float64 {
		m, n := latest[*signal.Wanted](alice.shelf)
		if n == 0 {
			return 0
		}
		return m.Publications[0].Parity
	}
	step := func(ofBob, ofCarol, want float64, wait time.Duration) {
		t.Helper()
		bob.way.share, carol.way.share = ofBob, ofCarol
		s.pass(wait)
		if got := parity(); got != want {
			t.Errorf("asked for %g, expected %g", got, want)
		}
	}
	interval := DefaultConfig().AllocationInterval
	step(0, 0, 0, time.Second)
	step(0.05, 0.1, 0.1, interval)
	step(0.123, 0.1, 0.13, interval)
	step(0.9, 0.1, 0.25, interval)
	step(0.05, 0.1, 0.25, interval)
	step(0.05, 0.1, 0.1, time.Second)
	_, before := latest[*signal.Wanted](alice.shelf)
	step(0.05, 0.1, 0.1, 10*time.Second)
	if _, after := latest[*signal.Wanted](alice.shelf); after != before {
		t.Errorf("told %d times that nothing has changed", after-before)
	}
	// A receiver that does not take the publication needs no parity of it.
	carol.choose(-1, signal.Only(volumetric.QualityOff))
	s.pass(10 * time.Second)
	if got := parity(); got != 0.05 {
		t.Errorf("asked for %g, expected 0.05", got)
	}
}

// TestParityForThePublishersWay checks that parity for the publisher's path is requested as long as a receiver takes
// the publication, in addition to the receivers' needs, and reduces the rate of video.
func TestParityForThePublishersWay(t *testing.T) {
	s := newStage(t, nil)
	alice := s.enter("alice", false, true, ladder(1, 1))
	foreign := ladder(1, 1)
	foreign.Name, foreign.Codec = "camera", volumetric.Codec{MIMEType: volumetric.MIMEVP8, ClockRate: 90000}
	s.enter("dave", false, true, foreign)
	bob := s.watches("bob", 100e6)
	headers := bob.subscriber.Overhead(bob.way.path)
	step := func(own, uplink, want, added float64) {
		t.Helper()
		bob.way.share, bob.way.uplink = own, uplink
		s.pass(2 * time.Second)
		asked := 0.0
		if m, n := latest[*signal.Wanted](alice.shelf); n > 0 {
			asked = m.Publications[0].Parity
		}
		if asked != want {
			t.Errorf("asked for %g, expected %g", asked, want)
		}
		overhead := bob.subscriber.Overhead(bob.way.path)
		if got := overhead - headers - own; got < added-1e-9 || got > added+1e-9 {
			t.Errorf("the publisher's way adds %g to video, expected %g", got, added)
		}
	}
	// Only half of bob's video has parity.
	step(0, 0, 0, 0)
	step(0, 0.11, 0.11, 0.055)
	step(0.07, 0.11, 0.18, 0.055)
	step(0.07, 0, 0.07, 0)
	bob.choose(-1, signal.Only(volumetric.QualityOff))
	step(0, 0.11, 0, 0)
}

// TestParityEndsWithoutReceivers checks that parity ends when the receiver that needed it has left and the publisher
// continues.
func TestParityEndsWithoutReceivers(t *testing.T) {
	s := newStage(t, func(c *Config) { c.Suppression.Policy = demand.Warm })
	alice := s.enter("alice", false, true, ladder(1, 1))
	bob := s.enter("bob", true, false)
	bob.attach()
	bob.way.share = 0.2
	s.pass(time.Second)
	if told := expect[*signal.Wanted](t, alice.shelf, 1); told.Publications[0].Parity != 0.2 {
		t.Fatalf("asked for %g, expected 0.2", told.Publications[0].Parity)
	}
	s.ask(func(*Room) { bob.connected = false })
	s.pass(2 * time.Second)
	if told := expect[*signal.Wanted](t, alice.shelf, 2); told.Publications[0].Parity != 0 {
		t.Errorf("asked for a parity share of %g without receivers", told.Publications[0].Parity)
	}
}

// TestGivenUpTracksAreReplaced checks that receivers get available tracks in place of tracks that a publisher has given
// up.
func TestGivenUpTracksAreReplaced(t *testing.T) {
	for name, estimate := range map[string]volumetric.Bitrate{"unknown": 0, "wide": 100e6} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, nil)
			alice := s.enter("alice", false, true, ladder(2, 3))
			bob := s.enter("bob", true, false)
			if estimate > 0 {
				bob.way.path = known(estimate)
			}
			bob.attach()
			bob.expectCarried("2 2")
			alice.say(&signal.Uplink{Estimate: 5e6, GaveUp: []signal.OwnTrack{
				{Publication: "body", Tile: 0, Quality: 2}, {Publication: "body", Tile: 1, Quality: 1},
				{Publication: "gone"},
			}})
			s.pass(60 * time.Millisecond)
			bob.expectCarried("1 2")
			bob.choose(-1, signal.Only(1))
			s.pass(60 * time.Millisecond)
			bob.expectCarried("1 0")
			if got := bob.subscriber.Slots.All()[1].Reason; got != signal.ReasonAuto {
				t.Errorf("an unavailable quality is replaced for the reason %q, expected %q", got,
					signal.ReasonAuto)
			}
			alice.say(&signal.Uplink{GaveUp: []signal.OwnTrack{}})
			s.pass(60 * time.Millisecond)
			bob.expectCarried("1 1")
		})
	}
}

// TestAnAlternatingUplinkCostsFewDecisions has a publisher give up a track and take it back 50 times per second. The
// receiver decides at some of the changes only, and in the end follows the last one.
func TestAnAlternatingUplinkCostsFewDecisions(t *testing.T) {
	s := newStage(t, nil)
	alice := s.enter("alice", false, true, ladder(1, 2))
	bob := s.watches("bob", 100e6)
	s.pass(time.Second)
	bob.expectCarried("1")
	without := &signal.Uplink{GaveUp: []signal.OwnTrack{{Publication: "body", Quality: 1}}}
	before := s.counts.allocations
	for range 150 {
		for _, report := range []*signal.Uplink{without, {}} {
			alice.say(report)
			s.pass(10 * time.Millisecond)
		}
	}
	// There are 60 ticks. The burst lasts for 4 of them, and then 2 decisions at once and 2 delayed ones follow per
	// second.
	if n := s.counts.allocations - before; n > 30 {
		t.Errorf("a receiver decided %d times in 3 s, expected 30 at most", n)
	}
	alice.say(without)
	s.pass(time.Second)
	bob.expectCarried("0")
}

func TestAnUplinkOfTracksThatThereAreNot(t *testing.T) {
	s := newStage(t, nil)
	alice := s.enter("alice", false, true, ladder(1, 2))
	for _, track := range []signal.OwnTrack{{Publication: "body", Tile: 1}, {Publication: "body", Quality: 2}} {
		s.room.do(s.now, messageRequest{
			participant: alice.participant, outbox: alice.shelf,
			message: &signal.Uplink{GaveUp: []signal.OwnTrack{track}}, at: s.now,
		})
		if refused := expect[*signal.Error](t, alice.shelf, 1); refused.Code != signal.CodeNotFound {
			t.Errorf("%+v: got %q, expected %q", track, refused.Code, signal.CodeNotFound)
		}
	}
}

// TestLeavingEndsDemand checks that a participant that leaves has no needs, whether it was ever connected or not.
func TestLeavingEndsDemand(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), strictly)
	_, o := admitted(t, n, "alice", &signal.Join{Version: signal.Version, Pauses: true,
		Publications: []volumetric.Publication{bodyOf(1, 2)}})
	wanted := func(count int) int { return len(expect[*signal.Wanted](t, o, count).Publications[0].Tiles[0]) }
	if n := wanted(1); n != 0 {
		t.Errorf("%d qualities are wanted before anybody is there", n)
	}
	bob, _ := enter(t, n, "bob", true)
	if n := wanted(2); n != 1 {
		t.Errorf("%d qualities are wanted with a receiver, expected 1", n)
	}
	handle(bob, &signal.Leave{})
	if n := wanted(3); n != 0 {
		t.Errorf("%d qualities are wanted after it has left", n)
	}
}
