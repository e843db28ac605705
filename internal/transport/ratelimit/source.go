package ratelimit

import "net/netip"

// sourceBits is the length of the IPv6 prefix of one household or host: each link has such a prefix (RFC 4291 section
// 2.5.4).
const sourceBits = 64

// Source returns the prefix that counts as one address in limits per address: an IPv4 address, or an IPv6 prefix of 64
// bits. All invalid addresses are one source. limited is false for this host's own addresses (loopback), because the
// programs on a host belong to one owner.
func Source(address netip.Addr) (source netip.Prefix, limited bool) {
	address = address.Unmap().WithZone("")
	// Prefix fails for invalid addresses only, because bits is at most the length of the address.
	source, _ = address.Prefix(min(address.BitLen(), sourceBits))
	return source, !address.IsLoopback()
}
