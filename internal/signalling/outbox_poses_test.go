package signalling

import (
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestNewerPosesTakeThePlaceOfOlderOnes checks that only the latest pose of each object waits for a client, so that
// poses alone do not fill its queue.
func TestNewerPosesTakeThePlaceOfOlderOnes(t *testing.T) {
	o := &outbox{Writer: NewWriter(nil, &Config{Backlog: 4}), poses: make(map[volumetric.PublicationRef]int)}
	pose := func(publication string, x float64, boxes ...volumetric.BoundingBox) {
		t.Helper()
		if !o.Send(&signal.Pose{Participant: "ada", Publication: publication, Position: signal.Vector{x, 0, 0},
			Boxes: boxes}) {
			t.Fatal("the queue is full")
		}
	}
	pose("body", 0, volumetric.BoundingBox{})
	pose("desk", 0)
	for i := range 100 {
		pose("body", float64(i))
	}
	waiting, _, _ := o.Take()
	if len(waiting) != 2 {
		t.Fatalf("%d messages wait, expected one for each object", len(waiting))
	}
	if body := waiting[0].(*signal.Pose); body.Position[0] != 99 || len(body.Boxes) != 1 {
		t.Errorf("the first is %+v, expected x 99 and the boxes of the pose before", body)
	}
	pose("body", 1)
	o.Send(&signal.Unpublished{})
	pose("body", 2)
	if waiting, _, _ := o.Take(); len(waiting) != 3 || waiting[0].(*signal.Pose).Position[0] != 1 ||
		waiting[2].(*signal.Pose).Position[0] != 2 {
		t.Errorf("%d messages wait, expected the pose of the former object before its end and that of the next behind",
			len(waiting))
	}
}

// TestFrameTimesAreDroppedFirst checks that a slow client loses frame times and is not disconnected because of them.
func TestFrameTimesAreDroppedFirst(t *testing.T) {
	o := &outbox{Writer: NewWriter(nil, &Config{Backlog: 4}), poses: make(map[volumetric.PublicationRef]int)}
	for range 10 {
		if !o.Send(&signal.FrameTimes{}) {
			t.Fatal("the queue is full of times of frames")
		}
	}
	for range 2 {
		if !o.Send(&signal.OK{}) {
			t.Fatal("there is no room for anything else")
		}
	}
	if o.Send(&signal.OK{}) {
		t.Error("the queue has no end")
	}
	if waiting, _, _ := o.Take(); len(waiting) != 4 {
		t.Errorf("%d messages wait, expected 4", len(waiting))
	}
}
