package udp

import (
	"errors"
	"net/netip"
)

// ErrNoRejections is returned by Port.Reject if the system cannot drop datagrams by their source and first byte.
var ErrNoRejections = errors.New("the system cannot reject datagrams")

// MaxRejections is how many rejections a port takes at once: each is some ten instructions for the kernel, for every
// datagram whose first byte is below mediaBytes, and a program has 4,096 at most.
const MaxRejections = 64

// mediaBytes is the first byte from which on datagrams are never rejected (RFC 7983): RTP and RTCP are looked at no
// further, so that rejections cost them nothing.
const mediaBytes = 64

// Rejection is datagrams that the kernel drops before they wake a reader: those of a peer whose first byte is in a range.
// Empty datagrams are dropped as long as there is any rejection.
type Rejection struct {
	Peer        netip.AddrPort
	First, Last byte
}

// Reject replaces the port's rejections. Beyond MaxRejections they are left out. Dropped datagrams count as
// Stats.ReceiveDrops. Errors wrap ErrNoRejections.
func (p *Port) Reject(rejections []Rejection) error {
	rejections = rejections[:min(len(rejections), MaxRejections)]
	var failure error
	for _, s := range p.sockets {
		if err := s.reject(rejections); err != nil {
			failure = errors.Join(failure, ErrNoRejections, err)
		}
	}
	return failure
}
