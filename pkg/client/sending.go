package client

import (
	"time"

	"github.com/volsfu/volsfu/internal/alarm"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
)

const (
	// tick is the longest that a packet waits for others, so that packets leave in longer runs while frames leave.
	tick = time.Millisecond
	// minTick is the shortest time between two steps. At 240 Mbit/s 16 packets of 1,200 bytes, the longest run of a
	// pacer's tick, leave in 0.6 ms.
	minTick = tick / 4
	// idleTick is the time between two steps if nothing is due.
	idleTick = time.Second
	// stampInterval is the least time between two packets for which the kernel is asked when it sends them.
	stampInterval = 5 * time.Millisecond
)

// flusher sends what outlets have queued, as transport.Peer does.
type flusher interface{ Flush() }

// stamper has the kernel tell when it sends a packet, as transport.Peer does.
type stamper interface{ StampNext() }

// sending is the state of the sending goroutine. Its slices are kept for the next step.
type sending struct {
	media *media
	due   []outgoing
	// left are the traced frames that leave whole with these, and asked is when the kernel was last asked for a stamp.
	left  []*frametrace.Sent
	asked time.Time
}

// send is the sending goroutine: it writes the packets that leave.
func (m *media) send() {
	defer m.session.running.Done()
	defer m.session.confine()
	timer := alarm.New(tick)
	defer timer.Stop()
	s := sending{media: m}
	for {
		wait, idle := s.step(time.Now(), m.session.currentPeer())
		if !m.rest(timer, wait, idle) {
			return
		}
	}
}

// rest sleeps until it is time for another step. It is false when the session ends.
func (m *media) rest(timer *alarm.Timer, wait time.Duration, idle bool) bool {
	if idle {
		timer.Reset(wait)
		select {
		case <-m.wake:
		case <-timer.C:
		case <-m.session.ctx.Done():
			return false
		}
		return true
	}
	// While packets wait, packets that are queued meanwhile leave within a tick, in longer runs.
	end := time.Now().Add(wait)
	for come := m.wake; ; come = nil {
		timer.Reset(time.Until(end))
		select {
		case <-come:
			now := time.Now()
			end = now.Add(min(tick, end.Sub(now)))
		case <-timer.C:
			return true
		case <-m.session.ctx.Done():
			return false
		}
	}
}

// step writes the packets that leave now. It returns the time until the next step, and reports whether nothing waits.
func (s *sending) step(now time.Time, peer flusher) (wait time.Duration, idle bool) {
	m := s.media
	wait, idle = s.choose(now)
	for i := range s.due {
		if o := &s.due[i]; o.times != nil {
			s.stamp(o, peer)
		}
		s.due[i].write()
	}
	if len(s.due) > 0 {
		peer.Flush()
	}
	for _, times := range s.left {
		m.tracing.Left(times)
	}
	clear(s.left)
	s.left = s.left[:0]
	clear(s.due)
	return wait, idle
}

// choose takes the packets that leave now, and returns the same as step.
func (s *sending) choose(now time.Time) (wait time.Duration, idle bool) {
	m := s.media
	m.mu.Lock()
	defer m.mu.Unlock()
	s.due = s.due[:0]
	if m.ended {
		// The session is being freed: its events and its peer are closed.
		return idleTick, true
	}
	// Without a connection nothing is stepped, however long a step has been due.
	estimates := m.connected && m.uplink.numbers()
	if estimates {
		m.control(now)
	}
	s.due = m.uplink.depart(now, s.due)
	m.countDropped()
	next, waits := m.uplink.due()
	wait = idleTick
	if waits {
		wait = min(wait, max(minTick, next.Sub(now)))
	}
	if estimates {
		wait = min(wait, max(tick, m.uplink.stepDue(now)))
	}
	return wait, !waits
}

// stamp takes the stamps of a packet that is about to be handed to the socket. Every stampInterval stamp asks the kernel
// for the time at which the kernel sends the packet.
func (s *sending) stamp(o *outgoing, peer flusher) {
	now := time.Now()
	o.times.Leaves(o.mark, now)
	if kernel, ok := peer.(stamper); ok && o.mark&frametrace.First != 0 && now.Sub(s.asked) >= stampInterval {
		s.asked = now
		kernel.StampNext()
	}
	if o.mark&frametrace.Last != 0 {
		s.left = append(s.left, o.times)
	}
}

// control steps the estimate, and decides which tracks are sent.
func (m *media) control(now time.Time) {
	if m.uplink.stepDue(now) <= 0 {
		m.uplink.sender.Step(now)
	}
	m.weigh(now)
}
