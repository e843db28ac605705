package sfu

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// publication is one object that a participant publishes, with its tracks.
type publication struct {
	// number is never used twice, as names are.
	number      uint64
	ref         volumetric.PublicationRef
	description volumetric.Publication
	// encoded is how many bytes of JSON the description has.
	encoded int
	// client is the number that VR2Gather peers know the publisher by. silent says that nobody has been told of the publication, since its first frame has
	// yet to come.
	client uint32
	silent bool
	// tracks are indexed by tile × qualities + quality.
	tracks []*forward.Track
	// groups name what shares frame numbers and RTP timestamps: the whole publication where it is framed by payload v1, else each track.
	groups []uint64

	levels *levels
	demand demand
	place  place
	// suppression is nil where the publisher does not pause tracks.
	suppression *suppression
	wanting     wanting
}

// newPublication makes the tracks of a publication. nextGroup gives numbers that are never used twice.
// converted says that it comes in VR2Gather's own packets.
func newPublication(engine *forward.Engine, owner string, description volumetric.Publication, converted bool, nextGroup func() uint64) *publication {
	p := describePublication(owner, description)
	p.number = nextGroup()
	framed := description.Codec.Is(volumetric.MIMEVolumetric)
	group := nextGroup()
	for range description.Tiles {
		for q := range description.Qualities {
			if !framed {
				group = nextGroup()
			}
			p.groups = append(p.groups, group)
			config := forward.TrackConfig{Codec: description.Codec, Quality: volumetric.Quality(q), Group: group, VR2Gather: converted}
			track := engine.NewTrack(config)
			p.tracks = append(p.tracks, track)
			p.levels.meters = append(p.levels.meters, track)
		}
	}
	return p
}

// describePublication is a publication without tracks.
func describePublication(owner string, description volumetric.Publication) *publication {
	p := &publication{
		ref:         volumetric.PublicationRef{Participant: owner, Publication: description.Name},
		description: description,
		demand:      newDemand(len(description.Tiles), len(description.Qualities)),
	}
	p.levels = newLevels(&p.description)
	return p
}

// paused tells whether the publisher has been told that nobody takes the track.
func (p *publication) paused(tile int, q volumetric.Quality) bool {
	return p.suppression != nil && p.suppression.paused(tile, q)
}

// measure reads the rates of the tracks that come, and reports whether any has changed.
func (p *publication) measure(now time.Time) bool {
	return p.levels.measure(now, func(tile int, q volumetric.Quality) bool { return !p.paused(tile, q) && !p.levels.gaveUp[tile].Has(q) })
}

// track gives the track of a tile at a quality and its group; nil for volumetric.QualityOff.
func (p *publication) track(tile int, quality volumetric.Quality) (*forward.Track, uint64) {
	if quality < 0 {
		return nil, 0
	}
	i := p.index(tile, quality)
	return p.tracks[i], p.groups[i]
}

// index is that of a track among those of the publication.
func (p *publication) index(tile int, quality volumetric.Quality) int {
	return tile*len(p.description.Qualities) + int(quality)
}

// targets are what the slots of a receiver carry of the publication.
func (p *publication) targets() []target {
	var targets []target
	for tile := range p.description.Tiles {
		ref := volumetric.TileRef{PublicationRef: p.ref, Tile: tile}
		if p.description.Mode == volumetric.ModeAlternatives {
			targets = append(targets, target{publication: p, tile: ref})
			continue
		}
		for q := range p.description.Qualities {
			quality := volumetric.Quality(q)
			targets = append(targets, target{publication: p, tile: ref, description: &quality})
		}
	}
	return targets
}

// close ends the tracks.
func (p *publication) close() {
	for _, t := range p.tracks {
		t.Close()
	}
}

// target is what one slot carries: a tile, or in volumetric.ModeDescriptions one quality of a tile.
type target struct {
	publication *publication
	tile        volumetric.TileRef
	description *volumetric.Quality
}

// qualityOf finds the quality that a track has in the publication.
func (p *publication) qualityOf(t *forward.Track) (volumetric.Quality, bool) {
	for i, track := range p.tracks {
		if track == t {
			return volumetric.Quality(i % len(p.description.Qualities)), true
		}
	}
	return 0, false
}
