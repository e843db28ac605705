package allocate

// VisibleQuality is how much of a scene reaches the eye: the sum over tiles of the share of the view that the tile's box covers, inside the frustum, times
// the points sent as a share of the points at full quality. Boxes hide nothing here, and tiles without a box count for nothing. It is a measure to compare
// allocations of one scene by; its worth alone depends on how many boxes overlap.
//
// The viewpoint is where the receiver really was, as a rule not that of the scene, which was predicted. The decisions are those of Result.Tiles.
// 0 is returned for a viewpoint that is not finite.
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
