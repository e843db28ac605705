package allocate

// VisibleQuality returns the visible quality of a scene: the sum over tiles of the share of the view that the tile's
// box covers, inside the frustum, times the points sent relative to the points at full quality. Occlusion is ignored,
// and tiles without a box count as 0. The measure compares allocations of one scene; the absolute value depends on how
// many boxes overlap.
//
// The viewpoint is usually the real one of the receiver, not the predicted one of the scene. The decisions are those of
// Result.Tiles. The result is 0 for a viewpoint that is not finite.
func VisibleQuality(v Viewpoint, scene *Scene, tiles [][]Decision) float64 {
	f, ok := newFrustum(&v)
	if !ok {
		return 0
	}
	var sum float64
	var levels ladder
	for i := range scene.Objects {
		object := &scene.Objects[i]
		stand, ok := f.place(&object.Pose)
		if !ok {
			continue
		}
		for j := range object.Tiles {
			tile := &object.Tiles[j]
			b, known := newBox(&tile.Box)
			if !known || tiles[i][j].Qualities == 0 {
				continue
			}
			levels.read(object.Mode, tile)
			_, detail := levels.of(tiles[i][j].Qualities)
			inView, _ := f.area(&stand, &b)
			sum += inView * detail
		}
	}
	return sum
}

// Value returns the sum of the values of decisions from a viewpoint, which Allocate maximises with StrategyVolsfu. The
// cost of changes is not subtracted. The decisions are those of Result.Tiles.
func Value(cfg *ViewConfig, v Viewpoint, scene *Scene, tiles [][]Decision) float64 {
	var sum float64
	var levels ladder
	eye := newViewer(cfg, &v)
	for i := range scene.Objects {
		object := &scene.Objects[i]
		eye.turnTo(object)
		for j := range object.Tiles {
			tile := &object.Tiles[j]
			value := levels.value(cfg, object, tile, eye.look(object, tile))
			_, detail := levels.of(tiles[i][j].Qualities)
			sum += value.of(detail)
		}
	}
	return sum
}
