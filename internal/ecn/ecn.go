// Package ecn has the field of explicit congestion notification in IP headers.
package ecn

// Codepoint is the ECN field of an IP packet, with its value in the IP header (RFC 3168 section 5, RFC 9331 section 4).
type Codepoint uint8

// The codepoints.
const (
	// NotECT is a packet that a queue must not mark.
	NotECT Codepoint = 0
	// ECT1 is a packet of an L4S flow.
	ECT1 Codepoint = 1
	// ECT0 is a packet of a flow that responds to a mark as to a loss.
	ECT0 Codepoint = 2
	// CE is a packet that a queue has marked: congestion experienced.
	CE Codepoint = 3
)

// L4S reports whether a packet with the codepoint is an L4S packet to a queue: ECT(1), or CE (RFC 9331 section 5.1).
func (c Codepoint) L4S() bool { return c == ECT1 || c == CE }

// String returns the name of the codepoint as in RFC 3168.
func (c Codepoint) String() string {
	switch c {
	case ECT1:
		return "ECT(1)"
	case ECT0:
		return "ECT(0)"
	case CE:
		return "CE"
	default:
		return "Not-ECT"
	}
}
