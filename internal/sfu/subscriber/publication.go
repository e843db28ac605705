package subscriber

import (
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Publication is the view of a publication that all subscribers of a room share.
type Publication struct {
	Ref         volumetric.PublicationRef
	Description volumetric.Publication
	// Number is the publisher's number for VR2Gather clients, 0 if the publisher has none.
	Number uint32
	// Tracks are indexed by tile × qualities + quality.
	Tracks []*track.Track
	// Groups has for each track the number of the group that shares frame numbers and RTP timestamps: the whole
	// publication if it is framed by payload v1, otherwise the track alone.
	Groups []uint64

	Levels *Levels
	Place  Place
	// Beside is the publication whose pose a picture without a pose of its own has, nil if there is none.
	Beside *Publication
	Demand *demand.Publication
}

// NewPublication returns a publication of owner without tracks.
func NewPublication(owner string, description volumetric.Publication) *Publication {
	p := &Publication{
		Ref:         volumetric.PublicationRef{Participant: owner, Publication: description.Name},
		Description: description,
	}
	p.Levels = newLevels(&p.Description)
	p.Demand = demand.New(p.Ref, len(description.Tiles), len(description.Qualities))
	return p
}

// pose returns the pose of the publication for a receiver: as the receiver has arranged it, else as published.
func (p *Publication) pose(arranged map[volumetric.PublicationRef]allocate.Pose) allocate.Pose {
	if pose, ok := arranged[p.Ref]; ok {
		return pose
	}
	if p.Place.Latest() == nil && p.Beside != nil {
		return p.Beside.pose(arranged)
	}
	return p.Place.pose()
}

// AddTrack adds the next track, in the order of tiles and then of qualities.
func (p *Publication) AddTrack(track *track.Track, group uint64) {
	p.Tracks = append(p.Tracks, track)
	p.Groups = append(p.Groups, group)
	p.Levels.SetMeter(len(p.Tracks)-1, track)
}

// Measure reads the rates of the tracks that the publisher sends and reports whether any rate has changed.
func (p *Publication) Measure(now time.Time) bool {
	return p.Levels.measure(now, func(tile int, q volumetric.Quality) bool {
		return !p.Demand.Paused(tile, q) && !p.Levels.gaveUp[tile].Has(q)
	})
}

// Track returns the track of a tile at a quality and the track's group; nil for volumetric.QualityOff.
func (p *Publication) Track(tile int, quality volumetric.Quality) (*track.Track, uint64) {
	if quality < 0 {
		return nil, 0
	}
	i := p.index(tile, quality)
	return p.Tracks[i], p.Groups[i]
}

// index returns the index of a track in Tracks.
func (p *Publication) index(tile int, quality volumetric.Quality) int {
	return tile*len(p.Description.Qualities) + int(quality)
}

// QualityOf returns the quality of a track, false if the track does not belong to the publication.
func (p *Publication) QualityOf(t *track.Track) (volumetric.Quality, bool) {
	for i, track := range p.Tracks {
		if track == t {
			return volumetric.Quality(i % len(p.Description.Qualities)), true
		}
	}
	return 0, false
}

// Target is the content of one slot: a tile, or in volumetric.ModeDescriptions one quality of a tile.
type Target struct {
	Publication *Publication
	Tile        volumetric.TileRef
	// Description is the quality in volumetric.ModeDescriptions, nil in volumetric.ModeAlternatives.
	Description *volumetric.Quality
}

// qualityOf returns the quality of a track, false if the track does not belong to the target.
func (t *Target) qualityOf(track *track.Track) (volumetric.Quality, bool) {
	quality, ok := t.Publication.QualityOf(track)
	if !ok {
		return 0, false
	}
	own, _ := t.Publication.Track(t.Tile.Tile, quality)
	return quality, own == track
}

// targets returns the targets of a receiver's slots for the publication.
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

// Changes counts the changes that affect every subscriber of a room.
type Changes struct {
	// Offered counts changes of the tracks that publishers can send, Rates changes of the rates of tracks, and Motion
	// changes of the places of objects.
	Offered, Rates, Motion uint64
}
