package sfu

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func poseAt(x float64, boxes ...volumetric.BoundingBox) *signal.Pose {
	return &signal.Pose{Publication: "body", Position: signal.Vector{x, 0, 0}, Orientation: signal.Rotation{0, 0, 0, 1},
		Boxes: boxes}
}

// TestPosesArePassedOn checks that poses are forwarded at most 30 times per second, that the latest pose always is, and
// that new participants receive it.
func TestPosesArePassedOn(t *testing.T) {
	s := newStage(t, nil)
	alice := s.enter("alice", false, false, ladder(2, 1))
	bob := s.enter("bob", true, false)
	boxes := []volumetric.BoundingBox{{Max: [3]float32{1, 1, 1}}, {Max: [3]float32{2, 2, 2}}}
	alice.say(poseAt(0, boxes...))
	first, n := latest[*signal.Pose](bob.shelf)
	if n != 1 || first.Participant != "alice" || len(first.Boxes) != 2 {
		t.Fatalf("%d poses, the last %+v", n, first)
	}
	for i := range 120 {
		s.pass(time.Second / 120)
		alice.say(poseAt(float64(i)))
	}
	if _, n := latest[*signal.Pose](bob.shelf); n < 28 || n > 32 {
		t.Errorf("%d poses in a second, expected 30", n)
	}
	s.pass(50 * time.Millisecond)
	last, _ := latest[*signal.Pose](bob.shelf)
	if last.Position[0] != 119 || len(last.Boxes) != 0 {
		t.Errorf("the last is %+v, expected x 119 and no boxes, which have not changed", last)
	}
	if _, n := latest[*signal.Pose](alice.shelf); n != 0 {
		t.Error("the publisher hears itself")
	}
	carol := s.enter("carol", true, false)
	if told, n := latest[*signal.Pose](carol.shelf); n != 1 || told.Position[0] != 119 || len(told.Boxes) != 2 {
		t.Errorf("a new participant received %d poses, last %+v, expected one with boxes", n, told)
	}
	// Boxes that wait are kept if a pose without boxes follows.
	alice.say(poseAt(120), poseAt(121, boxes...), poseAt(122))
	s.pass(50 * time.Millisecond)
	if told, _ := latest[*signal.Pose](bob.shelf); told.Position[0] != 122 || len(told.Boxes) != 2 {
		t.Errorf("told %+v, expected x 122, with boxes", told)
	}
}

func TestPosesThatAreRefused(t *testing.T) {
	s := newStage(t, nil)
	alice := s.enter("alice", false, false, ladder(2, 1))
	for want, m := range map[signal.Code]*signal.Pose{
		signal.CodeInvalid:  poseAt(0, volumetric.BoundingBox{}),
		signal.CodeNotFound: {Publication: "desk", Orientation: signal.Rotation{0, 0, 0, 1}},
	} {
		s.room.do(s.now, messageRequest{participant: alice.participant, outbox: alice.shelf, message: m, at: s.now})
		if refused, _ := latest[*signal.Error](alice.shelf); refused == nil || refused.Code != want {
			t.Errorf("got %v, expected %q", refused, want)
		}
	}
}
