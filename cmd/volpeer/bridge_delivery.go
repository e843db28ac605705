package main

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/bridge"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// deliver gives the connector a tile frame as fast as that can read. Where it has to wait for that it pauses, for as long as it says.
func (s *span) deliver(ctx context.Context, r *bridge.Received, pause func(time.Duration)) {
	d := s.downward
	if s.unheard() {
		return
	}
	d.video = d.outlet.Cut(d.video[:0], r, time.Now())
	for rest := d.video; len(rest) > 0; {
		n, wait := d.pace.Take(time.Now(), len(rest)/vr2gather.DatagramSize)
		if n == 0 {
			pause(wait)
			if ctx.Err() != nil {
				return
			}
			continue
		}
		s.give(rest[:n*vr2gather.DatagramSize])
		rest = rest[n*vr2gather.DatagramSize:]
	}
	s.count()
}

// speakTo gives the connector a frame of sound, which waits for nothing.
func (s *span) speakTo(r *bridge.Received) {
	d := s.downward
	if s.unheard() {
		return
	}
	d.audio = d.outlet.Cut(d.audio[:0], r, time.Now())
	s.give(d.audio)
	s.count()
}

// unheard reports whether the connector is silent, and counts a frame that is not sent to it therefore. Without a connector frames are cut and
// counted as if they were sent.
func (s *span) unheard() bool {
	if s.local == nil {
		return false
	}
	if _, ok := s.local.receiver(time.Now()); ok {
		return false
	}
	s.tally.Add(bridge.DropSilent)
	return true
}

// give sends datagrams to the connector, if there is one.
func (s *span) give(datagrams []byte) {
	if s.local == nil {
		return
	}
	if receiver, ok := s.local.receiver(time.Now()); ok && len(datagrams) > 0 {
		s.local.send(datagrams, receiver)
	}
}

// count makes the outlet's counts known.
func (s *span) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures.outlet = s.downward.outlet.Counts()
}

// passed books how long a frame took from its last packet to the connector.
func (s *span) passed(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures.down.Add(took)
}
