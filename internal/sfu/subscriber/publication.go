package subscriber

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Publication is a publication as its subscribers see it. All subscribers of a room share it.
type Publication struct {
	Ref         volumetric.PublicationRef
	Description volumetric.Publication
	// Number is the publisher's number, for clients that know publishers by numbers; 0 if the publisher has none.
	Number uint32
	// Tracks are indexed by tile × qualities + quality.
	Tracks []*track.Track
	// Groups are by track the number of what shares frame numbers and RTP timestamps with it: the whole publication if
	// it is framed by payload v1, else the track alone.
	Groups []uint64

	Levels *Levels
	Place  Place
	Demand *demand.Publication
}

// NewPublication returns a publication without tracks, which is in its publisher's place.
func NewPublication(owner string, description volumetric.Publication) *Publication {
	p := &Publication{
		Ref:         volumetric.PublicationRef{Participant: owner, Publication: description.Name},
		Description: description,
	}
	p.Levels = newLevels(&p.Description)
	p.Demand = demand.New(p.Ref, len(description.Tiles), len(description.Qualities))
	return p
}

// AddTrack adds the next track, in the order of tiles and then of qualities.
func (p *Publication) AddTrack(track *track.Track, group uint64) {
	p.Tracks = append(p.Tracks, track)
	p.Groups = append(p.Groups, group)
	p.Levels.SetMeter(len(p.Tracks)-1, track)
}

// Measure reads the rates of the tracks that the publisher sends, and reports whether any has changed.
func (p *Publication) Measure(now time.Time) bool {
	return p.Levels.measure(now, func(tile int, q volumetric.Quality) bool {
		return !p.Demand.Paused(tile, q) && !p.Levels.gaveUp[tile].Has(q)
	})
}

// Track returns the track of a tile at a quality and its group; nil for volumetric.QualityOff.
func (p *Publication) Track(tile int, quality volumetric.Quality) (*track.Track, uint64) {
	if quality < 0 {
		return nil, 0
	}
	i := p.index(tile, quality)
	return p.Tracks[i], p.Groups[i]
}

// index is that of a track among those of the publication.
func (p *Publication) index(tile int, quality volumetric.Quality) int {
	return tile*len(p.Description.Qualities) + int(quality)
}

// QualityOf returns the quality of one of the publication's tracks, false if the track is not one of them.
func (p *Publication) QualityOf(t *track.Track) (volumetric.Quality, bool) {
	for i, track := range p.Tracks {
		if track == t {
			return volumetric.Quality(i % len(p.Description.Qualities)), true
		}
	}
	return 0, false
}

// Target is what one slot carries: a tile, or in volumetric.ModeDescriptions one quality of a tile.
type Target struct {
	Publication *Publication
	Tile        volumetric.TileRef
	// Description is the quality in volumetric.ModeDescriptions, nil in volumetric.ModeAlternatives.
	Description *volumetric.Quality
}

// targets returns what the slots of a receiver carry of the publication.
func (p *Publication) targets() []Target {
	var targets []Target
	for tile := range p.Description.Tiles {
		ref := volumetric.TileRef{PublicationRef: p.Ref, Tile: tile}
		if p.Description.Mode == volumetric.ModeAlternatives {
			targets = append(targets, Target{Publication: p, Tile: ref})
			continue
		}
		for q := range p.Description.Qualities {
			quality := volumetric.Quality(q)
			targets = append(targets, Target{Publication: p, Tile: ref, Description: &quality})
		}
	}
	return targets
}

// Changes count the changes that concern every subscriber of a room.
type Changes struct {
	// Offered counts changes of what publishers send at all, Rates changes of the rates of tracks, and Motion those of
	// the places of objects.
	Offered, Rates, Motion uint64
}
