package sfu

import (
	"fmt"
	"maps"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// choices are what one receiver wants to be sent, by names, so that they outlive a publisher's reconnect.
type choices struct {
	limit        int
	publications map[volumetric.PublicationRef]signal.Selection
	tiles        map[volumetric.TileRef]signal.Selection
}

func newChoices(limit int) *choices {
	return &choices{
		limit:        limit,
		publications: make(map[volumetric.PublicationRef]signal.Selection),
		tiles:        make(map[volumetric.TileRef]signal.Selection),
	}
}

// check tells what is wrong with a choice, given the publication that it names, which is nil where nobody publishes it yet.
func checkChoice(c signal.Choice, p *volumetric.Publication) error {
	if p == nil {
		return nil
	}
	if c.Tile != nil && *c.Tile >= len(p.Tiles) {
		return fmt.Errorf("%s has %d tiles, tile %d is not among them", c.PublicationRef, len(p.Tiles), *c.Tile)
	}
	for _, q := range c.Quality.Qualities {
		if q > p.Highest() {
			return fmt.Errorf("%s has %d qualities, quality %d is not among them", c.PublicationRef, len(p.Qualities), q)
		}
	}
	if p.Mode == volumetric.ModeAlternatives && len(c.Quality.Qualities) > 1 {
		return fmt.Errorf("%s has mode %q, which takes one quality, not %d", c.PublicationRef, p.Mode, len(c.Quality.Qualities))
	}
	return nil
}

// set keeps a choice. One for a whole publication replaces those for its tiles. It reports false where the limit is reached.
func (c *choices) set(choice signal.Choice) bool {
	if choice.Tile == nil {
		if _, known := c.publications[choice.PublicationRef]; !known && c.count() >= c.limit {
			return false
		}
		c.publications[choice.PublicationRef] = choice.Quality
		for tile := range c.tiles {
			if tile.PublicationRef == choice.PublicationRef {
				delete(c.tiles, tile)
			}
		}
		return true
	}
	tile := volumetric.TileRef{PublicationRef: choice.PublicationRef, Tile: *choice.Tile}
	if _, known := c.tiles[tile]; !known && c.count() >= c.limit {
		return false
	}
	c.tiles[tile] = choice.Quality
	return true
}

// setAll keeps all choices, or none where the limit would be passed.
func (c *choices) setAll(list []signal.Choice) bool {
	next := &choices{limit: c.limit, publications: maps.Clone(c.publications), tiles: maps.Clone(c.tiles)}
	for _, choice := range list {
		if !next.set(choice) {
			return false
		}
	}
	*c = *next
	return true
}

func (c *choices) count() int { return len(c.publications) + len(c.tiles) }

// of is the choice for a tile: its own, else its publication's, else the server's.
func (c *choices) of(tile volumetric.TileRef) signal.Selection {
	if s, ok := c.tiles[tile]; ok {
		return s
	}
	if s, ok := c.publications[tile.PublicationRef]; ok {
		return s
	}
	return signal.Auto()
}

// decide turns a selection into the quality that a slot shall carry. The slot of a description carries its own quality or nothing;
// one of alternatives carries the wanted quality, as far as the publication has it, and without a choice the highest.
func decide(s signal.Selection, p *volumetric.Publication, description *volumetric.Quality) volumetric.Quality {
	if description != nil {
		if s.Auto || s.Wants(*description) {
			return *description
		}
		return volumetric.QualityOff
	}
	switch {
	case s.Auto:
		return p.Highest()
	case len(s.Qualities) == 0:
		return volumetric.QualityOff
	default:
		return min(s.Qualities[len(s.Qualities)-1], p.Highest())
	}
}

// reasonFor names the reason of a decision.
func reasonFor(s signal.Selection) signal.Reason {
	if s.Auto {
		return signal.ReasonAuto
	}
	return signal.ReasonChoice
}
