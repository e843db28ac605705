package transport

import "net/netip"

// sourceBits are those of an IPv6 address that one household or host has: a link has them to itself (RFC 4291 section 2.5.4).
const sourceBits = 64

// Source is what counts as one address where the clients of one are limited: an address of IPv4, or a prefix of 64 bits of IPv6. What is no address is one of its own.
// This host's own addresses (loopback) are not limited: what runs on it is its owner's.
func Source(address netip.Addr) (source netip.Prefix, limited bool) {
	address = address.Unmap().WithZone("")
	// It fails for what is no address, and not for more bits than one has.
	source, _ = address.Prefix(min(address.BitLen(), sourceBits))
	return source, !address.IsLoopback()
}
