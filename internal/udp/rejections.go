package udp

import (
	"errors"
	"net/netip"
)

// ErrNoRejections is returned by Port.Reject if the system cannot drop datagrams by their source and first byte.
var ErrNoRejections = errors.New("the system cannot reject datagrams")

const (
	// MaxRejected is how many sources a port rejects at once: each is some five instructions for the kernel, for every
	// datagram of a rejected kind. A program has 4,096 instructions at most, and a source at most 14 and its Except.
	MaxRejected = 128
	// MaxExcept is how many ports of one source may be excepted. MaxRejected sources without exceptions and the rest of
	// the program have 2,000 instructions, which leaves room for 30 sources with all of theirs.
	MaxExcept = 64
	// maxInstructions is what the kernel takes (BPF_MAXINSNS).
	maxInstructions = 4096
)

// Rejections are datagrams that the kernel drops before they wake a reader: those of the Sources whose first byte is in
// one of the Kinds. Datagrams of other kinds are looked at no further, so that rejections cost media nothing. Empty
// datagrams are dropped as long as there is any rejection.
type Rejections struct {
	Kinds   []Kind
	Sources []RejectedSource
}

// Kind is a range of first bytes (RFC 7983).
type Kind struct{ First, Last byte }

// RejectedSource is one port of the addresses of a prefix, or all ports but Except if Port is 0.
type RejectedSource struct {
	Prefix netip.Prefix
	Port   uint16
	Except []uint16
}

// Reject replaces the port's rejections. Sources beyond MaxRejected, those that exceed MaxExcept, and those for which
// the kernel's program has no room are left out. Dropped datagrams count as Stats.ReceiveDrops. Errors wrap
// ErrNoRejections.
func (p *Port) Reject(rejections Rejections) error {
	rejections.Sources = rejections.Sources[:min(len(rejections.Sources), MaxRejected)]
	var failure error
	for _, s := range p.sockets {
		if err := s.reject(rejections); err != nil {
			failure = errors.Join(failure, ErrNoRejections, err)
		}
	}
	return failure
}
