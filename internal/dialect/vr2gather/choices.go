package vr2gather

import (
	"slices"
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// chooser converts the quality choices of one message to choices of signalling v1. The chooser implements sfu.Chooser.
type chooser struct {
	named []vr2gather.QualityChoice
	// unread is the number of malformed choices in the message.
	unread int
	// ignored counts the choices that are malformed or name clients, tiles or qualities that do not exist.
	ignored *atomic.Uint64
}

// Choose implements sfu.Chooser.
func (c *chooser) Choose(publications []sfu.Choosable) (choices []signal.Choice, warnings []string) {
	if c.unread > 0 {
		warnings = append(warnings, "part of a quality message cannot be read")
	}
	choices, ignored, warning := resolve(publications, c.named)
	if warning != "" {
		warnings = append(warnings, warning)
	}
	c.ignored.Add(uint64(ignored + c.unread))
	return choices, warnings
}

// means reports whether a choice is about a publication. A choice for client 0, which VR2Gather sends for any client,
// is about every publication with the same number of tiles.
func means(c vr2gather.QualityChoice, p *sfu.Choosable) bool {
	if c.Client == 0 {
		return p.Tiles == len(c.Qualities)
	}
	return p.Number == c.Client
}

// resolve returns one choice for each named tile. If a tile is named twice, the later quality counts. A message of 2 MB
// may name half a million tiles, but resolve returns at most one choice for each tile in the room. ignored counts the
// clients, tiles and qualities that do not exist. warning describes them and is empty if there are none.
func resolve(
	publications []sfu.Choosable, named []vr2gather.QualityChoice,
) (choices []signal.Choice, ignored int, warning string) {
	chosen := make([][]volumetric.Quality, len(publications))
	strangers := false
	for _, c := range named {
		known := false
		for i := range publications {
			publication := &publications[i]
			if !means(c, publication) {
				continue
			}
			known = true
			if chosen[i] == nil {
				chosen[i] = slices.Repeat([]volumetric.Quality{vr2gather.QualityKept}, publication.Tiles)
			}
			ignored += overlay(chosen[i], c.Qualities, publication.Highest)
		}
		if !known {
			ignored++
			strangers = true
		}
	}
	switch {
	case strangers:
		warning = "quality message names a client that publishes nothing"
	case ignored > 0:
		warning = "quality message names a tile or a quality that does not exist"
	}
	for i, qualities := range chosen {
		for tile, quality := range qualities {
			if quality != vr2gather.QualityKept {
				choices = append(choices, signal.Choice{
					PublicationRef: publications[i].PublicationRef, Tile: &tile, Quality: signal.Only(quality),
				})
			}
		}
	}
	return choices, ignored, warning
}

// overlay replaces the qualities of a publication's tiles by the named qualities and counts the tiles and qualities
// that the publication does not have.
func overlay(tiles, named []volumetric.Quality, highest volumetric.Quality) (unknown int) {
	for tile, quality := range named {
		switch {
		case quality == vr2gather.QualityKept:
		case tile >= len(tiles) || quality > highest:
			unknown++
		default:
			tiles[tile] = quality
		}
	}
	return unknown
}
