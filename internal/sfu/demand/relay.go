package demand

import (
	"slices"

	"github.com/volsfu/volsfu/internal/allocate"
)

// Take is the demand of one node for a publication whose home is another node.
type Take struct {
	// Tiles has for each tile the qualities that the node's receivers take, Near the tiles of which a slot of the node
	// carries nothing at present, though its receiver may want the tile. Both are empty if the node takes nothing.
	Tiles []allocate.QualitySet
	Near  []bool
	// Parity is the largest share of parity packets that a receiver of the node needs.
	Parity float64
}

// relay is the demand for a mirrored publication, which is sent to the publication's home.
type relay struct {
	// near has the tiles that the last Take names.
	near []bool
}

// Relay states that the home of the publication is another node. The demand has no policy and no hold time, which the
// home applies: a track is wanted while a slot takes the track. Changes of the demand add the publication to queue.
func (p *Publication) Relay(queue *Queue) {
	for node := range p.takes {
		p.SetTake(node, Take{})
	}
	p.lowest = nil
	p.suppression = newSuppression(Config{Policy: Strict}, p.tiles, p.qualities)
	clear(p.suppression.wanted)
	p.relay = &relay{near: make([]bool, p.tiles)}
	p.queue = queue
	p.Changed()
}

// Adopt states that this node has become the home of a relayed publication, whose publisher does not pause tracks.
func (p *Publication) Adopt() { p.suppression, p.relay, p.queue = nil, nil, nil }

// Relayed reports whether the home of the publication is another node.
func (p *Publication) Relayed() bool { return p.relay != nil }

// step updates the near tiles and reports whether they have changed.
func (l *relay) step(needs *counts) (changed bool) {
	for tile, slots := range needs.near {
		if near := slots > 0; l.near[tile] != near {
			l.near[tile], changed = near, true
		}
	}
	return changed
}

// Take returns the demand for the publication's home. The publication must be relayed.
func (p *Publication) Take() Take {
	return Take{
		Tiles: slices.Clone(p.suppression.wanted), Near: slices.Clone(p.relay.near), Parity: p.Parity.told,
	}
}

// HasTake reports whether another node needs the publication.
func (p *Publication) HasTake(node string) bool {
	_, has := p.takes[node]
	return has
}

// SetTake replaces the needs of another node for this publication. SetTake reports false, and ends the needs of the
// node, if the take does not fit the publication.
func (p *Publication) SetTake(node string, take Take) bool {
	fits := (len(take.Tiles) == p.tiles || len(take.Tiles) == 0) && (len(take.Near) == p.tiles || len(take.Near) == 0)
	if !fits {
		take = Take{}
	}
	p.needs.addTake(p.takes[node], -1)
	p.needs.addTake(take, 1)
	if len(take.Tiles) == 0 && len(take.Near) == 0 {
		delete(p.takes, node)
	} else {
		if p.takes == nil {
			p.takes = make(map[string]Take)
		}
		p.takes[node] = take
	}
	p.Parity.nodes = 0
	for _, h := range p.takes {
		p.Parity.nodes = max(p.Parity.nodes, h.Parity)
	}
	p.Parity.Need(p.Parity.nodes)
	p.Changed()
	return fits
}

// addTake counts the needs of another node n times. Qualities that the publication does not have are ignored.
func (c *counts) addTake(take Take, n int) {
	for tile, set := range take.Tiles {
		for q := range (set & allocate.Lowest(c.qualities)).Each {
			c.taken[tile*c.qualities+int(q)] += n
		}
	}
	for tile, near := range take.Near {
		if near {
			c.near[tile] += n
		}
	}
}
