package cluster

import "github.com/volsfu/volsfu/pkg/volumetric"

// bodyOf returns a publication of two tiles.
func bodyOf(name string, id uint64) Publication {
	return Publication{ID: id, Description: volumetric.Publication{
		Name: name, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
		Codec: volumetric.Codec{MIMEType: "video/volumetric", ClockRate: 90000},
		Tiles: []volumetric.Tile{
			{Label: "left", Box: volumetric.BoundingBox{Min: [3]float32{-1, 0, -1}, Max: [3]float32{0, 2, 1}}},
			{Label: "right", Box: volumetric.BoundingBox{Min: [3]float32{0, 0, -1}, Max: [3]float32{1, 2, 1}}},
		},
		Qualities: []volumetric.QualityLevel{{Name: "low", Bitrate: 1e6}, {Name: "high", Bitrate: 4e6}},
	}}
}
