package subscriber

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Choices are the quality choices of one receiver, indexed by names, so that they survive a publisher's reconnect.
type Choices struct {
	limit        int
	count        int
	publications map[volumetric.PublicationRef]publicationChoices
}

// publicationChoices are the choices for one publication: for the whole publication, if there is such a choice, and for
// tiles.
type publicationChoices struct {
	whole *signal.Selection
	tiles map[int]signal.Selection
}

// NewChoices returns empty choices with the given maximum number.
func NewChoices(limit int) *Choices {
	return &Choices{limit: limit, publications: make(map[volumetric.PublicationRef]publicationChoices)}
}

// Stored has the choices for one publication: for the whole publication, nil for none, and for tiles.
type Stored struct {
	volumetric.PublicationRef
	Whole *signal.Selection        `json:"whole,omitempty"`
	Tiles map[int]signal.Selection `json:"tiles,omitempty"`
}

// List returns the choices in an order in which SetAll stores all of them.
func (s *Stored) List() (list []signal.Choice) {
	if s.Whole != nil {
		list = append(list, signal.Choice{PublicationRef: s.PublicationRef, Quality: *s.Whole})
	}
	for tile, quality := range s.Tiles {
		list = append(list, signal.Choice{PublicationRef: s.PublicationRef, Tile: &tile, Quality: quality})
	}
	return list
}

// Stored returns all choices in the order of the names.
func (c *Choices) Stored() (list []Stored) {
	for ref, p := range c.publications {
		list = append(list, Stored{PublicationRef: ref, Whole: p.whole, Tiles: p.tiles})
	}
	slices.SortFunc(list, func(a, b Stored) int {
		return cmp.Or(cmp.Compare(a.Participant, b.Participant), cmp.Compare(a.Publication, b.Publication))
	})
	return list
}

// CheckChoice returns an error if a choice does not fit the publication that the choice names. p is nil if the
// publication does not exist yet.
func CheckChoice(c signal.Choice, p *volumetric.Publication) error {
	if p == nil {
		return nil
	}
	if c.Tile != nil && *c.Tile >= len(p.Tiles) {
		return fmt.Errorf("%s has %d tiles, tile %d is not among them", c.PublicationRef, len(p.Tiles), *c.Tile)
	}
	for _, q := range c.Quality.Qualities {
		if q > p.Highest() {
			return fmt.Errorf("%s has %d qualities, quality %d is not among them", c.PublicationRef,
				len(p.Qualities), q)
		}
	}
	if p.Mode == volumetric.ModeAlternatives && len(c.Quality.Qualities) > 1 {
		return fmt.Errorf("%s has mode %q, which takes one quality, not %d", c.PublicationRef, p.Mode,
			len(c.Quality.Qualities))
	}
	return nil
}

// SetAll stores all choices of a list, or none if the limit would be exceeded. At the limit, only lists that do not
// increase the number are stored. A choice for a whole publication replaces the choices for its tiles. changed reports
// whether any choice differs from before.
func (c *Choices) SetAll(list []signal.Choice) (changed, kept bool) {
	if c.hasAll(list) {
		return false, true
	}
	next := &Choices{limit: c.limit, count: c.count, publications: maps.Clone(c.publications)}
	// Publications in the list are copied before they change.
	copied := make(map[volumetric.PublicationRef]bool)
	for _, choice := range list {
		p := next.publications[choice.PublicationRef]
		if !copied[choice.PublicationRef] {
			copied[choice.PublicationRef] = true
			p.tiles = maps.Clone(p.tiles)
		}
		if choice.Tile == nil {
			next.count -= p.size() - 1
			p = publicationChoices{whole: &choice.Quality}
		} else {
			if p.tiles == nil {
				p.tiles = make(map[int]signal.Selection)
			}
			before := len(p.tiles)
			p.tiles[*choice.Tile] = choice.Quality
			next.count += len(p.tiles) - before
		}
		next.publications[choice.PublicationRef] = p
	}
	if next.count > next.limit && next.count > c.count {
		return false, false
	}
	*c = *next
	return true, true
}

// SetAllFor is SetAll in a room in which the publications change: a list that would exceed the limit replaces the
// choices for publications that do not exist. Otherwise the choices for all former publications of a long session would
// fill the limit for good. exists reports whether a publication exists.
func (c *Choices) SetAllFor(list []signal.Choice, exists func(volumetric.PublicationRef) bool) (changed, kept bool) {
	if changed, kept = c.SetAll(list); kept {
		return changed, kept
	}
	rest := NewChoices(c.limit)
	for ref, p := range c.publications {
		if exists(ref) {
			rest.publications[ref] = p
			rest.count += p.size()
		}
	}
	if changed, kept = rest.SetAll(list); kept {
		*c = *rest
	}
	return changed, kept
}

// hasAll reports whether all choices of a list are already stored.
func (c *Choices) hasAll(list []signal.Choice) bool {
	for _, choice := range list {
		p := c.publications[choice.PublicationRef]
		if choice.Tile == nil {
			if p.whole == nil || !sameSelection(*p.whole, choice.Quality) || len(p.tiles) > 0 {
				return false
			}
			continue
		}
		if before, ok := p.tiles[*choice.Tile]; !ok || !sameSelection(before, choice.Quality) {
			return false
		}
	}
	return true
}

func sameSelection(a, b signal.Selection) bool {
	return a.Auto == b.Auto && slices.Equal(a.Qualities, b.Qualities)
}

// size returns the number of choices.
func (p publicationChoices) size() int {
	if p.whole == nil {
		return len(p.tiles)
	}
	return len(p.tiles) + 1
}

// Of returns the choice for a tile: the choice for the tile, else for its publication, else automatic.
func (c *Choices) Of(tile volumetric.TileRef) signal.Selection {
	return c.publications[tile.PublicationRef].of(tile.Tile)
}

func (p publicationChoices) of(tile int) signal.Selection {
	if s, ok := p.tiles[tile]; ok {
		return s
	}
	if p.whole != nil {
		return *p.whole
	}
	return signal.Auto()
}

// decide returns the quality for a slot according to a selection. The slot of a description carries the quality of the
// description or nothing. The slot of alternatives carries the chosen quality, at most the highest that the publication
// has, or the highest if the selection is automatic.
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

// reasonFor returns the reason of a decision.
func reasonFor(s signal.Selection) signal.Reason {
	if s.Auto {
		return signal.ReasonAuto
	}
	return signal.ReasonChoice
}
