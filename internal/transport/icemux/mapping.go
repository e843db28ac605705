package icemux

import (
	"fmt"
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

var errNoMapping = fmt.Errorf("the STUN server did not answer within %v", stunTimeout)

// LearnAddresses asks STUN servers for the address of the media port, and returns the addresses and the errors of the
// servers that have given none. The addresses count as this host's own from now on.
func (m *Mux) LearnAddresses(servers []string) (known []string, failed []error) {
	for _, server := range servers {
		address, err := net.ResolveUDPAddr("udp4", strings.TrimPrefix(server, "stun:"))
		var seen netip.AddrPort
		if err == nil {
			seen, err = m.mappedAddress(address.AddrPort())
		}
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", server, err))
		case !slices.Contains(known, seen.Addr().String()):
			known = append(known, seen.Addr().String())
		}
	}
	m.own.Add(known)
	return known, failed
}

// Probe returns a datagram that the mux recognises when it arrives at the port: a response of STUN to a request that
// was not sent. The channel is signalled when the datagram arrives. done forgets the datagram.
func (m *Mux) Probe() (datagram []byte, arrived <-chan netip.AddrPort, done func()) {
	response, err := stun.Build(stun.TransactionID, stun.BindingSuccess,
		&stun.XORMappedAddress{IP: net.IPv4zero.To4(), Port: 0}, stun.Fingerprint)
	if err != nil {
		panic(fmt.Sprintf("a response of STUN cannot be built: %v", err))
	}
	arrived, done = m.await(response.TransactionID)
	return response.Raw, arrived, done
}

// await registers a request that waits for the response of a STUN server. done removes it.
func (m *Mux) await(id TransactionID) (mapped <-chan netip.AddrPort, done func()) {
	waiting := make(chan netip.AddrPort, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mapping[id] = waiting
	return waiting, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.mapping, id)
	}
}

// mappedAddress asks one STUN server for the address of the media port.
func (m *Mux) mappedAddress(server netip.AddrPort) (netip.AddrPort, error) {
	request, err := stun.Build(stun.TransactionID, stun.BindingRequest)
	if err != nil {
		return netip.AddrPort{}, err
	}
	mapped, done := m.await(request.TransactionID)
	defer done()
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
