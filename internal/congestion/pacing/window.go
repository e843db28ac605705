package pacing

import (
	"math"
	"slices"
	"time"
)

const (
	// windowPause is the time without departing media after which a frame begins although it does not fit the window:
	// the packets in flight, or the reports about them, are lost, and without a new packet there would be no report. It
	// is Linux's least retransmission timeout; RFC 6298 recommends 1 s.
	windowPause = 200 * time.Millisecond
	// maxWindowPause bounds the time, which doubles with each such frame until a report arrives (RFC 6298 section 5.5):
	// a path that has failed loses all of them.
	maxWindowPause = 800 * time.Millisecond
)

// bound limits the bytes in flight. A frame begins only if the bytes in flight, the rest of the frames that have begun,
// and the frame itself fit the window. Frames that do not fit wait, in turn, until reports make room or until the
// caller drops them because they have expired. Packets of frames that have begun leave regardless of the window: an
// incomplete frame is worth nothing. So do retransmissions and all packets that bypass the pacer (audio, late packets).
// All of them are bytes in flight.
type bound[P any] struct {
	// window and flight are in bytes.
	window, flight int
	// latest is the time at which the latest packet of a flow left.
	latest time.Duration
	// pause is the time after latest at which a frame begins all the same.
	pause time.Duration
	// open are the flows with frames that have begun and may be incomplete.
	open []*Flow[P]
	// taken is the flow of the packet that the caller is about to send. frame is the size of the latest frame that such
	// a packet began, less the packets of the frame that had left before Begin.
	taken *Flow[P]
	frame int
}

// SetInFlight sets the number of bytes in flight: those of packets that have left and that no report covers. It reports
// whether Next may have changed.
func (p *Pacer[P, R]) SetInFlight(bytes int) (next bool) {
	b := p.bound
	if b == nil {
		return false
	}
	next = bytes < b.flight && len(p.flows.beginning) > 0
	if bytes < b.flight {
		b.pause = windowPause
	}
	b.flight = bytes
	return next
}

// setWindow sets the bound on the bytes in flight, 0 for none.
func (p *Pacer[P, R]) setWindow(bytes int) {
	switch {
	case bytes > 0 && p.bound == nil:
		// Packets that have left before count from the next call of SetInFlight on.
		p.bound = &bound[P]{window: bytes, latest: p.filled, pause: windowPause}
	case bytes > 0:
		p.bound.window = bytes
	case p.bound != nil:
		for _, f := range p.bound.open {
			f.listed = false
		}
		p.bound = nil
	}
}

// takes records the flow of the packet that the caller is about to send, and the size of the frame that it begins.
func (b *bound[P]) takes(f *Flow[P], frame int, begins bool) {
	if b == nil {
		return
	}
	b.taken = f
	if begins {
		b.frame = frame
	}
}

// begin records that the frame of a flow has begun, before or after spend.
func (b *bound[P]) begin(f *Flow[P], now time.Duration) {
	if b == nil {
		return
	}
	f.owed, f.began = b.frame, now
	if !f.listed {
		f.listed = true
		b.open = append(b.open, f)
	}
}

// spend accounts for a packet that has left.
func (b *bound[P]) spend(bytes int, now time.Duration) {
	if b == nil || b.taken == nil {
		return
	}
	b.taken.owed -= bytes
	b.frame -= bytes
	if now >= b.latest+b.pause {
		b.pause = min(2*b.pause, maxWindowPause)
	}
	b.taken, b.latest = nil, now
}

// owed returns the size of the rest of the frames that have begun. The rest of a frame that began longer ago than a
// frame interval was dropped, or lost by the publisher.
func (b *bound[P]) owed(now time.Duration) (bytes int) {
	b.open = slices.DeleteFunc(b.open, func(f *Flow[P]) bool {
		f.listed = f.owed > 0 && now-f.began <= maxInterval
		if f.listed {
			bytes += f.owed
		}
		return !f.listed
	})
	return bytes
}

// fits reports whether a frame may begin. A frame that alone exceeds 7/8 of the window begins when the bytes in flight
// are 1/8 of it: audio is always in flight.
func (b *bound[P]) fits(frame int, now time.Duration) bool {
	if b == nil || now >= b.latest+b.pause {
		return true
	}
	frame = min(max(frame, fullPacket), b.window-b.window/8)
	return b.flight+b.owed(now)+frame <= b.window
}

// nextBounded returns the time of the next tick on a path with a window and queued packets that is not smooth.
func (p *Pacer[P, R]) nextBounded() time.Duration {
	at := time.Duration(math.MaxInt64)
	if len(p.flows.ongoing) > 0 {
		at = p.leaving(p.flows.ongoing[0])
	}
	if f := p.beginner(p.filled); f != nil {
		return min(at, p.leaving(f))
	}
	for _, f := range p.flows.beginning {
		begins := max(p.leaving(f), f.head().due)
		if f.head().due <= p.filled {
			begins = max(begins, p.bound.unblocked(p.flows.beginning))
		}
		at = min(at, begins)
	}
	return at
}

// unblocked returns the time at which one of the frames that wait for the window is dropped, or begins all the same.
func (b *bound[P]) unblocked(waiting flowHeap[P]) time.Duration {
	at := b.latest + b.pause
	for _, f := range waiting {
		if expires := f.head().expires; expires > 0 {
			at = min(at, expires)
		}
	}
	return at
}
