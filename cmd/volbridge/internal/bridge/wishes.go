package bridge

import (
	"maps"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Address makes the text of a connector's quality message into one that every server of VR2Gather's dialect
// understands, by how many tiles each client has: what cannot be read is left out and counted, each choice ends in a
// semicolon, and one for client 0, who is nobody, is said again for every client that has so many tiles. The text is
// empty where nothing is chosen.
func Address(text string, tiles map[uint32]int) (out string, ignored int) {
	choices, ignored := vr2gather.ParseQualityChoices(text)
	var message []byte
	for _, c := range choices {
		message = c.Append(message)
		if c.Client != 0 {
			continue
		}
		for _, client := range slices.Sorted(maps.Keys(tiles)) {
			if client != 0 && tiles[client] == len(c.Qualities) {
				c.Client = client
				message = c.Append(message)
			}
		}
	}
	return string(message), ignored
}

// Decline is the text of a quality message that switches all tiles of all clients off.
func Decline(tiles map[uint32]int) string {
	var message []byte
	for _, client := range slices.Sorted(maps.Keys(tiles)) {
		off := slices.Repeat([]volumetric.Quality{volumetric.QualityOff}, tiles[client])
		message = vr2gather.QualityChoice{Client: client, Qualities: off}.Append(message)
	}
	return string(message)
}
