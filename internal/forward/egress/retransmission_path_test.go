package egress

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// arrival is something in flight with its arrival time.
type arrival[T any] struct {
	at   time.Time
	what T
}

// link delays what is sent, and loses some of it.
type link[T any] struct {
	delay  time.Duration
	loss   float64
	random *rand.Rand
	queue  []arrival[T]
	lost   int
}

// send returns false for a loss.
func (l *link[T]) send(what T, now time.Time) bool {
	if l.random.Float64() < l.loss {
		l.lost++
		return false
	}
	l.queue = append(l.queue, arrival[T]{now.Add(l.delay), what})
	return true
}

// take returns the arrivals.
func (l *link[T]) take(now time.Time) []T {
	var arrived []T
	for len(l.queue) > 0 && !l.queue[0].at.After(now) {
		arrived = append(arrived, l.queue[0].what)
		l.queue = l.queue[1:]
	}
	return arrived
}

// viewer is a receiver at the end of a link of 20 ms round trip, which requests lost packets like a client.
type viewer struct {
	t        *testing.T
	sub      *subscriber
	down     link[rtp.Packet]
	up       link[[]uint16]
	numbers  feedback.Unwrapper
	missing  *feedback.NACKGenerator
	got      map[int64]bool
	sent     int
	repairs  int
	needless int
	// lostMedia counts media packets lost on the way.
	lostMedia int
}

func newViewer(t *testing.T, s *subscriber, loss float64, random *rand.Rand) *viewer {
	const oneWay = 10 * time.Millisecond
	s.peer.rtt = 2 * oneWay
	return &viewer{
		t: t, sub: s,
		down:    link[rtp.Packet]{delay: oneWay, loss: loss, random: random},
		up:      link[[]uint16]{delay: oneWay, loss: loss, random: random},
		missing: feedback.NewNACKGenerator(feedback.DefaultConfig().NACK),
		got:     make(map[int64]bool),
	}
}

// step advances both directions by a millisecond.
func (v *viewer) step(now time.Time) {
	sent, repairs := v.sub.outlet.sentFrom(v.sent), v.sub.outlet.repairedFrom(v.repairs)
	for _, p := range sent {
		if !v.down.send(p, now) {
			v.lostMedia++
		}
	}
	for _, p := range repairs {
		v.down.send(p, now)
	}
	v.sent, v.repairs = v.sent+len(sent), v.repairs+len(repairs)
	for _, p := range v.down.take(now) {
		v.receive(p, now)
	}
	ask, _ := v.missing.Due(now, v.sub.peer.rtt, nil, nil)
	if len(ask) > 0 {
		var numbers []uint16
		for _, n := range ask {
			numbers = append(numbers, uint16(n))
		}
		v.up.send(numbers, now)
	}
	for _, numbers := range v.up.take(now) {
		v.sub.nack(v.t, now, numbers...)
	}
}

// receive processes a packet that has arrived.
func (v *viewer) receive(p rtp.Packet, now time.Time) {
	number, body := p.SequenceNumber, p.Payload
	if p.SSRC == v.sub.outlet.rtx {
		number, body = uint16(body[0])<<8|uint16(body[1]), body[2:]
	}
	sequence, _ := v.numbers.Unwrap(number)
	if v.got[sequence] {
		v.needless++
	}
	v.got[sequence] = true
	v.missing.Received(sequence, now)
	p.Payload = body
	d := descriptorOf(v.t, p)
	v.missing.Expect(sequence-int64(d.Index)+int64(d.Packets())-1, now)
}

// TestRetransmissionsPerLoss closes the loop. At a loss of 2 % in both directions, also with the same loss from the
// publisher, nearly all losses are repaired, with at most 1.1 retransmissions each.
func TestRetransmissionsPerLoss(t *testing.T) {
	race.SkipSequential(t)
	for _, test := range []struct {
		name        string
		uplink      float64
		repairAfter time.Duration
	}{{"server to receiver", 0, 0}, {"publisher to server, too", 0.02, 20 * time.Millisecond}} {
		t.Run(test.name, func(t *testing.T) { retransmissionsPerLoss(t, test.uplink, test.repairAfter) })
	}
}

func retransmissionsPerLoss(t *testing.T, uplink float64, repairAfter time.Duration) {
	random := rand.New(rand.NewPCG(7, 8))
	r := newRig(t, nil)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	v := newViewer(t, r.subscribeAll(1, p)[0], 0.02, random)
	late := link[[]byte]{delay: repairAfter}
	const seconds, frame = 12, 40
	for tick := range seconds * 1000 {
		r.now = r.now.Add(time.Millisecond)
		if tick%33 == 0 && tick < seconds*1000-500 {
			p.Next()
			for _, packet := range p.Packets(frame * 1144) {
				if random.Float64() < uplink {
					late.queue = append(late.queue, arrival[[]byte]{r.now.Add(repairAfter), packet})
				} else {
					p.ingress.RTP(p.SSRC, packet, forwardtest.InfoAt(r.now))
				}
			}
			p.ingress.Flush()
		}
		p.Repair(r.now, late.take(r.now)...)
		r.run()
		v.step(r.now)
		r.run()
	}
	sent := v.sub.outlet.sent()
	checkContinuous(t, sent)
	checkSealedOnce(t, v.sub.outlet)
	repairs := len(v.sub.outlet.repaired())
	perLoss := float64(repairs) / float64(v.lostMedia)
	t.Logf("%d packets, %d lost, %d retransmissions, %.3f per loss, %d needless; %d arrived; %+v", len(sent),
		v.lostMedia, repairs, perLoss, v.needless, len(v.got),
		r.engine.Stats().NACKed)
	if v.lostMedia < 200 || perLoss > 1.1 {
		t.Errorf("%d retransmissions for %d losses, expected at most 1.1 each for at least 200", repairs, v.lostMedia)
	}
	if len(v.got) < len(sent)-len(sent)/2000 {
		t.Errorf("%d of %d packets arrived, expected all but one in 2,000", len(v.got), len(sent))
	}
}

// checkSealedOnce fails if two packets of one SSRC have the same SRTP index, counting wraps of the sequence number
// between them (RFC 3711 section 3.3.1): with AES-GCM that would reveal the authentication key.
func checkSealedOnce(t testing.TB, o *fakeOutlet) {
	t.Helper()
	for _, packets := range [][]rtp.Packet{o.sent(), o.repaired()} {
		var numbers feedback.Unwrapper
		seen := make(map[int64]bool)
		for _, p := range packets {
			index, continuity := numbers.Unwrap(p.SequenceNumber)
			if continuity != feedback.Continuous || seen[index] {
				t.Fatalf("SSRC %d: number %d has been sent before, or is far from all others", p.SSRC, p.SequenceNumber)
			}
			seen[index] = true
		}
	}
}

// TestNumbersAreSealedOnce does at random everything that could send a number twice: packets are lost, repaired late or
// duplicated, qualities are switched, away and back, publishers restart or move to another connection, and receivers
// request anything. The slot's numbers wrap.
func TestNumbersAreSealedOnce(t *testing.T) {
	race.SkipSequential(t)
	random := rand.New(rand.NewPCG(3, 4))
	r := newRig(t, nil)
	ingresses := []*ingress.Ingress{r.ingress(&fakePeer{}), r.ingress(&fakePeer{})}
	var publishers []*publisher
	for n, mime := range []string{volumetric.MIMEVolumetric, volumetric.MIMEVolumetric, volumetric.MIMEOpaque} {
		publishers = append(publishers, r.publish(ingresses[0], uint32(10+10*n), mime))
	}
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.switcher = switching.New(switching.Config{ClockRate: 90000, FirstSequence: 60_000})
	var late []func()
	seen := 0
	for range 1500 {
		r.now = r.now.Add(frameInterval)
		for n, p := range publishers {
			p.Next()
			packets := [][]byte{p.Packet([]byte{1}, false), p.Packet([]byte{2}, true)}
			if n < 2 {
				p.Sequence -= 2
				packets = p.Packets((1 + random.IntN(30)) * 1144)
			}
			late = disturb(p, packets, random, r.now, late)
			switch random.IntN(300) {
			case 0:
				p.Sequence += uint16(random.Uint32())
			case 1:
				p.moveTo(ingresses[random.IntN(2)])
				p.ingress.Bind(p.SSRC, p.RTX, p.track)
			}
		}
		for len(late) > 0 && random.IntN(2) == 0 {
			late[0]()
			late = late[1:]
		}
		if random.IntN(5) == 0 {
			p := publishers[random.IntN(3)]
			s.slot.Select(p.track, uint64(1+p.SSRC/30), r.now)
		}
		s.nack(t, r.now, uint16(random.Uint32()))
		if sent := s.outlet.sentFrom(seen); len(sent) > 0 {
			seen += len(sent)
			newest := sent[len(sent)-1].SequenceNumber
			for range 5 {
				s.nack(t, r.now, newest-uint16(random.IntN(200)))
			}
		}
		r.run()
	}
	if n := len(s.outlet.sent()); n < 10_000 {
		t.Fatalf("%d packets were sent, expected more than 10,000", n)
	}
	if n := len(s.outlet.repaired()); n < 1000 {
		t.Errorf("%d packets were retransmitted, expected 1,000 or more", n)
	}
	checkSealedOnce(t, s.outlet)
}

// disturb sends packets with some missing, some twice and some in another order, and returns the deliveries of late
// packets.
func disturb(p *publisher, packets [][]byte, random *rand.Rand, now time.Time, late []func()) []func() {
	for n, packet := range packets {
		switch random.IntN(30) {
		case 0:
			late = append(late, func() { p.Repair(now, packet) })
		case 1:
			p.Send(now, packet, packet)
		case 2:
			if n+1 < len(packets) {
				p.Send(now, packets[n+1])
			}
			p.Send(now, packet)
		default:
			p.Send(now, packet)
		}
	}
	return late
}
