package datamessage

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// leg is the way from a sender to a receiver with a message channel and a websocket, in virtual time. A packet takes
// delay and is lost with the probability loss. The sender repeats a copy after repeat.
type leg struct {
	random        *rand.Rand
	delay, repeat time.Duration
	loss          float64
}

// arrival is a message at the receiver, over the websocket or as a copy.
type arrival struct {
	at      time.Duration
	seq     int64
	ordered bool
}

// carry returns the times at which a Receiver delivers messages that were sent at the given times.
//
// A packet that TCP loses leaves again by the tail loss probe (RFC 8985 section 7.2): after two round trips, and 200 ms
// more for a delayed acknowledgement, if no other packet is on its way. The messages behind wait.
func (l *leg) carry(sent []time.Duration) []time.Duration {
	const delayedAcknowledgement = 200 * time.Millisecond
	var arrivals []arrival
	websocket := time.Duration(0)
	for i, at := range sent {
		seq := int64(i + 1)
		for _, copied := range []time.Duration{at, at + l.repeat} {
			if l.random.Float64() >= l.loss {
				arrivals = append(arrivals, arrival{copied + l.delay, seq, false})
			}
		}
		own := at + l.delay
		for l.random.Float64() < l.loss {
			own += 4*l.delay + delayedAcknowledgement
		}
		websocket = max(websocket, own)
		arrivals = append(arrivals, arrival{websocket, seq, true})
	}
	slices.SortStableFunc(arrivals, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	delivered := make([]time.Duration, len(sent))
	r := NewReceiver()
	for _, a := range arrivals {
		m := &signal.Data{Seq: a.seq}
		ready := r.Copied
		if a.ordered {
			ready = func(m *signal.Data) []*signal.Data {
				ready, _ := r.Ordered(m)
				return ready
			}
		}
		for _, m := range ready(m) {
			delivered[m.Seq-1] = a.at
		}
	}
	return delivered
}

// TestDelayAtFivePercentLoss sends 20 messages per second over two legs of 25 ms, with 5 % loss on each. The 99th
// percentile must be at most the round trip of one leg and 60 ms.
func TestDelayAtFivePercentLoss(t *testing.T) {
	const messages, interval = 200_000, 50 * time.Millisecond
	l := &leg{
		random: rand.New(rand.NewPCG(1, 2)), delay: 25 * time.Millisecond, repeat: 20 * time.Millisecond, loss: 0.05,
	}
	sent := make([]time.Duration, messages)
	for i := range sent {
		sent[i] = time.Duration(i) * interval
	}
	delays := l.carry(l.carry(sent))
	for i := range delays {
		delays[i] -= sent[i]
	}
	slices.Sort(delays)
	p99 := delays[messages*99/100]
	t.Logf("median %v, 99 %% %v, 99.9 %% %v, longest %v", delays[messages/2], p99, delays[messages*999/1000],
		delays[messages-1])
	if limit := 2*l.delay + 60*time.Millisecond; p99 > limit {
		t.Errorf("99 %% of the messages took up to %v, expected %v", p99, limit)
	}
	l.loss = 0
	if last := l.carry(sent)[messages-1]; last != sent[messages-1]+l.delay {
		t.Errorf("without loss the last message took %v, expected %v", last-sent[messages-1], l.delay)
	}
}
