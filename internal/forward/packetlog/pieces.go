package packetlog

import "sync/atomic"

// Pieces bounds the memory of frames that are in pieces, over all connections of one engine: frames that publishers
// send in chunks, while they are assembled, and frames that receivers take in chunks, until they are sent. The memory
// counts against the budget of the packet caches and is granted first: the caches shrink to make room for it.
type Pieces struct {
	limit  int64
	used   atomic.Int64
	budget *Budget
}

// piecesShare: one part in four of the budget may go to frames in pieces.
const piecesShare = 4

// NewPieces returns the bound of frames whose memory counts against the budget.
func NewPieces(budget *Budget) *Pieces {
	return &Pieces{budget: budget, limit: budget.limit / piecesShare}
}

// Used is the number of bytes that all allotments hold.
func (p *Pieces) Used() int64 { return p.used.Load() }

// NewAllotment returns the allotment of one more connection.
func (p *Pieces) NewAllotment() *Allotment { return &Allotment{pieces: p} }

// Allotment is the memory of frames in pieces of one connection. A connection may take as many bytes as are left for
// all others: one connection gets at most half of the limit, n connections that take all they can get an (n+1)th each,
// and a connection that has taken none yet finds as much (dynamic thresholds: Choudhury and Hahne, Dynamic Queue Length
// Thresholds for Shared-Memory Packet Switches, 1998). Its methods are safe for any goroutine.
type Allotment struct {
	pieces *Pieces
	used   atomic.Int64
}

// Used is the number of bytes that the connection holds.
func (a *Allotment) Used() int64 { return a.used.Load() }

// Reserve takes bytes, and reports whether there were as many.
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

// Release gives bytes back.
func (a *Allotment) Release(bytes int) {
	n := int64(bytes)
	a.used.Add(-n)
	a.pieces.used.Add(-n)
	a.pieces.budget.Add(-n)
}
