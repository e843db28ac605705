package ingress

import (
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/forward/turn"
	"github.com/volsfu/volsfu/internal/panics"
)

// signalAfter is the number of packets after which the followers of their tracks are signalled, however long the batch is.
// The largest segment that a socket receives at once (UDP_GRO) is 64 kB, 55 packets of payload v1: a burst that arrives as
// one segment is signalled at once, so that it can leave as one run per receiver. To process 64 packets takes about 60 µs,
// at 1 µs each, decryption included.
const signalAfter = 64

// Signal signals the packets since the last call to the writers, without waking a writer. Signal is called before Flush if
// packets of several ingresses arrived together: then the first writer that runs finds the packets of all ingresses as one
// burst.
func (i *Ingress) Signal() {
	i.mu.Lock()
	i.signal()
	i.mu.Unlock()
}

// Flush signals the packets since the last call, and runs the writers that no other goroutine runs (see turn). The
// goroutine that calls RTP calls Flush.
func (i *Ingress) Flush() {
	i.mu.Lock()
	i.signal()
	roused, packets := i.roused, i.rousing
	i.rousing = 0
	if len(roused) == 0 {
		i.mu.Unlock()
		return
	}
	i.roused = nil
	i.mu.Unlock()
	turn.Lend(roused, packets)
	clear(roused)
	i.mu.Lock()
	if i.roused == nil {
		i.roused = roused[:0]
	}
	i.mu.Unlock()
}

// signal signals the tracks with new packets to their followers, and collects the writers to wake. The caller holds the
// mutex, here and below. A panic ends the process, because the writers of all clients depend on the signals.
func (i *Ingress) signal() {
	defer panics.Shared()
	i.rousing += len(i.unsignalled)
	var signalled *track.Track
	for n, t := range i.unsignalled {
		if t != signalled {
			i.roused = t.Signal(i.roused)
		}
		signalled = t
		i.unsignalled[n] = nil
	}
	i.unsignalled = i.unsignalled[:0]
}

// noteArrival notes a new packet of a track, to be signalled.
func (i *Ingress) noteArrival(t *track.Track) {
	if i.unsignalled = append(i.unsignalled, t); len(i.unsignalled) == signalAfter {
		i.wakeWriters()
	}
}

// wakeWriters signals, and wakes the writers' goroutines.
func (i *Ingress) wakeWriters() {
	i.signal()
	for n, w := range i.roused {
		w.Wake()
		i.roused[n] = nil
	}
	i.roused, i.rousing = i.roused[:0], 0
}
