package icemux

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/pion/stun/v4"

	"github.com/volsfu/volsfu/internal/udp"
)

const (
	// stunTimeout bounds the wait for a STUN server. The start of the server waits for the answer.
	stunTimeout = 2 * time.Second
	// stunRepeat is the time after which a request to a STUN server is repeated (RFC 8489 section 6.2.1).
	stunRepeat = 500 * time.Millisecond
)

var errNoMapping = errors.New("STUN server did not answer")

// LearnAddresses asks STUN servers for the address of the media port, and returns the addresses. They count as this
// host's own from now on. Servers that do not answer are ignored.
func (m *Mux) LearnAddresses(servers []string) []string {
	var known []string
	for _, server := range servers {
		address, err := net.ResolveUDPAddr("udp4", strings.TrimPrefix(server, "stun:"))
		if err != nil {
			continue
		}
		seen, err := m.mappedAddress(address.AddrPort())
		if err == nil && !slices.Contains(known, seen.Addr().String()) {
			known = append(known, seen.Addr().String())
		}
	}
	m.own.Add(known)
	return known
}

// mappedAddress asks one STUN server for the address of the media port.
func (m *Mux) mappedAddress(server netip.AddrPort) (netip.AddrPort, error) {
	request, err := stun.Build(stun.TransactionID, stun.BindingRequest)
	if err != nil {
		return netip.AddrPort{}, err
	}
	mapped := make(chan netip.AddrPort, 1)
	m.mu.Lock()
	m.mapping[request.TransactionID] = mapped
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.mapping, request.TransactionID)
		m.mu.Unlock()
	}()
	server = netip.AddrPortFrom(server.Addr().Unmap(), server.Port())
	repeat, timeout := time.NewTicker(stunRepeat), time.NewTimer(stunTimeout)
	defer repeat.Stop()
	defer timeout.Stop()
	for {
		datagram := udp.Message{Peer: server, Data: request.Raw, Segment: len(request.Raw)}
		if err := m.port.Sockets()[0].Send([]udp.Message{datagram}); err != nil {
			return netip.AddrPort{}, err
		}
		select {
		case address := <-mapped:
			return address, nil
		case <-repeat.C:
		case <-timeout.C:
			return netip.AddrPort{}, errNoMapping
		}
	}
}

// mapped delivers a STUN server's response to the waiting request. The caller holds the mutex.
func (m *Mux) mapped(waiting chan<- netip.AddrPort, response stunMessage) {
	message := stun.Message{Raw: append([]byte(nil), response...)}
	var seen stun.XORMappedAddress
	if message.Decode() != nil || seen.GetFrom(&message) != nil {
		return
	}
	ip, ok := netip.AddrFromSlice(seen.IP)
	if !ok {
		return
	}
	select {
	case waiting <- netip.AddrPortFrom(ip.Unmap(), uint16(seen.Port)):
	default:
	}
}
