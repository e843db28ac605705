package frames

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// sctpLink simulates the link below the data channels of one receiver. Messages are sent in turn, and acknowledged a
// round trip later, delayed by up to 20 ms.
type sctpLink struct {
	now    *time.Time
	rate   float64 // bit/s
	trip   time.Duration
	random *rand.Rand
	// free is the time at which the link has sent everything, last the time of the last acknowledgement.
	free, last time.Time
	acks       []sctpAck
	// media counts the acknowledged bytes of slots.
	media int
}

type sctpAck struct {
	at      time.Time
	channel *sctpChannel
	bytes   int
}

// sctpChannel is a data channel on such a link.
type sctpChannel struct {
	link    *sctpLink
	padding bool
	unread  int
}

// Send implements Channel.
func (c *sctpChannel) Send(message []byte) error {
	const packetBytes, overhead = 1172, 85
	l := c.link
	c.unread += len(message)
	for rest := len(message); rest > 0; rest -= packetBytes {
		bytes := min(rest, packetBytes)
		if l.free.Before(*l.now) {
			l.free = *l.now
		}
		l.free = l.free.Add(time.Duration(float64(bytes+overhead) * 8 / l.rate * 1e9))
		if at := l.free.Add(l.trip + time.Duration(l.random.Int64N(int64(20*time.Millisecond)))); at.After(l.last) {
			l.last = at
		}
		l.acks = append(l.acks, sctpAck{l.last, c, bytes})
	}
	return nil
}

// Unacknowledged implements Channel.
func (c *sctpChannel) Unacknowledged() int { return c.unread }

// step acknowledges what is due. It reports whether there was anything.
func (l *sctpLink) step() bool {
	n := 0
	for ; n < len(l.acks) && !l.acks[n].at.After(*l.now); n++ {
		a := l.acks[n]
		a.channel.unread -= a.bytes
		if !a.channel.padding {
			l.media += a.bytes
		}
	}
	l.acks = l.acks[n:]
	return n > 0
}

// TestChunksOnALink sends four tiles at the estimated rate over a link that becomes narrow, through pacer, outlets,
// reports and estimator.
func TestChunksOnALink(t *testing.T) {
	const (
		wide, narrow        = 20e6, 5e6
		fps, tiles          = 30, 4
		settled, fall, till = 5 * time.Second, 12 * time.Second, 20 * time.Second
	)
	r := newRig(t, pacing.Default, 1<<30)
	receiver := r.writers.NewReceiver(fakePeer{}, 0)
	link := &sctpLink{now: &r.now, rate: wide, trip: 40 * time.Millisecond, random: rand.New(rand.NewPCG(3, 4))}
	sender := NewSender(receiver, 1<<20, &sctpChannel{link: link, padding: true})
	in := r.ingress()
	var publishers []*publisher
	for i := range tiles {
		p := r.publish(in, uint32(10+10*i), volumetric.MIMEVolumetric)
		publishers = append(publishers, p)
		receiver.AddSlot(sender.NewOutlet(&sctpChannel{link: link}), volumetric.KindVideo).Select(p.track, 7, r.now)
	}
	begin, frames, media := r.now, 0, 0
	var queues []time.Duration
	used := func(rate float64, over time.Duration) float64 {
		share := float64(link.media-media) * 8 / over.Seconds() / rate
		media = link.media
		return share
	}
	for at := time.Duration(0); at <= till; at = r.now.Sub(begin) {
		if at >= time.Duration(frames)*time.Second/fps {
			frames++
			size := float64(receiver.Path().Estimate) / 8 / fps / tiles * 0.95
			for _, p := range publishers {
				p.Next()
				p.Send(r.now, p.Packets(int(size))...)
			}
		}
		r.run()
		if link.step() {
			for _, report := range sender.Acknowledged(r.now) {
				receiver.Arrivals(report, r.now)
			}
			r.run()
		}
		estimate := float64(receiver.Path().Estimate)
		switch {
		case at == settled, at == fall+2*time.Second:
			used(1, time.Second)
		case at > settled && at < fall && estimate < wide/2, at > fall+2*time.Second &&
			(estimate < narrow/2 || estimate > 1.2*narrow):
			t.Fatalf("the estimate is %.3g at %v", estimate, at)
		case at == fall:
			if share := used(wide, fall-settled); share < 0.75 {
				t.Errorf("%.3g of the link are used", share)
			}
			link.rate = narrow
		}
		if at > settled && at < fall || at > fall+2*time.Second {
			queues = append(queues, max(link.free.Sub(r.now), 0))
		}
		r.now = r.now.Add(time.Millisecond)
	}
	if share := used(narrow, till-fall-2*time.Second); share < 0.75 {
		t.Errorf("%.3g of the narrow link are used", share)
	}
	slices.Sort(queues)
	// A frame of its tile is 8 ms, and four of them may begin with the last of the room.
	if p95 := queues[len(queues)*95/100]; p95 > 140*time.Millisecond {
		t.Errorf("the link's queue is %v (p95)", p95)
	}
}
