package synthetic

import (
	"math/bits"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// TestLabelsAreBodyParts checks that every point belongs to a body part and is at its position.
func TestLabelsAreBodyParts(t *testing.T) {
	var cloud pointcloud.Cloud
	figure := small()
	figure.At(0, &cloud)
	if len(cloud.Labels) != cloud.Len() || len(cloud.Sources) != cloud.Len() {
		t.Fatalf("%d labels and %d sources of %d points", len(cloud.Labels), len(cloud.Sources), cloud.Len())
	}
	names := make(map[uint16]string)
	for _, part := range Parts() {
		for _, label := range part.Labels {
			names[label] = part.Name
		}
	}
	counts := make(map[string]int)
	for i, p := range figure.rest {
		name := names[cloud.Labels[i]]
		counts[name]++
		var right bool
		switch name {
		case "head":
			right = p[1] > 1.4
		case "torso":
			right = p[1] > 0.75 && p[1] < 1.53
		case "left arm", "left hand":
			right = p[0] > 0.1 && p[1] > 0.7
		case "right arm", "right hand":
			right = p[0] < -0.1 && p[1] > 0.7
		case "left leg":
			right = p[0] > -0.03 && p[1] < 1.01
		case "right leg":
			right = p[0] < 0.03 && p[1] < 1.01
		}
		if !right {
			t.Errorf("%v is labelled %q", p, name)
		}
	}
	if len(counts) != len(Parts()) {
		t.Errorf("the figure has %v, want all parts", counts)
	}
	for name, n := range counts {
		if n < cloud.Len()/100 {
			t.Errorf("%q has %d points of %d", name, n, cloud.Len())
		}
	}
}

// TestSourcesMatchTheViewOfCameras checks the visibility from each camera: the front two cameras see
// the face, no camera sees both of two opposite sides, and some combinations never occur.
func TestSourcesMatchTheViewOfCameras(t *testing.T) {
	var cloud pointcloud.Cloud
	figure := small()
	figure.At(seconds(3), &cloud)
	sets := make(map[uint16]int)
	for i, set := range cloud.Sources {
		if set == 0 || set >= 1<<Cameras {
			t.Fatalf("point %d is seen by the set %b", i, set)
		}
		sets[set]++
		if p := figure.rest[i]; p[1] > 1.55 && p[2] > 0.09 && p[0] > -0.01 && p[0] < 0.01 && set&3 == 0 {
			t.Errorf("the nose at %v is seen by the set %04b, want a camera in front", p, set)
		}
	}
	shared := 0
	for set, n := range sets {
		if bits.OnesCount16(set) > 1 {
			shared += n
		}
	}
	t.Logf("%d sets of cameras, %v", len(sets), sets)
	if len(sets) < 6 || len(sets) == 15 || shared == 0 || shared == cloud.Len() {
		t.Errorf("sets %v, want several but not all, some of one camera and some of more", sets)
	}
}
