package netem_test

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
)

// TestPoolGetsDroppedPacketsBack overloads links of every discipline, which also lose packets on the wire: a pool needs
// no more packets than are in transit at once.
func TestPoolGetsDroppedPacketsBack(t *testing.T) {
	for _, discipline := range []string{
		netem.QueueFIFO, netem.QueueCoDel, netem.QueueFQ, netem.QueueFQCoDel, netem.QueueDualPI2, netem.QueuePaper000,
	} {
		t.Run(discipline, func(t *testing.T) {
			link := newLink(t, with(func(c *netem.Config) {
				c.Delay, c.RateBPS, c.Queue, c.QueueDelay = time.Millisecond, 10_000_000, discipline,
					200*time.Millisecond
				c.Loss, c.Burst = 0.1, burstLoss(t, 0.1, 3)
			}), 1)
			var pool netem.PacketPool
			now, number := epoch, 0
			overload := func() {
				for range 100 {
					number++
					p := pool.Get()
					p.Size, p.Flow, p.ECN = 1200, uint64(number%3), ecn.Codepoint(number%4)
					link.Send(p, now)
					for _, p := range link.Deliver(now) {
						pool.Put(p)
					}
					now = now.Add(500 * us) // half of the time of a packet
				}
			}
			for range 100 {
				overload()
			}
			if allocations := testing.AllocsPerRun(50, overload); allocations != 0 {
				t.Errorf("%v allocations per 100 packets, expected none", allocations)
			}
			if s := link.Stats(); s.DroppedQueue == 0 || s.LostRandom == 0 || s.LostBurst == 0 || s.Delivered == 0 {
				t.Errorf("%+v, expected packets to be dropped, to be lost and to arrive", s)
			}
		})
	}
}

func TestPoolClearsPackets(t *testing.T) {
	var pool netem.PacketPool
	p := pool.Get()
	p.Payload, p.Size, p.Late, p.Route, p.ECN = make([]byte, 10, 100), 10, time.Second, 3, ecn.ECT1
	pool.Put(p)
	again := pool.Get()
	if again != p || len(again.Payload) != 0 || cap(again.Payload) != 100 || again.Size != 0 || again.Late != 0 ||
		again.Route != 0 || again.ECN != ecn.NotECT {
		t.Errorf("%+v, expected the same packet without contents", again)
	}
}
