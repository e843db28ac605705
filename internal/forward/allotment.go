package forward

import (
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
)

// piecesShare: of Config.CacheBytes, one part in four may go to frames in pieces.
const piecesShare = 4

// pieces is what all connections hold of frames that are in pieces: those that publishers send in chunks, while they are put together, and those that receivers take in chunks,
// until they are sent. It counts as packet cache, and goes before it: the caches of tracks make room for it as they go on.
type pieces struct {
	limit int64
	used  atomic.Int64
	cache *packetlog.Budget
}

// allotment is what one connection holds of frames in pieces. It may take as much as is left for all others: one connection gets half of all at most, n of them that
// take all they can an (n+1)th each, and whoever has taken nothing yet finds as much (dynamic thresholds: Choudhury and Hahne, Dynamic Queue Length Thresholds for
// Shared-Memory Packet Switches, 1998). Its methods are safe for any goroutine.
type allotment struct {
	pieces *pieces
	used   atomic.Int64
}

// Reserve takes so many bytes, and tells whether there are as many.
func (a *allotment) Reserve(bytes int) bool {
	n := int64(bytes)
	own, all := a.used.Add(n), a.pieces.used.Add(n)
	a.pieces.cache.Add(n)
	if own > a.pieces.limit-all {
		a.Release(bytes)
		return false
	}
	return true
}

// Release gives so many bytes back.
func (a *allotment) Release(bytes int) {
	n := int64(bytes)
	a.used.Add(-n)
	a.pieces.used.Add(-n)
	a.pieces.cache.Add(-n)
}
