package packetlog

import "sync/atomic"

// Pieces bounds the memory of chunked frames over all connections of one engine: frames of publishers during
// reassembly, and frames to receivers until they are sent. This memory counts against the budget of the packet caches
// and has priority: the caches shrink to make room.
type Pieces struct {
	limit  int64
	used   atomic.Int64
	budget *Budget
}

// piecesShare is the inverse of the share of the budget that chunked frames may use: one quarter.
const piecesShare = 4

// NewPieces returns the bound of chunked frames whose memory counts against the budget.
func NewPieces(budget *Budget) *Pieces {
	return &Pieces{budget: budget, limit: budget.limit / piecesShare}
}

// Used returns the number of bytes that all allotments hold.
func (p *Pieces) Used() int64 { return p.used.Load() }

// NewAllotment returns the allotment of another connection.
func (p *Pieces) NewAllotment() *Allotment { return &Allotment{pieces: p} }

// Allotment is the memory for chunked frames of one connection. A connection may hold as many bytes as remain unused by
// all connections. One connection gets at most half of the limit; n greedy connections get 1/(n+1) of the limit each,
// and the same amount remains for a new connection (dynamic thresholds: Choudhury and Hahne, Dynamic Queue Length
// Thresholds for Shared-Memory Packet Switches, 1998). The methods are safe for any goroutine.
type Allotment struct {
	pieces *Pieces
	used   atomic.Int64
}

// Used returns the number of bytes that the connection holds.
func (a *Allotment) Used() int64 { return a.used.Load() }

// Reserve reserves bytes and reports whether they were available.
func (a *Allotment) Reserve(bytes int) bool {
	n := int64(bytes)
	own, all := a.used.Add(n), a.pieces.used.Add(n)
	a.pieces.budget.Add(n)
	if own > a.pieces.limit-all {
		a.Release(bytes)
		return false
	}
	return true
}

// Release returns bytes to the pool.
func (a *Allotment) Release(bytes int) {
	n := int64(bytes)
	a.used.Add(-n)
	a.pieces.used.Add(-n)
	a.pieces.budget.Add(-n)
}
