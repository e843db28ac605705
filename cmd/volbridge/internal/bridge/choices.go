package bridge

import (
	"maps"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// ExpandChoices rewrites a connector's quality message so that every server of VR2Gather's dialect understands it.
// tiles has the number of tiles of each client. Choices that cannot be parsed are omitted and counted in ignored. Each
// choice ends in a semicolon. A choice for client 0 is repeated for every client with that number of tiles. The result
// is empty if there are no choices.
func ExpandChoices(text string, tiles map[uint32]int) (out string, ignored int) {
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

// ChoicesOff returns a quality message that switches off all tiles of all clients.
func ChoicesOff(tiles map[uint32]int) string {
	var message []byte
	for _, client := range slices.Sorted(maps.Keys(tiles)) {
		off := slices.Repeat([]volumetric.Quality{volumetric.QualityOff}, tiles[client])
		message = vr2gather.QualityChoice{Client: client, Qualities: off}.Append(message)
	}
	return string(message)
}
