package watch

import (
	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/internal/peer/render"
	"github.com/volsfu/volsfu/internal/peer/viewtrace"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// spectator sends the viewpoint to the server and to the screen.
type spectator struct {
	session viewtrace.Viewer
	screen  *render.Screen // nil if nothing is rendered
}

// SetViewpoint implements viewtrace.Viewer.
func (s spectator) SetViewpoint(v client.Viewpoint) {
	s.session.SetViewpoint(v)
	if s.screen != nil {
		s.screen.Look(render.View{Position: v.Position, Orientation: v.Orientation, FOV: v.FOV})
	}
}

// placeOf converts a pose.
func placeOf(p *client.Pose) render.Place {
	return render.Place{Position: p.Position, Orientation: p.Orientation, Scale: p.Scale}
}

// boxOf returns the bounding box of a publication's tiles.
func boxOf(p *volumetric.Publication) (all volumetric.BoundingBox) {
	for i, tile := range p.Tiles {
		if i == 0 {
			all = tile.Box
		}
		for axis := range all.Min {
			all.Min[axis], all.Max[axis] = min(all.Min[axis], tile.Box.Min[axis]),
				max(all.Max[axis], tile.Box.Max[axis])
		}
	}
	return all
}

// rendered converts the statistics of a screen.
func rendered(s render.Stats) *summary.Render {
	return &summary.Render{
		Drawn:           s.Drawn,
		Superseded:      s.Superseded,
		Wait:            s.Wait.Percentiles(),
		Draw:            s.Draw.Percentiles(),
		Latency:         s.Latency.Percentiles(),
		Pictures:        s.Written,
		PicturesDropped: s.Dropped,
	}
}
