package client

import (
	"time"

	"github.com/volsfu/volsfu/internal/alarm"
)

const (
	// tick is how often the sending goroutine looks for what has come while a frame is under way.
	tick = time.Millisecond
	// idleTick is how often it looks while nothing is under way and nothing is due.
	idleTick = time.Second
	// maxPadding is how many of the latest packets of a line a probe repeats, one after the other.
	maxPadding = 256
)

// flusher sends what outlets have queued, as transport.Peer does.
type flusher interface{ Flush() }

// stamper has the kernel tell when it sends a packet, as transport.Peer does.
type stamper interface{ StampNext() }

// sender is the state of the sending goroutine; its slices are kept for the next step.
type sender struct {
	media *media
	due   []outgoing
	// left are the traced frames that leave whole with these, and asked is when the kernel was last asked for a stamp.
	left  []*sentTimes
	asked time.Time
	// planned is when it was to look again, the zero time while nothing is under way.
	planned time.Time
}

// send is the sending goroutine: it writes what the pacer lets go.
func (m *media) send() {
	defer m.session.running.Done()
	defer m.session.confine()
	timer := alarm.New(tick)
	defer timer.Stop()
	s := sender{media: m}
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
	// While a frame is under way what comes meanwhile leaves within a tick, in longer runs.
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

// step writes what is to leave by now, and tells when to look again and whether nothing is under way until then.
func (s *sender) step(now time.Time, peer flusher) (wait time.Duration, idle bool) {
	m := s.media
	wait, idle = s.choose(now)
	for i := range s.due {
		if o := &s.due[i]; o.times != nil {
			s.stamp(o, peer)
		}
		s.due[i].write()
	}
	if len(s.due) > 0 {
		// What leaves at one tick leaves in long runs.
		peer.Flush()
	}
	for _, times := range s.left {
		m.tracing.left(times)
	}
	clear(s.left)
	s.left = s.left[:0]
	clear(s.due)
	return wait, idle
}

// choose takes what is to leave by now, and returns the same as step.
func (s *sender) choose(now time.Time) (wait time.Duration, idle bool) {
	m := s.media
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		// The session is being freed: nobody takes events any more, and the peer is closed.
		s.due = s.due[:0]
		return idleTick, true
	}
	m.control(now)
	s.due = append(s.due[:0], m.urgent...)
	clear(m.urgent)
	m.urgent = m.urgent[:0]
	s.due = m.depart(now, s.due)
	idle = m.pacer.idle() && m.uplink.cluster.ID == 0
	switch {
	case idle:
		wait = idleTick
		// Without a connection nothing is stepped, however long it has been due.
		if next := m.uplink.next(); m.connected && !next.IsZero() {
			wait = min(wait, max(tick, next.Sub(now)))
		}
		s.planned = time.Time{}
	case m.uplink.cluster.ID != 0:
		wait = tick
		s.planned = time.Time{}
	default:
		wait = s.plan(now)
	}
	return wait, idle
}

// plan gives the time until the next step while frames are under way. It counts from when this one was to be made, so that turns are as many as they are meant to be where wake-ups come late.
func (s *sender) plan(now time.Time) time.Duration {
	from := now
	if late := now.Sub(s.planned); late > 0 && late < maxTurn {
		from = s.planned
	}
	turn := s.media.pacer.turn(now, from)
	if s.planned = from.Add(turn); s.planned.Before(now.Add(minTurn / 2)) {
		s.planned = now.Add(turn)
	}
	return s.planned.Sub(now)
}

// stamp takes the stamps of a packet that is about to be handed to the socket, and now and then has the kernel tell when it sends it.
func (s *sender) stamp(o *outgoing, peer flusher) {
	now := time.Now()
	o.times.leaves(o.mark, now)
	if kernel, ok := peer.(stamper); ok && o.mark&markFirst != 0 && now.Sub(s.asked) >= stampInterval {
		s.asked = now
		kernel.StampNext()
	}
	if o.mark&markLast != 0 {
		s.left = append(s.left, o.times)
	}
}

// control takes reports, and what follows from them: the rate of the pacer, which tracks are sent, and probes.
func (m *media) control(now time.Time) {
	m.uplink.report(now, m.departures.fresh)
	m.departures.fresh = m.departures.fresh[:0]
	if !m.connected || m.extension == 0 {
		return
	}
	m.uplink.step(now)
	m.weigh(now)
	m.pacer.limit(m.uplink.path(now), now)
}

// depart adds what is due to the packets that leave in any case, and notes that all of them leave.
func (m *media) depart(now time.Time, packets []outgoing) []outgoing {
	urgent := 0
	for i := range packets {
		urgent += packets[i].size()
	}
	if bytes, probing := m.uplink.probe(now); probing {
		m.pacer.spend(urgent)
		packets = m.pacer.ahead(now, bytes-urgent, packets)
		packets = m.pad(bytes, packets)
	} else {
		m.pacer.spend(urgent)
		packets = m.pacer.due(now, packets)
	}
	m.leaveOut()
	for i := range packets {
		o := &packets[i]
		o.keep(now)
		if !o.repeated && o.line.repeats() {
			m.padding = padding{line: o.line, newest: o.header.SequenceNumber}
		}
		if m.extension != 0 {
			size := o.size()
			m.uplink.sent(now, o.count(m.departures.history, m.extension, size, now), size)
		}
	}
	return packets
}

// padding is where a probe takes packets from: those before newest of a line, of which so many were repeated already.
type padding struct {
	line     *line
	newest   uint16
	repeated uint16
}

// pad repeats packets that were sent lately until all have that many bytes. They are retransmissions that nobody asked for, and repair what was lost unnoticed.
func (m *media) pad(bytes int, packets []outgoing) []outgoing {
	for i := range packets {
		bytes -= packets[i].size()
	}
	p := &m.padding
	for bytes > 0 && p.line != nil {
		sent, ok := p.line.history.Get(p.newest - p.repeated)
		if !ok || p.repeated == maxPadding {
			if p.repeated == 0 {
				return packets
			}
			p.repeated = 0
			continue
		}
		p.repeated++
		o, ok := p.line.again(sent)
		if !ok {
			return packets
		}
		packets = append(packets, o)
		size := o.size()
		bytes -= size
		m.counts.ProbeBytes += int64(size)
	}
	return packets
}
