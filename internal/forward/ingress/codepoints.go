package ingress

import (
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// codepointWindow is the time over which the codepoints of a publisher's packets are counted.
const codepointWindow = time.Second

// Codepoints are numbers of RTP packets by ecn.Codepoint.
type Codepoints [ecn.CE + 1]uint64

// Codepoint returns ecn.CE if a packet was marked, and the most frequent codepoint otherwise. Codepoint reports false
// if there are no packets.
func (c *Codepoints) Codepoint() (most ecn.Codepoint, any bool) {
	for codepoint, n := range c {
		if n > 0 && (!any || n > c[most]) {
			most, any = ecn.Codepoint(codepoint), true
		}
	}
	if c[ecn.CE] > 0 {
		most = ecn.CE
	}
	return most, any
}

// codepointWindows counts the packets of a connection in windows.
type codepointWindows struct {
	began         time.Time
	current, last Codepoints
}

// add counts a packet.
func (w *codepointWindows) add(codepoint ecn.Codepoint, now time.Time) {
	w.advance(now)
	w.current[codepoint]++
}

// advance begins a new window if the current one has ended. A window without successor for as long again is forgotten.
func (w *codepointWindows) advance(now time.Time) {
	elapsed := now.Sub(w.began)
	if elapsed < codepointWindow {
		return
	}
	w.last = w.current
	if elapsed >= 2*codepointWindow {
		w.last = Codepoints{}
	}
	w.began, w.current = now, Codepoints{}
}

// complete returns the packets of the last complete window, all zero if none has arrived.
func (w *codepointWindows) complete(now time.Time) Codepoints {
	w.advance(now)
	return w.last
}
