package calibrate

import (
	"fmt"
	"math"
	"strings"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/extrinsics"
)

const (
	// leastCorners is the least number of corners of a view that counts.
	leastCorners = 8
	// mostMovement is the greatest movement of a board that is held still, from frame to frame, in pixels: cameras
	// capture at different times within a frame.
	mostMovement = 0.75
	// leastDistance is the least distance of a place of the board from the places before, in shares of the width of
	// the picture.
	leastDistance = 0.03
)

// album keeps views of the board at different places.
type album struct {
	cameras []depth.Camera
	moving  bool
	views   []extrinsics.View
	shots   int
	// before has the views of the frame before.
	before []extrinsics.View
}

func newAlbum(cameras []depth.Camera, moving bool) *album {
	return &album{cameras: cameras, moving: moving}
}

// offer takes the views of a frame, by camera, as a shot if the board is held still at a place that is not yet known.
// The result reports whether the frame is a shot.
func (a *album) offer(views []extrinsics.View) bool {
	before := a.before
	a.before = views
	seen := false
	for i, v := range views {
		if len(v.Sights) < leastCorners {
			continue
		}
		seen = true
		if a.moving {
			continue
		}
		if before == nil || movement(before[i], v) > mostMovement {
			return false
		}
	}
	if !seen || a.known(views) {
		return false
	}
	for _, v := range views {
		if len(v.Sights) >= leastCorners {
			v.Shot = a.shots
			a.views = append(a.views, v)
		}
	}
	a.shots++
	return true
}

// known reports whether one of the shots has the board at the same place for all cameras that see it.
func (a *album) known(views []extrinsics.View) bool {
	for shot := range a.shots {
		same := true
		for _, v := range views {
			if len(v.Sights) < leastCorners {
				continue
			}
			found := false
			for _, other := range a.views {
				if other.Shot == shot && other.Camera == v.Camera {
					found = movement(other, v) <= leastDistance*float64(a.cameras[v.Camera].Width)
				}
			}
			same = same && found
		}
		if same {
			return true
		}
	}
	return false
}

// movement returns the mean distance of the corners that both views have, in pixels; infinity if there are none.
func movement(a, b extrinsics.View) float64 {
	places := make(map[[3]float64]extrinsics.Sight, len(a.Sights))
	for _, s := range a.Sights {
		places[s.Board] = s
	}
	sum, count := 0.0, 0
	for _, s := range b.Sights {
		if other, ok := places[s.Board]; ok {
			sum += math.Hypot(s.U-other.U, s.V-other.V)
			count++
		}
	}
	if count == 0 {
		return math.Inf(1)
	}
	return sum / float64(count)
}

// describe returns the number of corners of each camera.
func (a *album) describe(views []extrinsics.View) string {
	var text strings.Builder
	for i, v := range views {
		fmt.Fprintf(&text, " %s %d corners", a.cameras[i].Name, len(v.Sights))
		if i < len(views)-1 {
			text.WriteByte(',')
		}
	}
	return text.String()
}
