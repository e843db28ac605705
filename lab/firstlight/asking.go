package firstlight

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/testbed"
)

// ask says that a receiver asked for packets of a tile again.
type ask struct {
	at      time.Time
	tile    tileRef
	packets uint64
}

// switched is one switch of one tile: when it was asked for, and when its first frame was whole.
type switched struct {
	tile        tileRef
	asked, seen time.Time
}

const (
	// askInterval is how often the receiver's counts are read. It looks for what is missing every 5 ms itself.
	askInterval = 5 * time.Millisecond
	// clusterSpan: what is asked for so shortly after something else has the same cause.
	clusterSpan = 4 * askInterval
	// aftermath is how long after the first frame of a quality, three frame intervals, a switch can be why packets are asked for.
	aftermath = 100 * time.Millisecond
)

// observeAsking notes what a receiver asks for until the context ends.
func observeAsking(ctx context.Context, receiver *testbed.Peer) []ask {
	var asks []ask
	known := make(map[tileRef]uint64)
	for _, s := range receiver.Session.Stats() {
		known[s.Track.TileRef] = s.Requests
	}
	for lab.Pause(ctx, askInterval) == nil {
		now := time.Now()
		for _, s := range receiver.Session.Stats() {
			tile := s.Track.TileRef
			if more := s.Requests - known[tile]; more > 0 {
				asks = append(asks, ask{now, tile, more})
				known[tile] = s.Requests
			}
		}
	}
	return asks
}

// causedBySwitches counts the packets that were asked for because of a switch: by tiles that were all being switched. Where a tile that was not asks at
// the same time, the machine held up all of them; a pause of 10 ms within a frame looks to a receiver as if the rest of it were lost.
func causedBySwitches(asks []ask, switches []switched) uint64 {
	var caused uint64
	for first := 0; first < len(asks); {
		packets, innocent := uint64(0), false
		end := first
		for end < len(asks) && (end == first || asks[end].at.Sub(asks[end-1].at) <= clusterSpan) {
			packets += asks[end].packets
			innocent = innocent || !beingSwitched(asks[end], switches)
			end++
		}
		if !innocent {
			caused += packets
		}
		first = end
	}
	return caused
}

// beingSwitched tells whether a tile was asked to switch, or had just done so.
func beingSwitched(a ask, switches []switched) bool {
	for _, s := range switches {
		if s.tile == a.tile && !a.at.Before(s.asked) && !a.at.After(s.seen.Add(aftermath)) {
			return true
		}
	}
	return false
}
