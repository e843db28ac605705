package sfu

import (
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/sfu/peer"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// publication is one object that a participant publishes. The subscribers use the embedded Publication.
type publication struct {
	*subscriber.Publication
	// id is unique, unlike the name.
	id uint64
	// encoded is the length of the description as JSON, in bytes.
	encoded int
	// silent is set until the publication is announced to the others. A converted publication waits for its first
	// frame.
	silent bool
	// unconfirmed is set while the client of an adopted session has not published the publication again, though the
	// record of the session was lost.
	unconfirmed bool
	// mute is the muting of the publication.
	mute signal.MuteState
}

// newPublication creates a publication and its tracks. nextGroup returns unique numbers. converted is set if the
// publisher sends VR2Gather packets.
func newPublication(
	engine *forward.Engine, owner string, description volumetric.Publication, converted bool, nextGroup func() uint64,
) *publication {
	p := &publication{
		Publication: subscriber.NewPublication(owner, description), id: nextGroup(),
		mute: signal.MuteState{Publication: description.Name},
	}
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

// line identifies a track that needs a line.
func (p *publication) line(tile, quality int) peer.Track {
	return peer.Track{
		ID:          p.id,
		Publication: p.Description.Name,
		Kind:        p.Description.Kind,
		Tile:        tile,
		Quality:     volumetric.Quality(quality),
	}
}

// close ends the tracks.
func (p *publication) close() {
	for _, t := range p.Tracks {
		t.Close()
	}
}
