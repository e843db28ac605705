package payload

import "unsafe"

// Shared is a packet whose memory several readers share. The methods are called by the owner of the Reassembler, and by
// Frame.Release.
type Shared interface {
	// Retain adds a reference, which keeps the packet unchanged until Release.
	Retain()
	Release()
	// Size returns the memory of the packet in bytes.
	Size() int64
}

// share is a fragment in the memory of a shared packet.
type share struct {
	index int
	data  []byte
	owner Shared
}

// shareSize is the memory of a share in bytes.
const shareSize = int64(unsafe.Sizeof(share{}))

// released releases packets and returns the empty list.
func released(shares []share) []share {
	for _, s := range shares {
		s.owner.Release()
	}
	clear(shares)
	return shares[:0]
}
