package sfu

import (
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// publication is one object that a participant publishes. Its subscribers see the embedded view.
type publication struct {
	*subscriber.Publication
	// id is never used twice, as names are.
	id uint64
	// encoded is how many bytes of JSON the description has.
	encoded int
	// silent says that the others have not been told of the publication, since its first frame has yet to come.
	silent bool
}

// newPublication makes the tracks of a publication. nextGroup returns numbers that are never used twice. converted says
// that the publication comes in VR2Gather's own packets.
func newPublication(
	engine *forward.Engine, owner string, description volumetric.Publication, converted bool, nextGroup func() uint64,
) *publication {
	p := &publication{Publication: subscriber.NewPublication(owner, description), id: nextGroup()}
	framed := description.Codec.Is(volumetric.MIMEVolumetric)
	group := nextGroup()
	for range description.Tiles {
		for q := range description.Qualities {
			if !framed {
				group = nextGroup()
			}
			p.AddTrack(engine.NewTrack(track.Config{
				Codec: description.Codec, Quality: volumetric.Quality(q), Group: group, VR2Gather: converted,
			}), group)
		}
	}
	return p
}

// close ends the tracks.
func (p *publication) close() {
	for _, t := range p.Tracks {
		t.Close()
	}
}
