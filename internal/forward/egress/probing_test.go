package egress

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/test/race"
)

// scriptedEstimator returns the clusters of a test, and records its inputs.
type scriptedEstimator struct {
	congestion.Estimator
	clusters []congestion.ProbeCluster
	results  []feedback.PacketResult
	last     time.Time
	t        testing.TB
}

func (e *scriptedEstimator) passes(now time.Time) {
	if now.Before(e.last) {
		e.t.Errorf("time went back by %v", e.last.Sub(now))
	}
	e.last = now
}

func (e *scriptedEstimator) Sent(now time.Time, size int) {
	e.passes(now)
	e.Estimator.Sent(now, size)
}

func (e *scriptedEstimator) Report(now time.Time, results []feedback.PacketResult) {
	e.passes(now)
	e.results = append(e.results, results...)
	e.Estimator.Report(now, results)
}

func (e *scriptedEstimator) Probe(now time.Time) (c congestion.ProbeCluster, ok bool) {
	e.passes(now)
	if len(e.clusters) == 0 {
		return c, false
	}
	c, e.clusters = e.clusters[0], e.clusters[1:]
	return c, true
}

// script installs an estimator that probes only on request of the test, after packets have been numbered.
func (c *conference) script() *scriptedEstimator {
	c.t.Helper()
	if c.receiver.path.estimation == nil {
		c.t.Fatal("nothing is estimated")
	}
	e := &scriptedEstimator{Estimator: congestion.New(congestion.GCC, c.engine.cfg.Congestion, c.now), t: c.t}
	c.receiver.path.sender.Start(c.receiver.path.departures.history, e, c.now)
	return e
}

// cluster returns a probe of the given length, 15 ms if it is 0.
func cluster(id int, rate congestion.Bitrate, length time.Duration) congestion.ProbeCluster {
	return congestion.ProbeCluster{ID: id, Rate: rate, Duration: length,
		MinBytes: int(float64(rate) * length.Seconds() / 8), MinPackets: 5}
}

// expectCluster checks that the packets of a cluster in results have its size and left at its rate.
func expectCluster(t *testing.T, results []feedback.PacketResult, c congestion.ProbeCluster) {
	t.Helper()
	bytes, last := 0, 0
	var from, to time.Time
	for i, r := range results {
		if r.Probe != c.ID {
			continue
		}
		if bytes > 0 && results[i-1].Probe != c.ID {
			t.Errorf("cluster %d is not contiguous", c.ID)
		}
		if bytes == 0 {
			from = r.Sent
		}
		if r.Sent.Sub(to) > 100*time.Microsecond {
			to, last = r.Sent, 0
		}
		bytes += r.Size
		last += r.Size
	}
	if bytes < c.MinBytes || bytes > c.MinBytes+3000 {
		t.Fatalf("cluster %d has %d bytes, expected %d", c.ID, bytes, c.MinBytes)
	}
	if rate := float64(bytes-last) * 8 / to.Sub(from).Seconds(); rate < 0.85*float64(c.Rate) ||
		rate > 1.1*float64(c.Rate) {
		t.Errorf("cluster %d left at %.1f Mbit/s, expected %.1f", c.ID, rate/1e6, float64(c.Rate)/1e6)
	}
}

// original returns the packet that a retransmission repeats.
func (c *conference) original(repair rtp.Packet) rtp.Packet {
	c.t.Helper()
	for _, p := range c.outlet.sent() {
		if p.SequenceNumber == binary.BigEndian.Uint16(repair.Payload) {
			return p
		}
	}
	c.t.Fatalf("number %d was never sent", binary.BigEndian.Uint16(repair.Payload))
	return rtp.Packet{}
}

// TestProbesLeaveAtTheirRate probes at two rates in turn, beside little media. Most of the probe is padding, which
// answers no request.
func TestProbesLeaveAtTheirRate(t *testing.T) {
	for _, mode := range []pacing.Mode{pacing.Default, pacing.Burst5ms, pacing.Off} {
		c := newConference(t, 100e6, func(cfg *rigConfig) { cfg.Pacing = mode })
		c.frames(time.Second, 2e6, nil)
		e, before := c.script(), c.engine.Stats().Sent
		clusters := []congestion.ProbeCluster{cluster(11, 12e6, 15*time.Millisecond),
			cluster(12, 40e6, 15*time.Millisecond)}
		e.clusters = clusters
		begun := c.now
		c.frames(300*time.Millisecond, 2e6, nil)
		for _, cluster := range clusters {
			expectCluster(t, e.results, cluster)
		}
		sent, padding := c.engine.Stats().Sent, c.link.padding(begun)
		if n := sent.Probe.Packets - before.Probe.Packets; len(padding) < 60 || n != uint64(len(padding)) {
			t.Errorf("%s: %d packets of padding, counted as %d", mode, len(padding), n)
		}
		if sent.Retransmission.Packets != 0 || c.slot.Stats().Retransmissions != 0 ||
			c.engine.Stats().NACKed != (counters.NACKOutcome{}) {
			t.Errorf("%s: %d packets of padding count as retransmissions, as answers %+v", mode,
				sent.Retransmission.Packets, c.engine.Stats().NACKed)
		}
		for _, p := range padding {
			checkRepair(t, p.Packet, c.original(p.Packet), 97)
		}
		checkContinuous(t, c.outlet.sent())
		checkSealedOnce(t, c.outlet)
	}
}

// TestProbesRideOnMedia probes while a frame waits that is longer than the probe. The frame leaves earlier, and there
// is no padding.
func TestProbesRideOnMedia(t *testing.T) {
	c := newConference(t, 200e6, nil)
	c.frames(time.Second, 2e6, nil)
	e := c.script()
	begun := c.now
	c.publisher.Next()
	// 90 packets are 110 kB, which take 13.3 ms at their own pace, 66 Mbit/s; 3.3 ms of it leave at 150 Mbit/s.
	c.publisher.Send(c.now, c.publisher.Packets(90*1144)...)
	probe := congestion.ProbeCluster{ID: 11, Rate: 150e6, Duration: 3300 * time.Microsecond, MinBytes: 62_000,
		MinPackets: 5}
	e.clusters = []congestion.ProbeCluster{probe}
	c.receiver.syncEstimator()
	c.frames(200*time.Millisecond, 2e6, nil)
	expectCluster(t, e.results, probe)
	if n := len(c.link.padding(begun)); n != 0 {
		t.Errorf("%d packets of padding, expected none", n)
	}
	checkContinuous(t, c.outlet.sent())
}

// TestProbesFollowWhatIsWanted uses a link without a limit. The padding is in proportion to the wanted rate, and to the
// rate at which frames leave soon.
func TestProbesFollowWhatIsWanted(t *testing.T) {
	race.SkipSequential(t)
	for _, ample := range []float64{1, 8} {
		for _, want := range []float64{1e6, 5e6, 40e6} {
			c := newConference(t, 2000e6, func(c *rigConfig) { c.Congestion.Probe.Ample = ample })
			c.receiver.Want(congestion.Bitrate(want))
			c.frames(10*time.Second, want, nil)
			path, padding := c.receiver.Path(), c.engine.Stats().Sent.Probe.Bytes
			enough := max(want, min(ample*want, pacing.EarlyRate))
			if most := max(3*want, enough); float64(path.Estimate) < 0.95*enough || float64(path.Estimate) > most+1e6 {
				t.Errorf("%.0f Mbit/s are wanted, amply %g times as much: the estimate is %v", want/1e6, ample,
					path.Estimate)
			}
			// Each probe is twice the one before, and the last twice the wanted rate, or the ample rate: together 15 ms
			// of twice that. Later probes have no padding to add.
			if most := uint64(2 * max(2*want, enough) * 0.015 / 8); padding > most {
				t.Errorf("%.0f Mbit/s wanted, %g times as much ample: %d bytes of padding, expected at most %d",
					want/1e6, ample, padding, most)
			}
		}
	}
}

// TestNoProbesWithoutRTX probes a receiver without a retransmission stream. Only media carries the cluster's ID, and
// the probe ends in time.
func TestNoProbesWithoutRTX(t *testing.T) {
	c := newConference(t, 100e6, nil)
	c.outlet.rtx = 0
	c.frames(time.Second, 2e6, nil)
	e := c.script()
	e.clusters = []congestion.ProbeCluster{cluster(11, 12e6, 15*time.Millisecond),
		cluster(12, 40e6, 15*time.Millisecond)}
	c.frames(300*time.Millisecond, 2e6, nil)
	tagged := 0
	for _, r := range e.results {
		if r.Probe != 0 {
			tagged++
		}
	}
	if tagged == 0 || tagged > 20 {
		t.Errorf("%d packets bear the ID of a probe, expected those of two frames", tagged)
	}
	if stats := c.engine.Stats(); stats.Sent.Probe.Packets != 0 || c.receiver.path.sender.Probing() ||
		len(e.clusters) > 0 {
		t.Errorf("%d packets of padding, probing: %v, %d probes wait", stats.Sent.Probe.Packets,
			c.receiver.path.sender.Probing(), len(e.clusters))
	}
}

// TestNoProbesBeforeMedia waits before the first packet, and then closes a receiver during a probe.
func TestNoProbesBeforeMedia(t *testing.T) {
	c := newConference(t, 100e6, nil)
	c.link.pass(5 * time.Second)
	if stats := c.engine.Stats(); stats.Probes != 0 || len(c.link.departed) != 0 {
		t.Fatalf("%d probes and %d packets before there was anything to send", stats.Probes, len(c.link.departed))
	}
	c.publisher.Next()
	c.publisher.Send(c.now, c.publisher.Packets(7*1144)...)
	c.link.pass(10 * time.Millisecond)
	if !c.receiver.path.sender.Probing() {
		t.Fatal("no probe is under way after the first frame")
	}
	c.receiver.Close()
	before := len(c.link.departed)
	for range 50 {
		// Reports of packets in flight still arrive.
		c.link.pass(5 * time.Millisecond)
	}
	if n := len(c.link.departed); n != before || c.receiver.path.sender.Probing() ||
		len(c.engine.writers[0].paced) != 0 {
		t.Errorf("%d packets left after the receiver was closed", n-before)
	}
}
