package bpf

import "net/netip"

const (
	// MaxRules is the number of rules that a sender can have. The rule of a flow is the flow divided by FlowsPerRule.
	MaxRules     = 16
	FlowsPerRule = 16
	// Mark is the mark of copies, which pass the sender's programs. The programs also use Mark + 1.
	Mark = 0x766e6574 // "vnet"
	// Overhead4 and Overhead6 are the bytes that an encapsulated copy is larger than the packet: IP, UDP and the data
	// header, by the version of the outer IP header.
	Overhead4 = 20 + 8 + 16
	Overhead6 = 40 + 8 + 16
	// AnyDSCP is SenderRule.Dscp of a rule that takes packets of any DSCP.
	AnyDSCP = 255
)

// Values of SenderRule.Format.
const (
	// FormatPlain leaves packets as they are.
	FormatPlain = iota
	// FormatEncapsulated is outer IP, UDP and the data header.
	FormatEncapsulated
	// FormatStamped is the number in the IPv4 identification, and path and epoch in the DSCP.
	FormatStamped
	// FormatPaper is the published marking: the path in the ToS byte, and the identification as it is. Only the lab has
	// it, for comparisons: no configuration of an edge selects it.
	FormatPaper
)

// MapAddress returns an address as the maps have it: IPv6, or IPv4 as ::ffff:a.b.c.d.
func MapAddress(a netip.Addr) [16]uint8 { return a.As16() }

// mapPrefix returns the key of a prefix in the maps.
func mapPrefix(p netip.Prefix) SenderPrefix {
	key := SenderPrefix{Bits: uint32(p.Bits()), Address: p.Masked().Addr().As16()}
	if p.Addr().Is4() {
		key.Bits += 96
	}
	return key
}

// AcceptedPrefix returns the key of a prefix in the receiver's map of inner sources.
func AcceptedPrefix(p netip.Prefix) ReceiverPrefix { return ReceiverPrefix(mapPrefix(p)) }

// RulePrefixes returns the entries of the sender's map of prefixes. to has the destination prefix of each rule, by the
// rule's index. The map is searched for the longest prefix of an address, so the value of a prefix has the bits of all
// rules whose prefix contains it.
func RulePrefixes(to []netip.Prefix) map[SenderPrefix]uint32 {
	entries := make(map[SenderPrefix]uint32, len(to))
	for _, inner := range to {
		var mask uint32
		for rule, outer := range to {
			if outer.Bits() <= inner.Bits() && outer.Overlaps(inner) {
				mask |= 1 << rule
			}
		}
		entries[mapPrefix(inner)] = mask
	}
	return entries
}
