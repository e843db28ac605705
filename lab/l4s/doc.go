// Package l4s checks the claims of L4S (RFC 9330): nearly the whole link at a queue of about a millisecond, a fair
// share beside other flows, and a fallback on paths that do not support L4S (vollab check l4s).
//
// A check runs cases of package control in virtual time, with five seeds each and on all processors at the same time,
// and then end to end, once and one after the other: a server and its clients with real sockets, on hosts of an
// emulated network.
package l4s

// Options configure the checks.
type Options struct {
	// Live is set if the checks also measure end to end, which needs root and about 40 minutes.
	Live bool
	// Scream and UDPPrague are folders with the programs of SCReAM and udp_prague, empty for none.
	Scream, UDPPrague string
}
