package ingress

import (
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/forward/turn"
	"github.com/volsfu/volsfu/internal/panics"
)

// signalAfter is the number of packets after which the followers of their tracks are signalled, even if the batch
// continues. The largest segment that a socket receives at once (UDP_GRO) is 64 kB, 55 packets of payload v1. A burst
// that arrives as one segment is therefore signalled as a whole and can leave as one run per receiver. Processing 64
// packets takes about 60 µs, at 1 µs each including decryption.
const signalAfter = 64

// signals holds the tracks with new packets and the writers to wake. The mutex of the ingress guards it.
type signals struct {
	// tracks are the tracks of the packets that are not signalled yet, at most signalAfter.
	tracks []*track.Track
	// toWake are the turns of the writers to wake, for that number of packets.
	toWake  []*turn.Turn
	packets int
}

// note records a new packet of a track.
func (s *signals) note(t *track.Track) {
	if s.tracks = append(s.tracks, t); len(s.tracks) == signalAfter {
		s.wake()
	}
}

// send signals the tracks with new packets to their followers, and collects the writers to wake. A panic ends the
// process, because the writers of all clients depend on the signals.
func (s *signals) send() {
	defer panics.Shared()
	s.packets += len(s.tracks)
	var signalled *track.Track
	for n, t := range s.tracks {
		if t != signalled {
			s.toWake = t.Signal(s.toWake)
		}
		signalled = t
		s.tracks[n] = nil
	}
	s.tracks = s.tracks[:0]
}

// wake calls send and wakes the writers' goroutines.
func (s *signals) wake() {
	s.send()
	for n, w := range s.toWake {
		w.Wake()
		s.toWake[n] = nil
	}
	s.toWake, s.packets = s.toWake[:0], 0
}

// take calls send, and removes and returns the writers to wake and the number of packets.
func (s *signals) take() (toWake []*turn.Turn, packets int) {
	s.send()
	toWake, packets = s.toWake, s.packets
	s.packets = 0
	if len(toWake) > 0 {
		s.toWake = nil
	}
	return toWake, packets
}

// reuse keeps the memory of a list that take has returned.
func (s *signals) reuse(toWake []*turn.Turn) {
	clear(toWake)
	if s.toWake == nil {
		s.toWake = toWake[:0]
	}
}
