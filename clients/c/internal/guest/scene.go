package guest

import (
	"cmp"
	"math"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
)

// sight converts a viewpoint to the session's form, for validation by the server's rules.
func sight(v client.Viewpoint) *signal.Viewpoint {
	return &signal.Viewpoint{
		Position:    v.Position,
		Orientation: rotation(v.Orientation),
		FOV:         cmp.Or(v.FOV, math.Pi/3) * 180 / math.Pi,
		Aspect:      cmp.Or(v.Aspect, 1),
	}
}

// stand converts a pose to the session's form.
func stand(publication string, pose client.Pose) *signal.Pose {
	return &signal.Pose{
		Publication: publication,
		Position:    pose.Position,
		Orientation: rotation(pose.Orientation),
		Scale:       pose.Scale,
		Boxes:       pose.Boxes,
		Priority:    pose.Priority,
	}
}

func rotation(q [4]float64) signal.Rotation {
	if q == ([4]float64{}) {
		return signal.Rotation{0, 0, 0, 1}
	}
	return q
}
