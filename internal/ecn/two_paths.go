package ecn

// maxRun is the number of packets in a row on one path after which the other path counts as silent: 4 s at 10 Mbit/s.
// Another path becomes the first one within 1.25 s of a failure.
const maxRun = 1 << 12

// TwoPaths determines the codepoints that a receiver with two paths reports to the sender. Every packet leaves on one
// of the paths with a codepoint. Copies on the other path leave as Not-ECT. A copy that arrives first is no sign that a
// path clears the ECN field, so it is reported with the last unmarked codepoint of the other path. The sender chooses
// the path, which changes with failures. The zero value is ready to use.
type TwoPaths struct {
	unmarked [2]Codepoint
	// last is the path of the last packet, run the number of packets in a row on this path, maxRun at most.
	last uint8
	run  int
}

// Reported returns the codepoint to report of a packet that arrived on a path, 0 or 1.
func (t *TwoPaths) Reported(path uint8, arrived Codepoint) Codepoint {
	if int(path) >= len(t.unmarked) {
		return arrived
	}
	if path != t.last {
		t.last, t.run = path, 0
	}
	t.run = min(t.run+1, maxRun)
	switch {
	case arrived == CE && path == 0:
		t.unmarked[0] = ECT1
	case arrived == CE:
		// A network that marks copies does not show that the second path carries ECT.
	case arrived == NotECT && t.run < maxRun:
		t.unmarked[path] = NotECT
		return t.unmarked[1-path]
	default:
		t.unmarked[path] = arrived
	}
	return arrived
}
