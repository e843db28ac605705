package presence

import (
	"slices"
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Publication is one object that a participant publishes. The subscribers use the embedded Publication.
type Publication struct {
	*subscriber.Publication
	// ID is unique, unlike the name.
	ID uint64
	// Encoded is the length of the description as JSON, in bytes.
	Encoded int
	// Silent is set until the publication is announced to the others. A converted publication waits for its first
	// frame.
	Silent bool
	// Unconfirmed is set while the client of an adopted session has not published the publication again, though the
	// record of the session was lost.
	Unconfirmed bool
	// Mute is the muting of the publication.
	Mute signal.MuteState
}

// groups numbers publications, and groups of tracks that share frame numbers and timestamps, for the whole process.
var groups atomic.Uint64

func nextGroup() uint64 { return groups.Add(1) }

// NewPublication creates a publication and its tracks. converted is set if the publisher sends VR2Gather packets.
func NewPublication(
	engine *forward.Engine, owner string, description volumetric.Publication, converted bool,
) *Publication {
	p := &Publication{
		Publication: subscriber.NewPublication(owner, description), ID: nextGroup(),
		Mute: signal.MuteState{Publication: description.Name},
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

// Close ends the tracks.
func (p *Publication) Close() {
	for _, t := range p.Tracks {
		t.Close()
	}
}

// Muted reports whether the publication is not forwarded.
func (p *Publication) Muted() bool { return p.Mute.Own || p.Mute.Operator }

// Announced returns the publications that have been announced to the others.
func Announced(publications []*Publication) []*Publication {
	return slices.DeleteFunc(slices.Clone(publications), func(p *Publication) bool { return p.Silent })
}

// Audible returns the publications that are not muted.
func Audible(publications []*Publication) []*Publication {
	return slices.DeleteFunc(slices.Clone(publications), (*Publication).Muted)
}

// DescribedBytes returns the length of the descriptions of publications as JSON, in bytes.
func DescribedBytes(publications []*Publication) (sum int) {
	for _, p := range publications {
		sum += p.Encoded
	}
	return sum
}

// Fits reports whether a pose has no boxes, or one for each tile of the publication.
func (p *Publication) Fits(pose *signal.Pose) bool {
	return len(pose.Boxes) == 0 || len(pose.Boxes) == len(p.Description.Tiles)
}
