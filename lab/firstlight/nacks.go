package firstlight

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/testbed"
)

// ask records that a receiver requested packets of a tile (NACK).
type ask struct {
	at      time.Time
	tile    tileRef
	packets uint64
}

// switched is one switch of one tile: the time of the request, and the time at which the first frame was complete.
type switched struct {
	tile        tileRef
	asked, seen time.Time
}

const (
	// askInterval is the interval at which the receiver's counters are read. The receiver itself looks for missing
	// packets every 5 ms.
	askInterval = 5 * time.Millisecond
	// clusterSpan is the largest gap between requests with the same cause.
	clusterSpan = 4 * askInterval
	// aftermath is the time after the first frame of a quality, three frame intervals, in which a switch may be the
	// cause of requests.
	aftermath = 100 * time.Millisecond
)

// observeNACKs records a receiver's requests until the context ends.
func observeNACKs(ctx context.Context, receiver *testbed.Peer) []ask {
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

// causedBySwitches counts the packets requested because of a switch: clusters of requests in which all tiles were being
// switched. If a cluster contains requests for a tile that was not being switched, the machine delayed all tiles. A
// pause of 10 ms within a frame looks to a receiver like the loss of the rest of the frame.
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

// beingSwitched reports whether the tile of a was being switched, or had just been switched.
func beingSwitched(a ask, switches []switched) bool {
	for _, s := range switches {
		if s.tile == a.tile && !a.at.Before(s.asked) && !a.at.After(s.seen.Add(aftermath)) {
			return true
		}
	}
	return false
}
