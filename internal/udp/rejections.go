package udp

import (
	"errors"
	"net/netip"
)

// ErrNoRejections is returned by Port.Reject if the system cannot drop datagrams by their source and first byte.
var ErrNoRejections = errors.New("the system cannot reject datagrams")

const (
	// MaxRejected is the maximum number of sources that a port rejects: each is about five instructions of the kernel
	// for every datagram of a rejected kind. A program has 4,096 instructions at most; a source has at most 14 and its
	// Except.
	MaxRejected = 128
	// MaxExcept is the maximum number of excepted ports of one source. MaxRejected sources without exceptions and the
	// rest of the program have 2,000 instructions, which leaves space for 30 sources with all exceptions.
	MaxExcept = 64
	// maxInstructions is the limit of the kernel (BPF_MAXINSNS).
	maxInstructions = 4096
)

// Rejections are datagrams that the kernel drops before they wake a reader: those of the Sources whose first byte is in
// one of the Kinds. Datagrams of other kinds are accepted after the first check, so that rejections cost media nothing.
// Empty datagrams are dropped as long as there is any rejection.
type Rejections struct {
	Kinds   []Kind
	Sources []RejectedSource
}

// Kind is a range of first bytes (RFC 7983).
type Kind struct{ First, Last byte }

// RejectedSource is one port of the addresses of a prefix, or all ports except Except if Port is 0.
type RejectedSource struct {
	Prefix netip.Prefix
	Port   uint16
	Except []uint16
}

// Reject replaces the port's rejections. Sources beyond MaxRejected, those that exceed MaxExcept, and those for which
// the kernel's program has no space are ignored. Dropped datagrams count as Stats.ReceiveDrops. Errors wrap
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
