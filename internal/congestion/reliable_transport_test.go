package congestion

import (
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

// transmit sends the segments that fit into the transport's window, and retransmits those without an acknowledgement
// for long.
func (f *reliableFlow) transmit(now time.Duration) {
	if len(f.flight) > 0 && now-f.progress > f.timeout() {
		f.send(now, f.flight[0])
		f.progress = now
	}
	for len(f.pending) > 0 && f.flying+f.pending[0].bytes <= int(f.window) {
		s := f.pending[0]
		f.pending = f.pending[1:]
		if len(f.flight) == 0 {
			f.progress = now
		}
		f.flight = append(f.flight, s)
		f.expected = append(f.expected, s)
		f.flying += s.bytes
		f.send(now, s)
	}
}

// timeout returns the time of a tail loss probe: two round trips, and a delayed acknowledgement.
func (f *reliableFlow) timeout() time.Duration {
	return 2*f.estimator.rtt + delayedAck + 100*time.Millisecond
}

func (f *reliableFlow) send(now time.Duration, s *segment) {
	f.order++
	s.order = f.order
	f.inNetwork[f.order] = s
	f.link.Send(&netem.Packet{Size: s.bytes + segmentOverhead, Number: f.order}, start.Add(now))
}

// arrive processes segments at the receiver and acknowledges them: at once for the second packet or after a gap, else
// after a while.
func (f *reliableFlow) arrive(now time.Duration) {
	for _, p := range f.link.Deliver(start.Add(now)) {
		f.waited = append(f.waited, sample{now, p.Waited})
		s := f.inNetwork[p.Number]
		delete(f.inNetwork, p.Number)
		if s.received {
			f.ack(now)
			continue
		}
		s.received = true
		f.fresh = append(f.fresh, s)
		f.complete(now, s)
		for len(f.expected) > 0 && f.expected[0].received {
			f.expected = f.expected[1:]
		}
		// Segments are sent in order, so a missing earlier segment is a gap.
		missing := len(f.expected) > 0 && f.expected[0].order < p.Number
		if len(f.fresh) >= 2 || missing {
			f.ack(now)
		} else if f.ackDue == 0 {
			f.ackDue = now + delayedAck
		}
	}
	if f.ackDue > 0 && now >= f.ackDue {
		f.ack(now)
	}
}

// complete counts a frame whose last segment has arrived.
func (f *reliableFlow) complete(now time.Duration, s *segment) {
	if s.frame == nil {
		return
	}
	if s.frame.missing--; s.frame.missing == 0 {
		f.media += s.frame.bytes
		f.latencies = append(f.latencies, sample{now, now - s.frame.whole - f.config.Delay})
	}
}

// ack sends an acknowledgement, which may be delayed, but not overtaken.
func (f *reliableFlow) ack(now time.Duration) {
	f.ackDue = 0
	at := now + f.config.Delay + f.busy
	if f.jitter > 0 {
		at += time.Duration(f.random.Int64N(int64(f.jitter)))
	}
	if f.stall > 0 {
		for at > f.stalls {
			f.stalls += time.Second + f.stall + time.Duration(f.random.Int64N(int64(2*time.Second)))
		}
		if at > f.stalls-f.stall {
			at = f.stalls
		}
	}
	f.lastAck = max(f.lastAck, at)
	f.acks = append(f.acks, acknowledgement{f.lastAck, f.fresh})
	f.fresh = nil
}

// acknowledge processes acknowledgements at the sender.
func (f *reliableFlow) acknowledge(now time.Duration) {
	for len(f.acks) > 0 && f.acks[0].at <= now && !f.stopped {
		for _, s := range f.acks[0].segments {
			s.acked = true
			f.newest = max(f.newest, s.order)
			f.flying -= s.bytes
			f.acked += s.bytes
			switch {
			case len(f.pending) == 0:
			case f.window < f.slow:
				f.window += float64(s.bytes)
			default:
				f.window += segmentBytes * float64(s.bytes) / f.window
			}
		}
		f.acks = f.acks[1:]
		f.progress = now
		f.repeat(now)
		f.report(now)
		for i := range modelTiles {
			f.serve(now, (f.first+i)%modelTiles)
		}
		f.first++
	}
}

// repeat retransmits segments that are lost because later packets have been acknowledged.
func (f *reliableFlow) repeat(now time.Duration) {
	kept := f.flight[:0]
	for _, s := range f.flight {
		if s.acked {
			continue
		}
		kept = append(kept, s)
		if s.order+reordered <= f.newest {
			if s.order > f.recovery {
				f.slow = max(f.window/2, leastWindow)
				f.window, f.recovery = f.slow, f.order
			}
			f.send(now, s)
		}
	}
	f.flight = kept
}

// report reports acknowledged bytes to the estimator, as a chunk sender does: in the order in which frames were handed
// over.
func (f *reliableFlow) report(now time.Duration) {
	if f.handed > f.acked && now-f.reported < 10*time.Millisecond {
		return
	}
	f.reported = now
	const tick = time.Second / 1024
	results := f.left
	n := 0
	for ; n < len(f.parts) && f.parts[n].end <= f.acked; n++ {
		p := &f.parts[n]
		p.result.Received, p.result.Arrived = true, (now-p.held+remoteOffset)/tick*tick
		results = append(results, p.result)
	}
	f.parts = f.parts[n:]
	f.left = nil
	if len(results) > 0 {
		f.estimator.Report(start.Add(now), results)
	}
}
