package trunk

import "time"

const (
	// SilentAfter is the silence after which a node is reported as silent: five intervals of probes.
	SilentAfter = 500 * time.Millisecond
	// endAfter is the silence after which a trunk is closed.
	endAfter = 10 * time.Second
	// receivedInterval is the minimum time between two events PacketsReceived.
	receivedInterval = 50 * time.Millisecond
	// tickInterval is the interval of Notify while nothing arrives.
	tickInterval = 50 * time.Millisecond
	// If the time between two steps exceeds pauseAfter, this node did not run, as after SIGSTOP. Such a time is no
	// silence of the other node, whose packets may wait in a socket, and no delay of a parent.
	pauseAfter = 4 * tickInterval
)

// silence is the time since the last packet of another node. Times are monotonic.
type silence struct {
	// last is the time of the last reported packet, stepped that of the last step.
	last, stepped time.Time
	silent        bool
}

// silenceStep is the result of a step of silence.
type silenceStep struct {
	// received is set if packets have arrived, silent when the node becomes silent, ended if the trunk has to be
	// closed.
	received, silent, ended bool
}

func newSilence(now time.Time) silence { return silence{last: now, stepped: now} }

// step reads the time of the last packet, zero before the first.
func (s *silence) step(now, packet time.Time) (r silenceStep) {
	if pause := now.Sub(s.stepped); pause > pauseAfter {
		s.last = s.last.Add(pause)
	}
	s.stepped = now
	if packet.Sub(s.last) >= receivedInterval {
		s.last, s.silent = packet, false
		return silenceStep{received: true}
	}
	if packet.Before(s.last) {
		packet = s.last
	}
	switch quiet := now.Sub(packet); {
	case quiet > endAfter:
		r.ended = true
	case quiet > SilentAfter && !s.silent:
		s.silent, r.silent = true, true
	}
	return r
}
