package sfu

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestTheLinkDecides checks the qualities of two tiles at 1, 2 or 4 Mbit/s for links of different capacity.
func TestTheLinkDecides(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(2, 3))
	bob := s.enter("bob", true, false)
	bob.attach()
	bob.expectCarried("2 2")
	s.pass(time.Second)
	bob.expectCarried("2 2")
	if s.counts.allocations != 0 {
		t.Errorf("%d allocations though nothing is known of the link", s.counts.allocations)
	}
	bob.way.path = known(5e6)
	s.pass(100 * time.Millisecond)
	bob.expectCarried("1 1")
	if want := volumetric.Bitrate(8e6); bob.way.wanted < want || bob.way.wanted > want*12/10 {
		t.Errorf("%v are wanted, expected %v and headers", bob.way.wanted, want)
	}
	told := expect[*signal.Bandwidth](t, bob.shelf, 1)
	if told.Estimate != 5e6 || told.Allocated != 4e6 || told.Wanted != 8e6 {
		t.Errorf("told %+v", told)
	}
	bob.way.path = known(1.5e6)
	s.pass(100 * time.Millisecond)
	// Both tiles have the same value.
	if got := bob.carries(); got != "0 -1" && got != "-1 0" {
		t.Errorf("bob is sent %q, expected one of two tiles", got)
	}
	if got := reasons(expect[*signal.Sending](t, bob.shelf, 1)); got != "0:-1:budget" && got != "1:-1:budget" {
		t.Errorf("told %q", got)
	}
	bob.way.path = known(100e6)
	s.pass(10 * time.Second)
	bob.expectCarried("2 2")
}

// TestConstantInputsCauseNoWork checks that constant inputs cause no allocations and no messages.
func TestConstantInputsCauseNoWork(t *testing.T) {
	s := newStage(t, func(c *Config) { c.Allocation.View.Unseen = allocate.UnseenFull })
	s.enter("alice", false, true, ladder(4, 3))
	bob := s.enter("bob", true, false)
	bob.attach()
	bob.way.path = known(200e6)
	s.pass(5 * time.Second)
	bob.begin()
	s.pass(time.Second)
	allocations, messages := s.counts.allocations, len(bob.all)
	for i := range 20 {
		// If everything is sent, variations of the estimate above the wanted rate and motion of the viewpoint change
		// nothing.
		bob.way.path = known(200e6 + volumetric.Bitrate(i%2)*20e6)
		turn := float64(i) / 10
		bob.say(&signal.Viewpoint{Orientation: signal.Rotation{0, math.Sin(turn), 0, math.Cos(turn)}, FOV: 60,
			Aspect: 1})
		s.pass(50 * time.Millisecond)
	}
	if s.counts.allocations != allocations {
		t.Errorf("%d allocations", s.counts.allocations-allocations)
	}
	if n := len(bob.all) - messages; n > 2 {
		t.Errorf("%d messages in a second, expected two about the estimate at most", n)
	}
}

// TestAChoiceTakesEffectAtOnce checks that a choice does not wait for the next tick.
func TestAChoiceTakesEffectAtOnce(t *testing.T) {
	for name, estimate := range map[string]volumetric.Bitrate{"unknown": 0, "wide": 100e6} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, nil)
			s.enter("alice", false, false, ladder(2, 3))
			bob := s.enter("bob", true, false)
			bob.attach()
			if estimate > 0 {
				bob.way.path = known(estimate)
			}
			s.pass(time.Second)
			s.pass(7 * time.Millisecond)
			asked := s.now
			bob.choose(1, signal.Only(0))
			bob.expectCarried("2 0")
			if got := bob.subscriber.Slots.All()[1].Output.(*playedSlot).requested; !got.Equal(asked) {
				t.Errorf("counts from %v, expected from %v", got, asked)
			}
			// The next choice waits for the spacing and no longer.
			bob.choose(0, signal.Only(1))
			s.pass(subscriber.AllocationSpacing)
			bob.expectCarried("1 0")
			bob.choose(-1, signal.Only(volumetric.QualityOff))
			s.pass(subscriber.AllocationSpacing)
			bob.expectCarried("-1 -1")
		})
	}
}

// TestAChoiceBeyondTheLinkIsAnswered checks that the client receives the reason if its choice does not fit, though no
// slot switches.
func TestAChoiceBeyondTheLinkIsAnswered(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(1, 3))
	bob := s.watches("bob", 2.5e6)
	bob.expectCarried("1")
	bob.begin()
	s.pass(time.Second)
	bob.choose(0, signal.Only(2))
	s.pass(subscriber.AllocationSpacing)
	bob.expectCarried("1")
	if got := reasons(expect[*signal.Sending](t, bob.shelf, 1)); got != "0:1:budget" {
		t.Errorf("told %q", got)
	}
	_, before := latest[*signal.Sending](bob.shelf)
	bob.choose(0, signal.Only(1))
	s.pass(subscriber.AllocationSpacing)
	if got := reasons(expect[*signal.Sending](t, bob.shelf, before+1)); got != "0:1:choice" {
		t.Errorf("told %q", got)
	}
}

// TestTilesOutOfSightAreReducedFirst uses four tiles side by side along x and a receiver that looks at the first tile
// from a short distance.
func TestTilesOutOfSightAreReducedFirst(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(4, 3))
	bob := s.watches("bob", 5e6)
	look := func(x float64) {
		bob.say(&signal.Viewpoint{Position: signal.Vector{x, 0.5, 2}, Orientation: signal.Rotation{0, 0, 0, 1}, FOV: 40,
			Aspect: 1})
		s.pass(100 * time.Millisecond)
	}
	look(0.5)
	if got := bob.subscriber.Slots.All()[0].Quality; got != 2 {
		t.Errorf("the tile in sight has quality %d of %q, expected 2", got, bob.carries())
	}
	last := bob.subscriber.Slots.All()[3]
	if last.Quality == volumetric.QualityOff && last.Reason != signal.ReasonUnseen {
		t.Errorf("the last tile is off for the reason %q, expected %q", last.Reason, signal.ReasonUnseen)
	}
	look(3.5)
	if got := bob.subscriber.Slots.All()[3].Quality; got != 2 {
		t.Errorf("after a step aside the tile in sight has quality %d of %q, expected 2", got, bob.carries())
	}
	// Now the object moves instead of the viewpoint.
	alice := &player{participant: s.room.participants["alice"], stage: s}
	alice.shelf = alice.outbox.(*shelf)
	alice.say(&signal.Pose{Publication: "body", Position: signal.Vector{3, 0, 0},
		Orientation: signal.Rotation{0, 0, 0, 1}})
	s.pass(100 * time.Millisecond)
	if got := bob.subscriber.Slots.All()[0].Quality; got != 2 {
		t.Errorf("after a step of the object the tile in sight has quality %d of %q, expected 2", got, bob.carries())
	}
	// The receiver places the object elsewhere in its own view, and then uses the publisher's pose again.
	ref := volumetric.PublicationRef{Participant: "alice", Publication: "body"}
	placed := signal.Placement{PublicationRef: ref, Orientation: signal.Rotation{0, 0, 0, 1}}
	for _, arranged := range [][]signal.Placement{{placed}, {}} {
		bob.say(&signal.Arrange{Objects: arranged})
		s.pass(100 * time.Millisecond)
		seen := 3 * len(arranged)
		if got := bob.subscriber.Slots.All()[seen].Quality; got != 2 {
			t.Errorf("with %d objects arranged tile %d has quality %d of %q, expected 2", len(arranged), seen, got,
				bob.carries())
		}
	}
}

func TestMeasuredRatesCount(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(1, 2))
	bob := s.watches("bob", 5e6)
	bob.expectCarried("1")
	high := playedMeter(12e6)
	s.room.participants["alice"].Publications[0].Levels.SetMeter(1, &high)
	s.pass(time.Second)
	bob.expectCarried("0")
	high = 3e6
	s.pass(5 * time.Second)
	bob.expectCarried("1")
}

// TestRatesAreMeasuredWithoutReceivers checks that the first receiver is not sent more than its link can carry.
func TestRatesAreMeasuredWithoutReceivers(t *testing.T) {
	s := newStage(t, nil)
	body := ladder(1, 2)
	body.Qualities[0].Bitrate, body.Qualities[1].Bitrate = 0, 0
	alice := s.enter("alice", false, true, body)
	low, high := playedMeter(4e6), playedMeter(90e6)
	levels := alice.Publications[0].Levels
	levels.SetMeter(0, &low)
	levels.SetMeter(1, &high)
	s.pass(1500 * time.Millisecond)
	low, high = 0, 0
	s.pass(10 * time.Second)
	alice.expectAsked("")
	if !s.room.wakeAt.IsZero() && s.room.wakeAt.Sub(s.now) < demand.AccountInterval/2 {
		t.Errorf("the room wakes in %v, though there is nothing to measure", s.room.wakeAt.Sub(s.now))
	}
	bob := s.watches("bob", 50e6)
	bob.expectCarried("0")
}

func TestLimits(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(2, 3))
	bob := s.watches("bob", 100e6)
	s.pass(time.Second)
	bob.expectCarried("2 2")
	bob.say(&signal.SetLimits{BitrateLimits: signal.BitrateLimits{Max: 5e6, Min: 1e12}})
	s.pass(100 * time.Millisecond)
	bob.expectCarried("1 1")
	if l := bob.way.limits; l.Max != 5e6 || l.Min != 12_500_000 {
		t.Errorf("the estimate is limited to %+v, expected a least rate that the server takes the receiver's word for",
			l)
	}
	bob.say(&signal.SetLimits{})
	s.pass(10 * time.Second)
	bob.expectCarried("2 2")
}

// TestStartRates checks that a receiver's start rate applies to its present and later connections, up to the server's
// limit.
func TestStartRates(t *testing.T) {
	s := newStage(t, nil)
	bob := s.watches("bob", 100e6)
	for _, test := range []struct{ asked, want volumetric.Bitrate }{{8e6, 8e6}, {1e12, 12_500_000}, {0, 0},
		{300e3, 300e3}} {
		bob.say(&signal.SetLimits{BitrateLimits: signal.BitrateLimits{Start: test.asked}})
		if got := bob.way.limits; got != (congestion.Limits{Start: test.want}) {
			t.Errorf("a start rate of %d became %+v, expected %d", test.asked, got, test.want)
		}
		again := &playedLink{}
		s.ask(func(r *Room) { bob.subscriber.Connect(again, r.node.config.Allocation) })
		if got := again.limits; got != (congestion.Limits{Start: test.want}) {
			t.Errorf("a start rate of %d became %+v on the next connection, expected %d", test.asked, got, test.want)
		}
		s.ask(func(r *Room) { bob.subscriber.Connect(bob.way, r.node.config.Allocation) })
	}
}

// TestAudioComesFirst checks that the rate of audio is not available to video.
func TestAudioComesFirst(t *testing.T) {
	s := newStage(t, nil)
	voice := *described(1, 1, volumetric.ModeAlternatives)
	voice.Name, voice.Kind, voice.Codec = "voice", volumetric.KindAudio,
		volumetric.Codec{MIMEType: volumetric.MIMEOpus, ClockRate: 48000, Channels: 2}
	voice.Qualities[0].Bitrate = 64e3
	s.enter("alice", false, false, ladder(2, 1), voice)
	bob := s.enter("bob", true, false)
	// 2 Mbit/s of video take 2.24 Mbit/s on the wire, with headers, headroom and the allocator's reserve.
	bob.way.path = known(2.27e6)
	bob.attach()
	s.pass(100 * time.Millisecond)
	bob.expectCarried("0 -1")
	for _, slot := range bob.subscriber.Slots.All() {
		if slot.Kind == volumetric.KindAudio && slot.Quality != 0 {
			t.Error("audio is off")
		}
	}
	bob.say(&signal.SetQuality{Choices: []signal.Choice{{
		PublicationRef: volumetric.PublicationRef{Participant: "alice", Publication: "voice"},
		Quality:        signal.Only(volumetric.QualityOff),
	}}})
	s.pass(10 * time.Second)
	bob.expectCarried("0 0")
}

func TestDescriptionsAreASet(t *testing.T) {
	s := newStage(t, nil)
	body := ladder(1, 3)
	body.Mode = volumetric.ModeDescriptions
	s.enter("alice", false, false, body)
	bob := s.watches("bob", 100e6)
	bob.expectCarried("0 1 2")
	bob.choose(0, several(0, 2))
	s.pass(subscriber.AllocationSpacing)
	bob.expectCarried("0 -1 2")
	bob.choose(0, signal.Auto())
	bob.way.path = known(3.7e6)
	s.pass(time.Second)
	bob.expectCarried("0 1 -1")
}

// TestBandwidthIsReportedTwiceASecond uses an estimate that changes all the time.
func TestBandwidthIsReportedTwiceASecond(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(1, 3))
	bob := s.enter("bob", true, false)
	bob.attach()
	for i := range 100 {
		bob.way.path = known(3e6 + volumetric.Bitrate(i)*100e3)
		s.pass(50 * time.Millisecond)
	}
	if _, n := latest[*signal.Bandwidth](bob.shelf); n < 9 || n > 11 {
		t.Errorf("told %d times in five seconds, expected 10", n)
	}
}

// TestAFallOfTheBandwidthIsReportedAtOnce checks that a client does not have to detect a fall itself.
func TestAFallOfTheBandwidthIsReportedAtOnce(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(1, 3))
	bob := s.watches("bob", 100e6)
	s.pass(time.Second)
	bob.way.path = known(90e6)
	s.pass(100 * time.Millisecond)
	_, before := latest[*signal.Bandwidth](bob.shelf)
	for i, estimate := range []volumetric.Bitrate{80e6, 20e6} {
		bob.way.path = known(estimate)
		s.pass(100 * time.Millisecond)
		told, n := latest[*signal.Bandwidth](bob.shelf)
		if n != before+i {
			t.Fatalf("at %v bob was told %d times, expected %d", estimate, n-before, i)
		}
		if i > 0 && told.Estimate != estimate {
			t.Errorf("bob was told of %v, expected %v", told.Estimate, estimate)
		}
	}
	bob.choose(0, signal.Only(0))
	s.pass(100 * time.Millisecond)
	if told, n := latest[*signal.Bandwidth](bob.shelf); n != before+2 || told.Allocated != 1e6 {
		t.Errorf("after a choice bob was told %d times of %v, expected once of 1 Mbit/s", n-before-1, told.Allocated)
	}
}

// TestChangesOfL4SAreReported changes the state of L4S, and nothing else.
func TestChangesOfL4SAreReported(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(1, 3))
	bob := s.watches("bob", 100e6)
	s.pass(time.Second)
	_, before := latest[*signal.Bandwidth](bob.shelf)
	for i, state := range []congestion.L4SState{congestion.L4STesting, congestion.L4SMarked} {
		bob.way.path.L4S = state
		s.pass(time.Second)
		if told, n := latest[*signal.Bandwidth](bob.shelf); n != before+i+1 || told.L4S != state.String() {
			t.Errorf("in the state %v bob was told %d times, the last time of %q", state, n-before, told.L4S)
		}
	}
}

// TestBandwidthStaysWithinBounds checks declared rates whose sum exceeds the limit of the message.
func TestBandwidthStaysWithinBounds(t *testing.T) {
	s := newStage(t, nil)
	declared := ladder(4, 1)
	declared.Qualities[0].Bitrate = signal.MaxBitrate
	s.enter("alice", false, false, declared)
	bob := s.watches("bob", 5e6)
	s.pass(time.Second)
	if told := expect[*signal.Bandwidth](t, bob.shelf, 1); told.Wanted != signal.MaxBitrate ||
		told.Allocated != signal.MaxBitrate {
		t.Errorf("told %+v, expected rates up to %v", told, signal.MaxBitrate)
	}
}

// TestALargeRoomFollowsAsManyAsItCan checks slow decisions: those for moving viewpoints are spread over time, and
// urgent decisions are not delayed.
func TestALargeRoomFollowsAsManyAsItCan(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(4, 3))
	var watchers []*player
	for i := range 20 {
		p := s.enter(fmt.Sprint("watcher", i), true, false)
		p.way.path = known(5e6)
		p.attach()
		watchers = append(watchers, p)
	}
	s.pass(time.Second)
	s.cost = 5 * time.Millisecond
	before := s.counts.allocations
	for i := range 20 {
		for _, p := range watchers {
			p.say(&signal.Viewpoint{Position: signal.Vector{float64(i) / 5, 0, 3},
				Orientation: signal.Rotation{0, 0, 0, 1}, FOV: 60, Aspect: 1})
		}
		s.pass(50 * time.Millisecond)
	}
	// A quarter of a second at 5 ms each, and one more per tick, because a decision that has begun is finished.
	if n := s.counts.allocations - before; n < 40 || n > 80 {
		t.Errorf("%d decisions in a second, expected 50", n)
	}
	watchers[0].choose(-1, signal.Only(0))
	s.pass(subscriber.SpacingFactor * s.cost)
	watchers[0].expectCarried("0 0 0 0")
}

// TestOneSlowDecisionIsNotPaidForLong checks that after slow urgent decisions other decisions resume within one second.
func TestOneSlowDecisionIsNotPaidForLong(t *testing.T) {
	s := newStage(t, nil)
	s.enter("alice", false, false, ladder(4, 3))
	bob := s.watches("bob", 5e6)
	s.pass(time.Second)
	s.cost = 10 * time.Second
	bob.choose(-1, signal.Only(0))
	bob.choose(-1, signal.Auto())
	s.pass(s.room.node.config.AllocationInterval)
	s.cost = 0
	bob.say(&signal.Viewpoint{Position: signal.Vector{1, 0, 3}, Orientation: signal.Rotation{0, 0, 0, 1}, FOV: 60,
		Aspect: 1})
	before := s.counts.allocations
	s.pass(500 * time.Millisecond)
	if n := s.counts.allocations - before; n != 0 {
		t.Errorf("%d decisions in the half second after one of ten, expected none", n)
	}
	s.pass(time.Second)
	if s.counts.allocations == before {
		t.Error("no decision in the second after one of ten")
	}
}

// TestQualitiesThatCostTheSame checks that qualities with the same rate are distinguished by their order.
func TestQualitiesThatCostTheSame(t *testing.T) {
	s := newStage(t, nil)
	body := ladder(2, 3)
	for q := range body.Qualities {
		body.Qualities[q].Bitrate = 1_200_000 - volumetric.Bitrate(q)*10_000
	}
	s.enter("alice", false, false, body)
	bob := s.watches("bob", 10e6)
	bob.expectCarried("2 2")
}
