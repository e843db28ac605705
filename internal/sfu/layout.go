package sfu

import (
	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// layout is the slots of a receiver that media may be sent on, by publication and tile, as an allocator sees them.
type layout struct {
	stale   bool
	objects []laidObject
}

type laidObject struct {
	publication *publication
	tiles       []laidTile
}

// laidTile is one tile with its slot, or in volumetric.ModeDescriptions with a slot for each quality, of which some may be missing.
type laidTile struct {
	tile  int
	slots []*slot
}

// lay makes the layout anew from the slots that are ready, and the memory of the scene with it.
func (l *layout) lay(slots []*slot, scene *allocate.Scene) {
	l.stale = false
	l.objects = l.objects[:0]
	byPublication := make(map[*publication]int)
	for _, s := range slots {
		if !s.ready() || s.kind != volumetric.KindVideo {
			continue
		}
		p := s.target.publication
		i, ok := byPublication[p]
		if !ok {
			i = len(l.objects)
			byPublication[p] = i
			l.objects = append(l.objects, laidObject{publication: p})
		}
		l.objects[i].add(s)
	}
	scene.Objects = make([]allocate.Object, len(l.objects))
	for i, o := range l.objects {
		tiles := make([]allocate.Tile, len(o.tiles))
		for j := range tiles {
			tiles[j].Levels = make([]allocate.Level, len(o.publication.description.Qualities))
		}
		scene.Objects[i] = allocate.Object{Mode: o.publication.description.Mode, Tiles: tiles}
	}
}

// add gives a slot its place.
func (o *laidObject) add(s *slot) {
	tile := s.target.tile.Tile
	if s.target.description == nil {
		o.tiles = append(o.tiles, laidTile{tile: tile, slots: []*slot{s}})
		return
	}
	at := -1
	for i := range o.tiles {
		if o.tiles[i].tile == tile {
			at = i
		}
	}
	if at < 0 {
		at = len(o.tiles)
		o.tiles = append(o.tiles, laidTile{tile: tile, slots: make([]*slot, len(o.publication.description.Qualities))})
	}
	o.tiles[at].slots[*s.target.description] = s
}

// fill describes everything as it is now. Objects that the receiver has arranged stand where it sees them.
func (l *layout) fill(scene *allocate.Scene, choices *choices, arranged map[volumetric.PublicationRef]allocate.Pose) {
	for i, o := range l.objects {
		p, object := o.publication, &scene.Objects[i]
		object.Pose, object.Priority = p.place.pose(), p.place.priority()
		if pose, ok := arranged[p.ref]; ok {
			object.Pose = pose
		}
		chosen := choices.publications[p.ref]
		for j := range o.tiles {
			laid, tile := &o.tiles[j], &object.Tiles[j]
			tile.Box = p.place.box(&p.description, laid.tile)
			p.levels.describe(laid.tile, tile.Levels, p.paused)
			tile.Choice = choiceFor(chosen.of(laid.tile), &p.description)
			tile.Current = laid.current()
		}
	}
}

// choiceFor is what an allocator takes for a receiver's choice. A quality that the publication does not have any more is its highest.
func choiceFor(s signal.Selection, d *volumetric.Publication) allocate.Choice {
	if s.Auto {
		return allocate.Choice{}
	}
	var set allocate.QualitySet
	for _, q := range s.Qualities {
		if d.Mode == volumetric.ModeAlternatives || q <= d.Highest() {
			set |= allocate.Qualities(min(q, d.Highest()))
		}
	}
	return allocate.Descriptions(set)
}

// current is what the tile's slots were told to carry.
func (t *laidTile) current() allocate.QualitySet {
	var set allocate.QualitySet
	for _, s := range t.slots {
		if s != nil && s.selected {
			set |= allocate.Qualities(s.quality)
		}
	}
	return set
}

// order is a decision about one slot.
type order struct {
	slot    *slot
	quality volumetric.Quality
	reason  signal.Reason
}

// orders gives what an allocator decided to each slot.
func (l *layout) orders(tiles [][]allocate.Decision, choices *choices, give func(order)) {
	for i, o := range l.objects {
		p := o.publication
		chosen := choices.publications[p.ref]
		for j, laid := range o.tiles {
			decision := tiles[i][j]
			reason := signal.Reason(decision.Reason.String())
			if p.description.Mode == volumetric.ModeDescriptions {
				for q, s := range laid.slots {
					if s != nil {
						give(order{s, onlyIf(decision.Qualities.Has(volumetric.Quality(q)), volumetric.Quality(q)), reason})
					}
				}
				continue
			}
			decided := decision.Quality()
			quality := p.levels.available(laid.tile, decided)
			if quality != decided && !chosen.of(laid.tile).Auto {
				// The publisher does not send what was chosen, and there is nothing better to see.
				reason = signal.ReasonAuto
			}
			give(order{laid.slots[0], quality, reason})
		}
	}
}

func onlyIf(wanted bool, q volumetric.Quality) volumetric.Quality {
	if wanted {
		return q
	}
	return volumetric.QualityOff
}
