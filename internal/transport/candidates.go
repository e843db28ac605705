package transport

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/pion/ice/v4"
)

// candidateList is the local candidates so far. ICE adds to it, negotiation reads it.
type candidateList struct {
	mu    sync.Mutex
	texts []string
}

func (l *candidateList) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = append(l.texts, text)
}

func (l *candidateList) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.texts)
}

func (l *candidateList) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts = nil
}

// remoteAddress is where a candidate receives, not valid where it does not say so in numbers.
func remoteAddress(c ice.Candidate) netip.AddrPort {
	address, err := netip.ParseAddr(c.Address())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(c.Port()))
}
