package ecn

// TwoPaths determines the codepoints that a receiver with two paths reports to the sender. Every packet leaves on the
// first path with a codepoint. Copies on the second path leave as Not-ECT. A copy that arrives first is no sign that
// the first path clears the ECN field, so it is reported with the last unmarked codepoint of the first path. The zero
// value is ready to use.
type TwoPaths struct{ unmarked Codepoint }

// Reported returns the codepoint to report of a packet that arrived on a path, 0 for the first.
func (t *TwoPaths) Reported(path uint8, arrived Codepoint) Codepoint {
	switch {
	case path == 0 && arrived == CE:
		t.unmarked = ECT1
	case path == 0:
		t.unmarked = arrived
	case arrived == NotECT:
		return t.unmarked
	}
	return arrived
}
