package forward

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/feedback"
)

// downlink is the way to a subscriber in virtual time: a bottleneck with a queue, a delay each way, and a receiver that reports what arrives.
type downlink struct {
	t        testing.TB
	rig      *rig
	to       *subscriber
	rate     float64 // bit/s
	delay    time.Duration
	queueMax time.Duration
	// loses tells whether the packet with a number of the transport gets lost behind the bottleneck.
	loses func(number uint16) bool
	deaf  bool // no report comes through

	free     time.Time
	recorder *feedback.TransportRecorder
	arriving []arrivingPacket
	reports  []arrivingReport
	// departed are all packets with the time at which they left, queued the times that they waited in the queue.
	departed []departedPacket
	queued   []time.Duration
	dropped  int
}

type arrivingPacket struct {
	at     time.Time
	number uint16
	size   int
}

type arrivingReport struct {
	at    time.Time
	bytes []byte
}

type departedPacket struct {
	at   time.Time
	size int
	rtp.Packet
}

// connect puts a subscriber behind a link of so many bit/s, with a round trip of 20 ms and a queue of 200 ms.
func (r *rig) connect(s *subscriber, rate float64) *downlink {
	s.peer.agree(testExtension)
	return &downlink{
		t: r.t, rig: r, to: s, rate: rate, delay: 10 * time.Millisecond, queueMax: 200 * time.Millisecond,
		recorder: feedback.NewTransportRecorder(feedback.DefaultConfig().Transport),
	}
}

// pass lets time pass, in the steps in which something happens.
func (l *downlink) pass(d time.Duration) {
	r := l.rig
	for end := r.now.Add(d); ; {
		r.run()
		l.carry()
		l.arrive()
		next := end
		for _, w := range r.engine.writers {
			next = earliest(next, r.now.Add(max(w.idle(), time.Microsecond)))
		}
		if len(l.arriving) > 0 {
			next = earliest(next, l.arriving[0].at)
		}
		if len(l.reports) > 0 {
			next = earliest(next, l.reports[0].at)
		}
		next = earliest(next, l.recorder.Next())
		if !r.now.Before(end) {
			return
		}
		if next.After(r.now) {
			r.now = earliest(next, end)
		}
	}
}

// carry takes what has left, and puts it on the link.
func (l *downlink) carry() {
	peer := l.to.peer
	peer.mu.Lock()
	flushed := slices.Clone(peer.flushed)
	peer.flushed = peer.flushed[:0]
	peer.mu.Unlock()
	now := l.rig.now
	for _, p := range flushed {
		raw, err := p.Marshal()
		if err != nil {
			l.t.Fatal(err)
		}
		number, ok := feedback.TransportSequence(raw, testExtension)
		if !ok {
			l.t.Fatal("a packet has no number")
		}
		size := wireOverhead + len(p.Payload)
		l.departed = append(l.departed, departedPacket{now, size, p})
		if l.free.Before(now) {
			l.free = now
		}
		waits := l.free.Sub(now)
		if waits > l.queueMax {
			l.dropped++
			continue
		}
		l.queued = append(l.queued, waits)
		l.free = l.free.Add(time.Duration(float64(size) * 8 / l.rate * 1e9))
		if l.loses == nil || !l.loses(number) {
			l.arriving = append(l.arriving, arrivingPacket{l.free.Add(l.delay), number, size})
		}
	}
}

// arrive lets packets arrive, and reports of them.
func (l *downlink) arrive() {
	now := l.rig.now
	for len(l.arriving) > 0 && !l.arriving[0].at.After(now) {
		p := l.arriving[0]
		l.arriving = l.arriving[1:]
		l.recorder.Received(p.number, p.size, p.at)
	}
	if due := l.recorder.Next(); !due.IsZero() && !due.After(now) {
		for _, report := range reportsOf(l.recorder, now) {
			l.reports = append(l.reports, arrivingReport{now.Add(l.delay), report})
		}
	}
	for len(l.reports) > 0 && !l.reports[0].at.After(now) {
		if !l.deaf {
			l.to.receiver.RTCP(l.reports[0].bytes, now)
		}
		l.reports = l.reports[1:]
	}
}

// padding gives the RTX packets among those that left since a time.
func (l *downlink) padding(since time.Time) (packets []departedPacket) {
	for _, p := range l.departed {
		if p.SSRC == l.to.outlet.rtx && !p.at.Before(since) {
			packets = append(packets, p)
		}
	}
	return packets
}
