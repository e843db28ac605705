package watch

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// failure is a request that the server refused.
type failure struct {
	choices []signal.Choice
	err     error
}

// ask sends requests in their order, each after the reply to the one before, until the context ends.
func (v *viewer) ask(ctx context.Context) {
	for {
		select {
		case choices := <-v.requests:
			limited, cancel := context.WithTimeout(ctx, peer.ReplyTimeout)
			err := v.session.SetQuality(limited, choices...)
			cancel()
			if err == nil || ctx.Err() != nil {
				continue
			}
			select {
			case v.failed <- failure{choices, err}:
			case <-ctx.Done():
			}
		case <-ctx.Done():
			return
		}
	}
}

// request asks the server for qualities and notes when.
func (v *viewer) request(choices []signal.Choice) {
	select {
	case v.requests <- choices:
	default:
		v.log.Warn("too many requests wait for the server's reply; one is left out")
		return
	}
	now := v.now()
	v.eachTile(choices, func(tile volumetric.TileRef, mode volumetric.Mode, qualities int, wanted signal.Selection) {
		v.asked[tile] = wanted
		if mode == volumetric.ModeDescriptions {
			for q := range volumetric.Quality(qualities) {
				v.note(volumetric.TrackRef{TileRef: tile, Quality: q}, wanted, wanted.Wants(q), q, now)
			}
			return
		}
		quality := volumetric.QualityOff
		if len(wanted.Qualities) > 0 {
			quality = wanted.Qualities[0]
		}
		v.note(volumetric.TrackRef{TileRef: tile, Quality: volumetric.QualityOff}, wanted, quality != volumetric.QualityOff, quality, now)
	})
}

// note tells the tracker what was asked for.
func (v *viewer) note(part volumetric.TrackRef, wanted signal.Selection, on bool, quality volumetric.Quality, now time.Time) {
	switch {
	case wanted.Auto:
		v.tracker.Withdrawn(part)
	case on:
		v.tracker.Requested(part, quality, now)
	default:
		v.tracker.Requested(part, volumetric.QualityOff, now)
	}
}

// requestFailed takes back what was noted of a request.
func (v *viewer) requestFailed(f failure) {
	v.log.Warn("the server refuses the choice of qualities", "error", f.err)
	v.eachTile(f.choices, func(tile volumetric.TileRef, mode volumetric.Mode, qualities int, _ signal.Selection) {
		delete(v.asked, tile)
		v.tracker.Withdrawn(volumetric.TrackRef{TileRef: tile, Quality: volumetric.QualityOff})
		for q := range volumetric.Quality(qualities) {
			v.tracker.Withdrawn(volumetric.TrackRef{TileRef: tile, Quality: q})
		}
	})
}

// eachTile goes through the tiles of choices.
func (v *viewer) eachTile(choices []signal.Choice, do func(tile volumetric.TileRef, mode volumetric.Mode, qualities int, wanted signal.Selection)) {
	for _, c := range choices {
		p, ok := v.publications[c.PublicationRef]
		if !ok {
			continue
		}
		for tile := range p.Tiles {
			if c.Tile == nil || *c.Tile == tile {
				do(volumetric.TileRef{PublicationRef: c.PublicationRef, Tile: tile}, p.Mode, len(p.Qualities), c.Quality)
			}
		}
	}
}

// switchAtRandom asks for another quality of every tile, in volumetric.ModeDescriptions for another set of them.
func (v *viewer) switchAtRandom() {
	var choices []signal.Choice
	for _, ref := range slices.SortedFunc(maps.Keys(v.publications), comparePublications) {
		p := v.publications[ref]
		if !v.volumetric[ref] || len(p.Qualities) < 2 {
			continue
		}
		for tile := range p.Tiles {
			before := v.asked[volumetric.TileRef{PublicationRef: ref, Tile: tile}]
			choices = append(choices, signal.Choice{PublicationRef: ref, Tile: &tile, Quality: v.another(&p, before)})
		}
	}
	if len(choices) > 0 {
		v.request(choices)
	}
}

// another is a selection that differs from the one before, each with the same probability, and never none.
func (v *viewer) another(p *volumetric.Publication, before signal.Selection) signal.Selection {
	for {
		var s signal.Selection
		if p.Mode == volumetric.ModeDescriptions {
			for q := range volumetric.Quality(len(p.Qualities)) {
				if v.random.IntN(2) == 1 {
					s.Qualities = append(s.Qualities, q)
				}
			}
		} else {
			s = signal.Only(volumetric.Quality(v.random.IntN(len(p.Qualities))))
		}
		if len(s.Qualities) > 0 && !slices.Equal(s.Qualities, before.Qualities) {
			return s
		}
	}
}
