package ratelimit

import "net/netip"

// sourceBits are the bits of an IPv6 address that one household or host has: a link has them to itself (RFC 4291
// section 2.5.4).
const sourceBits = 64

// Source returns what counts as one address where the clients of an address are limited: an address of IPv4, or a
// prefix of 64 bits of IPv6. All invalid addresses are one source. This host's own addresses (loopback) are not
// limited: the programs on a host are its owner's.
func Source(address netip.Addr) (source netip.Prefix, limited bool) {
	address = address.Unmap().WithZone("")
	// It fails for invalid addresses, and not for more bits than an address has.
	source, _ = address.Prefix(min(address.BitLen(), sourceBits))
	return source, !address.IsLoopback()
}
