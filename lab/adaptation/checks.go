package adaptation

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
)

// Checks returns the checks of suppression and of the server's cost, in the order of their numbers.
func Checks(progress lab.Progress) []lab.Check {
	return []lab.Check{NewSaving(progress), NewSwitching(progress), NewCost(progress)}
}

// policies lists the policies, from no suppression to the strongest.
var policies = []demand.Policy{demand.Warm, demand.Neighbours, demand.Strict}

// body is a publication of 15 tiles with a ladder of 1:2:4, whose frames take one, two and four packets.
var body = testbed.Load{Name: "body", Tiles: 15, Qualities: 3, FrameBytes: 4000, Step: 2, Rate: 30}

// publisherName is the identity of the load's publisher.
const publisherName = "alice"

// publicationOf returns the reference of the load's publication.
func publicationOf(load testbed.Load) volumetric.PublicationRef {
	return volumetric.PublicationRef{Participant: publisherName, Publication: load.Name}
}

// tilesOf returns the references of the load's tiles.
func tilesOf(load testbed.Load) []volumetric.TileRef {
	tiles := make([]volumetric.TileRef, load.Tiles)
	for i := range tiles {
		tiles[i] = volumetric.TileRef{PublicationRef: publicationOf(load), Tile: i}
	}
	return tiles
}

// highestPatience is far longer than the some seconds that the estimate needs on a link that carries all tracks.
const highestPatience = 30 * time.Second

// awaitHighest waits until every tile of the load has arrived at its highest quality for a while. Then the estimate
// covers the full rate.
func awaitHighest(ctx context.Context, receiver *testbed.Peer, load testbed.Load) error {
	ctx, cancel := context.WithTimeout(ctx, highestPatience)
	defer cancel()
	highest := volumetric.Quality(load.Qualities - 1)
	return testbed.Await(ctx, "every tile arrives at its highest quality", func() bool {
		for _, tile := range tilesOf(load) {
			if r := receiver.Tile(tile); r.Frames < 10 || r.Quality != highest {
				return false
			}
		}
		return true
	})
}

// broken counts the frames of all tiles that a receiver did not get completely.
func broken(receiver *testbed.Peer) int64 {
	var sum client.FrameCounts
	for _, s := range receiver.Session.Stats() {
		sum.Undecodable += s.Undecodable
		sum.Missing += s.Missing
		sum.Overflowed += s.Overflowed
		sum.DroppedByServer += s.DroppedByServer
	}
	return sum.Undecodable + sum.Missing + sum.Overflowed + sum.DroppedByServer
}
