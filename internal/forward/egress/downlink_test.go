package egress

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// downlink simulates the path to a subscriber in virtual time: a bottleneck with a queue, a delay in each direction,
// and a receiver that reports arrivals.
type downlink struct {
	t        testing.TB
	rig      *rig
	to       *subscriber
	rate     float64 // bit/s
	delay    time.Duration
	queueMax time.Duration
	// loses reports whether the packet with a transport-wide number is lost behind the bottleneck.
	loses func(number uint16) bool
	deaf  bool // reports are lost
	// asks requests lost packets. It is nil if the receiver makes no requests.
	asks *asker
	// marking replaces the bottleneck, its queue and the delay towards the receiver unless nil.
	marking *netem.Link
	// clears is set if the path clears the ECN field.
	clears bool

	free     time.Time
	recorder *feedback.TransportRecorder
	// streams is the recorder if the receiver reports by RFC 8888.
	streams  *feedback.CongestionRecorder
	arriving []arrivingPacket
	reports  []arrivingReport
	// departed are all packets with their departure times, queued their queueing delays.
	departed []departedPacket
	queued   []time.Duration
	dropped  int
}

type arrivingPacket struct {
	at     time.Time
	number uint16
	size   int
	ecn    ecn.Codepoint
	rtp.Packet
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

// connect puts a subscriber behind a link with that rate in bit/s, a round trip of 20 ms and a queue of 200 ms.
func (r *rig) connect(s *subscriber, rate float64) *downlink {
	s.peer.agree(testExtension)
	return &downlink{
		t: r.t, rig: r, to: s, rate: rate, delay: 10 * time.Millisecond, queueMax: 200 * time.Millisecond,
		recorder: feedback.NewTransportRecorder(feedback.DefaultConfig().Transport),
	}
}

// pass advances the time, in steps from event to event.
func (l *downlink) pass(d time.Duration) { passAll(d, l) }

// passAll advances the time of several links of one rig.
func passAll(d time.Duration, links ...*downlink) {
	r := links[0].rig
	for end := r.now.Add(d); ; {
		r.run()
		next := end
		for _, l := range links {
			l.carry()
			l.arrive()
			next = earliest(next, l.next())
		}
		for _, w := range r.engine.writers {
			next = earliest(next, r.now.Add(max(idleOf(w), time.Microsecond)))
		}
		if !r.now.Before(end) {
			return
		}
		if next.After(r.now) {
			r.now = earliest(next, end)
		}
	}
}

// next returns the time of the next event, or the zero time.
func (l *downlink) next() time.Time {
	next := l.reportDue()
	if len(l.arriving) > 0 {
		next = earliest(next, l.arriving[0].at)
	}
	if len(l.reports) > 0 {
		next = earliest(next, l.reports[0].at)
	}
	if l.asks != nil {
		next = earliest(next, l.asks.missing.Next())
	}
	if l.marking != nil {
		next = earliest(next, l.marking.Next())
	}
	return next
}

// carry puts the packets that have left on the link.
func (l *downlink) carry() {
	peer := l.to.peer
	peer.mu.Lock()
	flushed, codepoint := slices.Clone(peer.flushed), peer.codepoint
	peer.flushed = peer.flushed[:0]
	peer.mu.Unlock()
	now := l.rig.now
	for _, p := range flushed {
		raw, err := p.Marshal()
		if err != nil {
			l.t.Fatal(err)
		}
		number, ok := feedback.TransportSequence(raw, testExtension)
		if ok == (l.streams != nil) || l.streams != nil && p.Extension {
			l.t.Fatalf("a packet has a number: %v", ok)
		}
		size := congestion.PacketOverhead + len(p.Payload)
		l.departed = append(l.departed, departedPacket{now, size, p})
		if l.marking != nil {
			l.marking.Send(&netem.Packet{Payload: raw, Size: size, ECN: codepoint}, now)
			continue
		}
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
			l.arriving = append(l.arriving, arrivingPacket{l.free.Add(l.delay), number, size, codepoint, p})
		}
	}
}

// arrive delivers packets and reports that are due.
func (l *downlink) arrive() {
	now := l.rig.now
	if l.marking != nil {
		for _, p := range l.marking.Deliver(now) {
			came := arrivingPacket{at: p.Arrival, size: p.Size, ecn: p.ECN}
			if err := came.Unmarshal(p.Payload); err != nil {
				l.t.Fatal(err)
			}
			l.queued, l.arriving = append(l.queued, p.Waited), append(l.arriving, came)
		}
	}
	for len(l.arriving) > 0 && !l.arriving[0].at.After(now) {
		p := l.arriving[0]
		l.arriving = l.arriving[1:]
		l.record(p)
		if l.asks != nil {
			l.asks.receive(p)
		}
	}
	if l.asks != nil {
		l.asks.ask(now)
	}
	if due := l.reportDue(); !due.IsZero() && !due.After(now) {
		for _, report := range l.reportsDue(now) {
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

// padding returns the RTX packets that left since a time.
func (l *downlink) padding(since time.Time) (packets []departedPacket) {
	for _, p := range l.departed {
		if p.SSRC == l.to.outlet.rtx && !p.at.Before(since) {
			packets = append(packets, p)
		}
	}
	return packets
}

// asker requests the lost packets of one slot. Requests arrive half a round trip later.
type asker struct {
	link    *downlink
	missing *feedback.NACKGenerator
	numbers feedback.Unwrapper
	frames  map[uint32]map[uint16]bool
	sizes   map[uint32]int
	// repairs counts the retransmissions that arrived, needless the ones among them of packets that had arrived before.
	repairs, needless int
}

// repair makes the receiver request lost packets.
func (l *downlink) repair() *asker {
	l.asks = &asker{link: l, missing: feedback.NewNACKGenerator(feedback.DefaultConfig().NACK),
		frames: make(map[uint32]map[uint16]bool), sizes: make(map[uint32]int)}
	return l.asks
}

func (a *asker) receive(p arrivingPacket) {
	number, body, repair := p.SequenceNumber, p.Payload, p.SSRC == a.link.to.outlet.rtx
	if repair {
		number, body = uint16(body[0])<<8|uint16(body[1]), body[2:]
		a.repairs++
	}
	p.Payload = body
	d := descriptorOf(a.link.t, p.Packet)
	if a.frames[d.Frame] == nil {
		a.frames[d.Frame], a.sizes[d.Frame] = make(map[uint16]bool), d.Packets()
	}
	if a.frames[d.Frame][d.Index] && repair {
		a.needless++
	}
	a.frames[d.Frame][d.Index] = true
	sequence, _ := a.numbers.Unwrap(number)
	a.missing.Received(sequence, p.at)
	a.missing.Expect(sequence-int64(d.Index)+int64(d.Packets())-1, p.at)
}

func (a *asker) ask(now time.Time) {
	due := a.missing.Next()
	if due.IsZero() || due.After(now) {
		return
	}
	ask, _ := a.missing.Due(now, 2*a.link.delay, nil, nil)
	var numbers []uint16
	for _, n := range ask {
		numbers = append(numbers, uint16(n))
	}
	if len(numbers) > 0 {
		a.link.to.nack(a.link.t, now, numbers...)
	}
}

// incomplete returns the number of frames with missing packets.
func (a *asker) incomplete() (frames int) {
	for frame, seen := range a.frames {
		if len(seen) < a.sizes[frame] {
			frames++
		}
	}
	return frames
}

// p95 is the 95th percentile of the queueing delays.
func (l *downlink) p95() time.Duration {
	queued := slices.Sorted(slices.Values(l.queued))
	return queued[len(queued)*95/100]
}

// TestMoreThanTheEstimate sends 10 Mbit/s to a receiver behind a link of 2 Mbit/s, in one track and in four. The queue
// stays short, frames are dropped as a whole, and each track gets its share.
func TestMoreThanTheEstimate(t *testing.T) {
	race.SkipSequential(t)
	for _, tracks := range []int{1, 4} {
		c := newConference(t, 2e6, nil)
		publishers, outlets := []*publisher{c.publisher}, []*fakeOutlet{c.outlet}
		for n := 1; n < tracks; n++ {
			publishers = append(publishers, c.publish(c.publisher.ingress, uint32(10+10*n), volumetric.MIMEVolumetric))
			outlets = append(outlets, newFakeOutlet(c.peer, uint32(1000+10*n)))
			c.receiver.AddSlot(outlets[n], volumetric.KindVideo).Select(publishers[n].track, 1, c.now)
		}
		c.run()
		const seconds = 20
		for n := range seconds * 30 {
			if n == 30 {
				// Before the first reports nothing limits the rate, and the queue has to empty.
				c.link.queued, c.link.dropped = nil, 0
			}
			for _, p := range publishers {
				p.Next()
				p.Send(c.now, p.Packets(34/tracks*1144)...)
			}
			c.link.pass(frameInterval)
		}
		p95, dropped := c.link.p95(), c.engine.Stats().DroppedBudget
		c.link.pass(time.Second)
		sent := 0.0
		for n, o := range outlets {
			whole := checkWhole(t, &subscriber{outlet: o})
			checkContinuous(t, o.sent())
			sent += float64(len(o.sent())) * 1224 * 8 / seconds
			if least := 50; whole < least {
				t.Errorf("%d frames of track %d of %d were sent, expected at least %d", whole, n, tracks, least)
			}
		}
		t.Logf("%d tracks: p95 queue %v, longest %v, %.2f Mbit/s, %d frames dropped whole, %d packets lost",
			tracks, p95, slices.Max(c.link.queued), sent/1e6, dropped, c.link.dropped)
		if p95 > 50*time.Millisecond || dropped == 0 || sent < 1.6e6 || c.link.dropped > 0 {
			t.Errorf("%d tracks: p95 queue %v, %.2f Mbit/s, %d frames dropped, %d packets lost", tracks, p95, sent/1e6,
				dropped, c.link.dropped)
		}
	}
}

// TestRetransmissionsArePaced loses 5 % on a full link of 10 Mbit/s, and all packets for 50 ms every second.
// Retransmissions leave at 2.5 times the estimate and do not fill the queue.
func TestRetransmissionsArePaced(t *testing.T) {
	race.SkipSequential(t)
	c := newConference(t, 10e6, nil)
	c.receiver.Want(20e6)
	c.frames(5*time.Second, 20e6, nil)
	c.link.departed, c.link.queued, c.link.dropped = nil, nil, 0
	c.peer.rtt = 2 * c.link.delay
	random := c.random
	c.link.loses = func(uint16) bool { return random.IntN(20) == 0 || c.now.Nanosecond() < 50_000_000 }
	asks := c.link.repair()
	most := 0.0
	c.frames(10*time.Second, 20e6, func(p Path) { most = max(most, float64(p.Estimate)) })
	c.link.loses = nil
	c.link.pass(time.Second)
	repairs := c.link.padding(time.Time{})
	fastest := 0.0
	for i, first := range repairs {
		bits := 0
		for _, r := range repairs[i:] {
			if r.at.Sub(first.at) > 20*time.Millisecond {
				break
			}
			bits += 8 * r.size
		}
		fastest = max(fastest, float64(bits)/0.02)
	}
	stats := c.engine.Stats()
	t.Logf("p95 queue %v, maximum %v, retransmissions at most %.1f Mbit/s, estimate at most %.1f, "+
		"%d of %d received twice, %d frames of %d incomplete, %+v",
		c.link.p95(), slices.Max(c.link.queued), fastest/1e6, most/1e6, asks.needless, asks.repairs, asks.incomplete(),
		len(asks.frames), stats.NACKed)
	// A late timer may cause an excess of 4 ms in 20, and one packet.
	if fastest > 1.25*2.5*most || c.link.dropped > 0 || c.link.p95() > 60*time.Millisecond {
		t.Errorf("retransmissions at up to %.1f Mbit/s, estimate up to %.1f, p95 queue %v, %d packets dropped",
			fastest/1e6, most/1e6, c.link.p95(), c.link.dropped)
	}
	if asks.repairs < 500 || asks.incomplete() > len(asks.frames)/50 || asks.needless > asks.repairs/3 {
		t.Errorf("%d retransmissions came, %d of them for nothing; %d of %d frames came in part", asks.repairs,
			asks.needless, asks.incomplete(), len(asks.frames))
	}
}
