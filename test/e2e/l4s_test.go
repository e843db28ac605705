package e2e

import (
	"net/netip"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// marking is one direction of an access link with a queue that marks packets.
type marking struct {
	name      string
	network   *netem.Network
	host      netip.Addr
	direction netem.Direction
	// bytes are the bytes that the link had delivered at the given time.
	bytes uint64
	at    time.Time
}

func (m *marking) stats() netem.Stats {
	up, down := m.network.AccessStats(m.host)
	if m.direction == netem.Up {
		return up
	}
	return down
}

func (m *marking) delays() netem.DelayCounts {
	delays, _ := m.network.QueueDelays(m.host, m.direction)
	return delays
}

// marks reports whether the queue has marked 20 packets. The estimates of a busy machine may stay below the rate of the
// link: every 3 s until then, the link is narrowed to 0.7 of the rate that it delivers.
func (m *marking) marks(t *testing.T) bool {
	t.Helper()
	now, s := time.Now(), m.stats()
	if s.Marked >= 20 {
		return true
	}
	if m.at.IsZero() {
		m.bytes, m.at = s.DeliveredBytes, now
	}
	if passed := now.Sub(m.at); passed > 3*time.Second {
		rate := netem.RateStep{RateBPS: int(0.7 * 8 * float64(s.DeliveredBytes-m.bytes) / passed.Seconds())}
		m.bytes, m.at = s.DeliveredBytes, now
		trace := netem.RateTrace{Steps: []netem.RateStep{rate}, Duration: time.Second}
		if err := m.network.SetRate(m.host, m.direction, trace); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s is narrowed to %d bit/s", m.name, rate.RateBPS)
	}
	return false
}

// TestMarksOfPublisherAndReceiver has two publishers and two receivers. The uplink of the first publisher and the
// downlink of the first receiver are DualPI2 queues of 20 Mbit/s, which the media would exceed; the other links are
// wide. The queues mark the packets of these hops only, the marks are reported, and every frame arrives whole. The test
// logs the rates of the two links and their queues, which depend on the load of the machine.
func TestMarksOfPublisherAndReceiver(t *testing.T) {
	long.Test(t)
	const narrow, wide = "rate=20Mbit,delay=10ms,queue=dualpi2", "delay=10ms"
	e := emulate(t, 10)
	many := testbed.Load{Name: "body", Tiles: 15, Qualities: 4, FrameBytes: 8000, Step: 2, Rate: 30}
	few := testbed.Load{Name: "desk", Tiles: 2, Qualities: 3, FrameBytes: 16_000, Step: 2, Rate: 30}
	alice, aliceHost := e.join(t, narrow, wide, testbed.Part{Room: "room", Identity: "alice",
		Loads: []testbed.Load{many}})
	dave, daveHost := e.join(t, wide, wide, testbed.Part{Room: "room", Identity: "dave", Loads: []testbed.Load{few}})
	bob, bobHost := e.join(t, wide, wide, testbed.Part{Room: "room", Identity: "bob", Receive: true})
	carol, carolHost := e.join(t, wide, narrow, testbed.Part{Room: "room", Identity: "carol", Receive: true})
	up := &marking{name: "alice's uplink", network: e.Network, host: aliceHost, direction: netem.Up}
	down := &marking{name: "carol's downlink", network: e.Network, host: carolHost, direction: netem.Down}
	wait.Until(t, "both hops are marked, and both receivers have frames of both publishers", func() bool {
		for _, p := range []*testbed.Peer{bob, carol} {
			if frames(p, tile("alice", "body", 0)) < 60 || frames(p, tile("dave", "desk", 0)) < 60 {
				return false
			}
		}
		upMarks, downMarks := up.marks(t), down.marks(t)
		return upMarks && downMarks
	})
	stats, delays := []netem.Stats{up.stats(), down.stats()}, []netem.DelayCounts{up.delays(), down.delays()}
	before, begun := bob.Tile(tile("dave", "desk", 0)).Frames, time.Now()
	wait.Until(t, "bob has 150 more frames of dave",
		func() bool { return bob.Tile(tile("dave", "desk", 0)).Frames >= before+150 })
	length := time.Since(begun).Seconds()
	for i, m := range []*marking{up, down} {
		now, queue := m.stats(), m.delays()
		queue = queue.Since(&delays[i])
		t.Logf("%s: %.1f Mbit/s, queue p50 %v, p99 %v, longest %v, %d marks", m.name,
			8e-6*float64(now.DeliveredBytes-stats[i].DeliveredBytes)/length, queue.Quantile(0.5), queue.Quantile(0.99),
			queue.Quantile(1), now.Marked-stats[i].Marked)
		if dropped := now.DroppedQueue; dropped > 0 {
			t.Errorf("%d packets were dropped by the queue of %s, expected none", dropped, m.name)
		}
	}
	t.Logf("estimates: alice %v, dave %v, bob %+v, carol %+v", alice.Session.Uplink().Estimate,
		dave.Session.Uplink().Estimate, bob.Bandwidth(), carol.Bandwidth())
	daveUp, _ := e.Network.AccessStats(daveHost)
	_, bobDown := e.Network.AccessStats(bobHost)
	if daveUp.Marked+bobDown.Marked > 0 {
		t.Errorf("%d marks on dave's uplink, %d on bob's downlink, expected none", daveUp.Marked, bobDown.Marked)
	}
	for _, p := range []*testbed.Peer{bob, carol} {
		for _, s := range p.Session.Stats() {
			if s.Undecodable > 0 {
				t.Errorf("%s: %d frames of %v are undecodable", p.Session.Identity(), s.Undecodable, s.Track)
			}
		}
		if err := p.Failure(); err != nil {
			t.Error(err)
		}
	}
	// The server counts what receivers report.
	if s := e.Server.Stats(); s.TransportMarked < 20 || s.TransportFalseMarks > 0 {
		t.Errorf("%d marks are reported and %d are false, expected 20 or more, and none false", s.TransportMarked,
			s.TransportFalseMarks)
	}
}
