package middlebox

import "net/netip"

// firstPort is the first port that a NAT uses. The ports below belong to services.
const firstPort = 1024

// maxMappings bounds the mappings of a NAT. Each is a few hundred bytes. A NAT without room drops packets of new flows.
const maxMappings = 4096

// NAT translates the addresses of the hosts behind it to one address of its own (NAPT, RFC 3022), for TCP and UDP over
// IPv4. It drops everything else. A packet to the hosts passes only from an address and port to which the mapping has
// sent (address and port-dependent filtering, RFC 4787 section 5). Mappings do not expire.
type NAT struct {
	address   netip.Addr
	symmetric bool

	mappings map[flow]*mapping
	// ports are the mappings by protocol and port of the NAT.
	ports map[protocolPort]*mapping
	next  uint16
}

// flow identifies a mapping: the address behind the NAT and, in a symmetric NAT, the address in front of it.
type flow struct {
	protocol      byte
	inner, remote netip.AddrPort
}

type protocolPort struct {
	protocol byte
	port     uint16
}

// mapping is an address of a host with its port at the NAT, and the addresses to which it has sent.
type mapping struct {
	inner netip.AddrPort
	port  uint16
	sent  map[netip.AddrPort]struct{}
}

// NewNAT returns a NAT with an address of IPv4. A symmetric NAT has another port for each address in front of it
// (address and port-dependent mapping, RFC 4787 section 4.1), so that no other host can use a port that a STUN server
// has reported.
func NewNAT(address netip.Addr, symmetric bool) *NAT {
	return &NAT{address: address, symmetric: symmetric, mappings: make(map[flow]*mapping),
		ports: make(map[protocolPort]*mapping), next: firstPort}
}

// Outbound implements Box.
func (n *NAT) Outbound(packet []byte) bool {
	d, ok := parse(packet)
	if !ok || !d.is4 {
		return false
	}
	inner, remote := d.address(source), d.address(destination)
	key := flow{protocol: d.protocol, inner: inner}
	if n.symmetric {
		key.remote = remote
	}
	m := n.mappings[key]
	if m == nil {
		if m = n.add(key, inner); m == nil {
			return false
		}
	}
	m.sent[remote] = struct{}{}
	d.rewrite(source, netip.AddrPortFrom(n.address, m.port))
	return true
}

// add makes a mapping, nil if there is no room.
func (n *NAT) add(key flow, inner netip.AddrPort) *mapping {
	if len(n.mappings) == maxMappings {
		return nil
	}
	for n.next < firstPort || n.ports[protocolPort{key.protocol, n.next}] != nil {
		n.next++
	}
	m := &mapping{inner: inner, port: n.next, sent: make(map[netip.AddrPort]struct{})}
	n.mappings[key], n.ports[protocolPort{key.protocol, m.port}] = m, m
	n.next++
	return m
}

// Inbound implements Box.
func (n *NAT) Inbound(packet []byte) bool {
	d, ok := parse(packet)
	if !ok || !d.is4 || d.address(destination).Addr() != n.address {
		return false
	}
	m := n.ports[protocolPort{d.protocol, d.address(destination).Port()}]
	if m == nil {
		return false
	}
	if _, sent := m.sent[d.address(source)]; !sent {
		return false
	}
	d.rewrite(destination, m.inner)
	return true
}
