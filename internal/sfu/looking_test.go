package sfu

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// around is a table at the origin with one person on each side, at a distance of 3 m along x, and a receiver in the
// middle that looks along x.
type around struct {
	*stage
	left, right, eye *player
}

func newAround(t *testing.T, adjust func(*Config)) *around {
	s := newStage(t, adjust)
	a := &around{stage: s, left: s.enter("left", false, true, ladder(4, 3)),
		right: s.enter("right", false, true, ladder(4, 3)), eye: s.enter("eye", true, false)}
	for x, p := range map[float64]*player{-3: a.left, 3: a.right} {
		// The four tiles of one metre each are as wide as a person.
		p.say(&signal.Pose{Publication: "body", Position: signal.Vector{x, 0, 0},
			Orientation: signal.Rotation{0, math.Sqrt2 / 2, 0, math.Sqrt2 / 2}, Scale: 0.2})
	}
	a.eye.way.path = known(200e6)
	a.eye.attach()
	a.pass(100 * time.Millisecond)
	return a
}

// look turns the viewpoint to an angle from the left person, in degrees.
func (a *around) look(degrees float64) {
	// Without a rotation the view is along -z, and after a quarter turn to the left along -x.
	half := (90 - degrees) * math.Pi / 360
	a.eye.say(&signal.Viewpoint{Orientation: signal.Rotation{0, math.Sin(half), 0, math.Cos(half)}, FOV: 60,
		Aspect: 1.5})
	a.eye.begin()
}

// takes returns the rate of the decided qualities of one person.
func (a *around) takes(who *player) (rate volumetric.Bitrate) {
	for _, slot := range a.eye.subscriber.Slots.All() {
		if slot.Target != nil && slot.Target.Publication.Ref.Participant == who.Identity && slot.Quality >= 0 {
			rate += slot.Target.Publication.Levels.Rate(slot.Target.Tile.Tile, slot.Quality)
		}
	}
	return rate
}

// TestTracksOutOfSightAreReduced uses a link that carries everything. The receiver gets a quarter of the rate of a
// person behind it, and the full rate as soon as it reports a turn. The publisher has paused the unused tracks and is
// asked for them in the same step.
func TestTracksOutOfSightAreReduced(t *testing.T) {
	a := newAround(t, nil)
	const full, spared = 16e6, 4e6
	a.look(0)
	for turns, degrees := range []float64{0, 180, 0, 179, 40, 180} {
		a.look(degrees)
		seen, unseen := a.left, a.right
		if degrees > 90 {
			seen, unseen = unseen, seen
		}
		if got := a.takes(seen); got != full {
			t.Fatalf("turn %d: the person in sight has %v at the time of the report, expected %v", turns, got,
				volumetric.Bitrate(full))
		}
		if got := a.takes(unseen); got != spared {
			t.Fatalf("turn %d: the person out of sight has %v, expected %v", turns, got, volumetric.Bitrate(spared))
		}
		for tile, asked := range strings.Split(seen.asked(), ",") {
			if asked != "" && !strings.Contains(asked, "2") {
				t.Fatalf("turn %d: the publisher in sight is asked for qualities %s of tile %d", turns, asked, tile)
			}
		}
		// This is half a second after the decision of every second, so that another decision is not too soon.
		a.pass(4*time.Second + 500*time.Millisecond)
		unseen.expectAsked("01,01,01,01")
		a.eye.begin()
	}
	told := expect[*signal.Bandwidth](t, a.eye.shelf, 1)
	if told.Allocated != full+spared || told.Wanted != 2*full {
		t.Errorf("told %+v, expected %v of %v: objects out of sight count as wanted", told,
			volumetric.Bitrate(full+spared), volumetric.Bitrate(2*full))
	}
	for _, slot := range a.eye.subscriber.Slots.All() {
		if slot.Quality == 0 && slot.Reason != signal.ReasonUnseen {
			t.Errorf("a tile is at its lowest quality for the reason %q", slot.Reason)
		}
		unseen := slot.Reason == signal.ReasonUnseen
		if out, ok := slot.Output.(*playedSlot); ok && slot.Target != nil && out.seen == unseen {
			t.Errorf("a tile with the reason %q counts as seen: %v", slot.Reason, out.seen)
		}
	}
}

// TestChoicesAreSentOutOfSight checks that an explicit choice is sent even out of sight.
func TestChoicesAreSentOutOfSight(t *testing.T) {
	a := newAround(t, nil)
	a.look(0)
	right := volumetric.PublicationRef{Participant: "right", Publication: "body"}
	a.eye.say(&signal.SetQuality{Choices: []signal.Choice{{PublicationRef: right, Quality: signal.Only(2)}}})
	a.pass(100 * time.Millisecond)
	if got := a.takes(a.right); got != 16e6 {
		t.Errorf("the chosen object has %v, expected the full rate", got)
	}
}

// TestAHeadAtRestCausesNoChanges checks that a viewpoint at rest, and small motion with a person at the edge of the
// view, cause no changes.
func TestAHeadAtRestCausesNoChanges(t *testing.T) {
	a := newAround(t, nil)
	changes := func() (n int) {
		for _, slot := range a.eye.subscriber.Slots.All() {
			n += slot.Output.(*playedSlot).changes
		}
		return n
	}
	// The view is 82° wide. The left person is out of sight beyond an angle of 61°, minus the width of the person.
	for degrees := 0.0; degrees < 90; degrees += 1.5 {
		a.look(degrees)
		a.pass(400 * time.Millisecond)
		before := changes()
		for range 4 {
			for _, tremble := range []float64{1, -1, 0} {
				a.look(degrees + tremble)
				a.pass(100 * time.Millisecond)
			}
		}
		if n := changes() - before; n > 8 {
			t.Fatalf("at %g°: %d changes of eight tiles while the eye trembles", degrees, n)
		}
	}
}

// TestUnseenIsConfigured checks the values of the setting for tiles out of sight.
func TestUnseenIsConfigured(t *testing.T) {
	for unseen, want := range map[string]volumetric.Bitrate{allocate.UnseenFull: 16e6, allocate.UnseenLowest: 4e6,
		allocate.UnseenOff: 0} {
		a := newAround(t, func(c *Config) { c.Allocation.View.Unseen = unseen })
		a.look(0)
		a.pass(time.Second)
		if got := a.takes(a.right); got != want {
			t.Errorf("%s: the person out of sight has %v, expected %v", unseen, got, want)
		}
	}
}

// TestViewpointsHaveTheClockOfClients checks that the timestamp of a viewpoint counts on a server whose clients see
// another clock than that of its host.
func TestViewpointsHaveTheClockOfClients(t *testing.T) {
	for _, offset := range []time.Duration{0, -50 * time.Millisecond, 37 * time.Second} {
		c := DefaultConfig()
		c.ClockOffset = offset
		looked := start.Add(-20 * time.Millisecond)
		m := &signal.Viewpoint{At: c.clock(looked), Orientation: signal.Rotation{0, 0, 0, 1}, FOV: 60, Aspect: 1.5}
		if v := c.viewpoint(m, start); !v.At.Equal(looked) {
			t.Errorf("with a clock %v ahead, a viewpoint is %v old, expected 20 ms", offset, start.Sub(v.At))
		}
		m.At = 0
		if v := c.viewpoint(m, start); !v.At.Equal(start) {
			t.Errorf("with a clock %v ahead, a viewpoint without a time is %v old", offset, start.Sub(v.At))
		}
	}
}
