package publish

import (
	"errors"
	"math"
	"testing"

	"github.com/volsfu/volsfu/pkg/client"
)

func TestPoses(t *testing.T) {
	half := math.Sqrt(0.5)
	for text, want := range map[string]client.Pose{
		"1,0,-2":        {Position: [3]float64{1, 0, -2}, Orientation: [4]float64{0, 0, 0, 1}},
		"0, 0.5, 3, 90": {Position: [3]float64{0, 0.5, 3}, Orientation: [4]float64{0, half, 0, half}},
	} {
		got, err := parsePose(text)
		if err != nil || got.Position != want.Position || math.Abs(got.Orientation[1]-want.Orientation[1]) > 1e-9 ||
			math.Abs(got.Orientation[3]-want.Orientation[3]) > 1e-9 {
			t.Errorf("%q: got %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1,2", "1,2,3,4,5", "1,two,3", "1,NaN,3", "1,2,1e9", "Inf,0,0"} {
		if _, err := parsePose(text); !errors.Is(err, errPose) {
			t.Errorf("%q: got %v, want an error around %v", text, err, errPose)
		}
	}
}
