package forward

import "github.com/volsfu/volsfu/internal/panics"

// signalAfter is after how many packets those who follow their tracks are told, however long the batch. The largest segment that a socket receives at once
// (UDP_GRO) is 64 kB, 55 packets of payload v1: a burst that came as one is signalled as one, so that it can leave as one run per receiver. Taking 64 packets
// takes about 60 µs, at 1 µs each, decryption included.
const signalAfter = 64

// Signal tells the writers of the packets since the last call, without waking any. It is called before Flush where several ingresses have packets that came together: whoever is served first gets what
// all of them have as one burst, and nobody's packets wait unseen for what another's cost.
func (i *Ingress) Signal() {
	i.mu.Lock()
	i.signal()
	i.mu.Unlock()
}

// Flush lets the packets since the last call go on to the slots, and forwards them as far as nobody else does (see turn). It is called by the goroutine that calls RTP.
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
	lend(roused, packets)
	clear(roused)
	i.mu.Lock()
	if i.roused == nil {
		i.roused = roused[:0]
	}
	i.mu.Unlock()
}

// signal tells those who follow them of the tracks that packets have come on, and notes the writers that are to be woken for it. The caller holds the mutex, here and
// below. A panic ends the process: writers of all clients go by the signals.
func (i *Ingress) signal() {
	defer panics.Shared()
	i.rousing += len(i.unsignalled)
	var told *Track
	for n, t := range i.unsignalled {
		if t != told {
			i.roused = t.signal(i.roused)
		}
		told = t
		i.unsignalled[n] = nil
	}
	i.unsignalled = i.unsignalled[:0]
}

// hold notes that a packet has come on a track, of which those who follow it are to be told.
func (i *Ingress) hold(t *Track) {
	if i.unsignalled = append(i.unsignalled, t); len(i.unsignalled) == signalAfter {
		i.wakeWriters()
	}
}

// wakeWriters signals and leaves the work to the writers' goroutines.
func (i *Ingress) wakeWriters() {
	i.signal()
	for n, w := range i.roused {
		w.wake()
		i.roused[n] = nil
	}
	i.roused, i.rousing = i.roused[:0], 0
}
