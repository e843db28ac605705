package subscriber

import (
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// layout has the ready video slots of a receiver, by publication and tile, in the order of the allocator's scene.
type layout struct {
	stale   bool
	objects []layoutObject
}

type layoutObject struct {
	publication *Publication
	tiles       []layoutTile
}

// layoutTile is one tile with its slot. In volumetric.ModeDescriptions it has a slot for each quality, some of which
// may be nil.
type layoutTile struct {
	tile  int
	slots []*Slot
}

// build builds the layout from the ready slots and allocates the memory of the scene.
func (l *layout) build(slots []*Slot, scene *allocate.Scene) {
	l.stale = false
	l.objects = l.objects[:0]
	byPublication := make(map[*Publication]int)
	for _, s := range slots {
		if !s.Ready() || s.Kind != volumetric.KindVideo {
			continue
		}
		p := s.Target.Publication
		i, ok := byPublication[p]
		if !ok {
			i = len(l.objects)
			byPublication[p] = i
			l.objects = append(l.objects, layoutObject{publication: p})
		}
		l.objects[i].add(s)
	}
	scene.Objects = make([]allocate.Object, len(l.objects))
	for i, o := range l.objects {
		tiles := make([]allocate.Tile, len(o.tiles))
		for j := range tiles {
			tiles[j].Levels = make([]allocate.Level, len(o.publication.Description.Qualities))
		}
		scene.Objects[i] = allocate.Object{
			Mode: o.publication.Description.Mode, Picture: pictureOf(&o.publication.Description), Tiles: tiles,
		}
	}
}

// add adds a slot to its tile.
func (o *layoutObject) add(s *Slot) {
	tile := s.Target.Tile.Tile
	if s.Target.Description == nil {
		o.tiles = append(o.tiles, layoutTile{tile: tile, slots: []*Slot{s}})
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
		o.tiles = append(o.tiles, layoutTile{tile: tile, slots: make([]*Slot,
			len(o.publication.Description.Qualities))})
	}
	o.tiles[at].slots[*s.Target.Description] = s
}

// pictureOf returns the allocator's kind of picture.
func pictureOf(d *volumetric.Publication) allocate.Picture {
	switch {
	case d.Picture == nil:
		return allocate.PictureNone
	case d.Picture.Source == volumetric.SourceScreen:
		return allocate.PictureScreen
	default:
		return allocate.PictureCamera
	}
}

// fill updates the scene.
func (l *layout) fill(
	scene *allocate.Scene, choices *Choices, arranged map[volumetric.PublicationRef]allocate.Pose, now time.Time,
) {
	for i, o := range l.objects {
		p, object := o.publication, &scene.Objects[i]
		object.Pose, object.Priority = p.pose(arranged), p.Place.priority()
		chosen := choices.publications[p.Ref]
		for j := range o.tiles {
			laid, tile := &o.tiles[j], &object.Tiles[j]
			tile.Box = p.Place.box(&p.Description, laid.tile)
			p.Levels.describe(laid.tile, tile.Levels, p.Demand.Paused)
			tile.Choice = choiceFor(chosen.of(laid.tile), &p.Description)
			tile.Current = laid.current()
			tile.Held = object.Picture != allocate.PictureNone && laid.slots[0].held(now)
		}
	}
}

// choiceFor converts a receiver's choice for the allocator. A quality above the publication's highest quality becomes
// the highest quality in volumetric.ModeAlternatives and is ignored in volumetric.ModeDescriptions.
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

// current returns the qualities selected on the tile's slots.
func (t *layoutTile) current() allocate.QualitySet {
	var set allocate.QualitySet
	for _, s := range t.slots {
		if s != nil && s.selected {
			set |= allocate.Qualities(s.Quality)
		}
	}
	return set
}

// decisions calls apply with the allocator's decision about each slot.
func (l *layout) decisions(tiles [][]allocate.Decision, choices *Choices, apply func(decision)) {
	for i, o := range l.objects {
		p := o.publication
		chosen := choices.publications[p.Ref]
		for j, laid := range o.tiles {
			allocated := tiles[i][j]
			reason := signal.Reason(allocated.Reason.String())
			if p.Description.Mode == volumetric.ModeDescriptions {
				for q, s := range laid.slots {
					if s != nil {
						quality := volumetric.Quality(q)
						apply(decision{s, onlyIf(allocated.Qualities.Has(quality), quality), reason})
					}
				}
				continue
			}
			decided := allocated.Quality()
			quality := p.Levels.available(laid.tile, decided)
			if quality != decided && !chosen.of(laid.tile).Auto {
				// The publisher does not send the chosen quality.
				reason = signal.ReasonAuto
			}
			apply(decision{laid.slots[0], quality, reason})
		}
	}
}

func onlyIf(wanted bool, q volumetric.Quality) volumetric.Quality {
	if wanted {
		return q
	}
	return volumetric.QualityOff
}
