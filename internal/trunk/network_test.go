package trunk

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/wait"
)

// roundTrip is the round-trip time of emulated networks.
const roundTrip = 20 * time.Millisecond

// tolerated is the stall of the host below which measured times are those of the trunk. With a stall of starved,
// several frames of a track are late at once.
const (
	tolerated = 20 * time.Millisecond
	starved   = 100 * time.Millisecond
)

// emulation is a network with node one, which publishes, and node two, which takes.
type emulation struct {
	t        *testing.T
	network  *netem.Network
	one, two *node
}

var hosts = [2]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}

// emulate starts the nodes on a network whose link between them has the given parameters.
func emulate(t *testing.T, change func(*netem.Config)) *emulation {
	e := &emulation{t: t, network: netem.NewNetwork(1)}
	t.Cleanup(func() { _ = e.network.Close() })
	e.change(change)
	a := newAuthority()
	e.one = a.start(t, "one", options{open: e.open, address: hosts[0].String() + ":7883", measured: true})
	e.two = a.start(t, "two", options{open: e.open, address: hosts[1].String() + ":7883", measured: true})
	connect(t, e.one, e.two, "one", "two")
	return e
}

// change sets the parameters of the link in both directions. The link is the access link of node one.
func (e *emulation) change(change func(*netem.Config)) {
	e.t.Helper()
	access := netem.DefaultConfig()
	access.Delay = roundTrip / 2
	if change != nil {
		change(&access)
	}
	if err := e.network.SetAccess(hosts[0], access, access); err != nil {
		e.t.Fatal(err)
	}
}

func (e *emulation) open(address netip.AddrPort) (net.PacketConn, error) {
	return e.network.Listen(address)
}

// countingPeer is the connection of a publisher, and counts what the publisher is asked for.
type countingPeer struct {
	publisherPeer
	requests atomic.Uint64
}

func (p *countingPeer) WriteRTCP(packets []rtcp.Packet) error {
	for _, packet := range packets {
		switch packet.(type) {
		case *rtcp.TransportLayerNack, *rtcp.PictureLossIndication, *rtcp.FullIntraRequest:
			p.requests.Add(1)
		}
	}
	return nil
}

// frames publishes frames of that many bytes on each track, at 30 per second, with the packets of a frame within a
// third of the interval.
func (e *emulation) frames(p *publishing, frames, bytes int) {
	const interval = time.Second / 30
	for range frames {
		begin := time.Now()
		for i, publisher := range p.publishers {
			p.send(publisher, bytes)
			time.Sleep(time.Until(begin.Add(interval / 3 * time.Duration(i+1) / time.Duration(len(p.publishers)))))
		}
		time.Sleep(time.Until(begin.Add(interval)))
	}
}

// takeAll mirrors and takes all tracks at node two, and waits until they are carried.
func (e *emulation) takeAll(p *publishing, tiles, qualities int) []*track.Track {
	e.t.Helper()
	mirrored := mirrorAt(e.two, "one", tiles, qualities)
	all := make([]allocate.QualitySet, tiles)
	for i := range all {
		for q := range qualities {
			all[i] |= allocate.QualitySet(1 << q)
		}
	}
	takeAt(e.two, "one", all...)
	wait.Until(e.t, "the slots", func() bool {
		for _, made := range p.tracks {
			if made.Followers() != 1 {
				return false
			}
		}
		return true
	})
	return mirrored
}

// TestLossOnTheTrunk loses packets in both directions of a trunk of 20 ms. Almost all frames arrive, each lost packet
// is requested once, and publishers are asked for nothing.
func TestLossOnTheTrunk(t *testing.T) {
	long.Test(t)
	for _, c := range []struct{ loss, frames float64 }{{0.01, 0.999}, {0.05, 0.995}} {
		const tiles, frames = 4, 300
		stalls := wait.WatchStalls(t)
		e := emulate(t, nil)
		asked := &countingPeer{}
		p := publishBy(t, e.one, asked, tiles, 1)
		v := view(e.two, e.takeAll(p, tiles, 1))
		e.frames(p, 30, 12_000)
		e.change(func(access *netem.Config) { access.Loss = c.loss })
		before := e.two.engine.Stats()
		first := p.publishers[0].Number
		e.frames(p, frames, 12_000)
		arrived := func() (complete int) {
			for track := range tiles {
				for frame := first + 1; frame <= first+frames; frame++ {
					if v.has(track, frame) {
						complete++
					}
				}
			}
			return complete
		}
		// Packets that are not repaired within a second are given up.
		wait.For(time.Second, func() bool { return arrived() == tiles*frames })
		share := float64(arrived()) / (tiles * frames)
		after := e.two.engine.Stats()
		lost := after.Recovered + after.Lost - before.Recovered - before.Lost
		requests := after.Requested - before.Requested
		t.Logf("loss %.0f %%: %.3f %% of frames, %d packets lost, %d requested (%.3f per loss), %d given up, stalls %v",
			100*c.loss, 100*share, lost, requests, float64(requests)/float64(lost), after.Lost-before.Lost,
			stalls.Longest())
		// While the host stalls, answers are late: they are requested again, and late frames are given up.
		if stalls.Longest() < tolerated {
			if share < c.frames {
				t.Errorf("%.3f %% of frames, expected %.1f %%", 100*share, 100*c.frames)
			}
			if float64(requests) > 1.15*float64(lost) {
				t.Errorf("%d requests for %d lost packets, expected at most 1.15 per packet", requests, lost)
			}
		}
		if lost < 50 || requests < lost-after.Lost+before.Lost || share < 0.9 && stalls.Longest() < starved {
			t.Errorf("%d requests for %d lost packets, %.3f %% of frames", requests, lost, 100*share)
		}
		s, requested := e.one.engine.Stats(), asked.requests.Load()
		if s.Requested+requested != 0 && stalls.Longest() < tolerated && !p.paused() {
			t.Errorf("%d packets and %d requests to the publisher, expected none", s.Requested, requested)
		}
	}
}

// TestUntakenTrackEnds ends the demand for one of two tracks of a trunk of 20 ms. Its last packet arrives within
// 250 ms, and the trunk carries hardly more packets than the publisher has sent.
func TestUntakenTrackEnds(t *testing.T) {
	long.Test(t)
	e, stalls := emulate(t, nil), wait.WatchStalls(t)
	p := publish(t, e.one, 2, 1)
	v := view(e.two, e.takeAll(p, 2, 1))
	e.frames(p, 30, 12_000)
	wait.Until(t, "the frames", func() bool { return v.has(0, 30) && v.has(1, 30) })
	before := e.two.stats().Received.Packets
	e.frames(p, 60, 12_000)
	wait.Until(t, "the frames", func() bool { return v.has(0, 90) && v.has(1, 90) })
	sent := uint64(2 * 60 * len(p.publishers[0].Packets(12_000)))
	got := e.two.stats().Received.Packets - before
	if float64(got) > 1.02*float64(sent) && stalls.Longest() < tolerated {
		t.Errorf("%d packets on the trunk for %d of the publisher, expected at most 1.02 times as many", got, sent)
	}
	takeAt(e.two, "one", allocate.Qualities(0))
	ended := time.Now()
	e.frames(p, 30, 12_000)
	took := v.last(1).Sub(ended)
	t.Logf("the last packet arrived after %v, stalls of %v", took, stalls.Longest())
	if took > 250*time.Millisecond && stalls.Longest() < tolerated {
		t.Errorf("the track ended after %v, expected 250 ms", took)
	}
	wait.Until(t, "the frames of the other track", func() bool { return v.has(0, 120) })
	if v.has(1, 120) {
		t.Error("the track that is not taken has not ended")
	}
}

// TestMasksFollowTheEstimate narrows the link of a trunk. The tracks of the higher quality are masked, those of the
// base quality are not, and the masks end when the link is wide again.
func TestMasksFollowTheEstimate(t *testing.T) {
	long.Test(t)
	e := emulate(t, nil)
	const tiles = 4
	p := publish(t, e.one, tiles, 2)
	e.takeAll(p, tiles, 2)
	end, publishing := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(publishing)
		for {
			select {
			case <-end:
				return
			default:
				e.frames(p, 1, 6000)
			}
		}
	}()
	masks := func() (sum allocate.QualitySet, count int) {
		if last, ok := last[Masked](e.two); ok {
			for _, tile := range last.Tiles {
				sum |= tile
				if tile != 0 {
					count++
				}
			}
		}
		return sum, count
	}
	// Eight tracks have 12 Mbit/s.
	e.change(func(access *netem.Config) { access.RateBPS, access.QueueDelay = 9_000_000, 100*time.Millisecond })
	wait.Until(t, "masks of the higher quality only", func() bool {
		sum, _ := masks()
		return sum == allocate.Qualities(1)
	})
	e.change(nil)
	wait.Until(t, "the end of the masks", func() bool {
		_, count := masks()
		return count == 0
	})
	close(end)
	<-publishing
}

// TestNodeDies cuts the link of a trunk, as when the other node or its network dies. Both nodes report silence after
// 500 ms, and hear each other on the same trunk when the link returns.
func TestNodeDies(t *testing.T) {
	e, stalls := emulate(t, nil), wait.WatchStalls(t)
	for _, n := range []*node{e.one, e.two} {
		await(t, n, "packets", func(PacketsReceived) bool { return true })
	}
	cut := time.Now()
	e.change(func(access *netem.Config) { access.Loss = 1 })
	for _, n := range []*node{e.one, e.two} {
		n.forget()
	}
	for _, n := range []*node{e.one, e.two} {
		await(t, n, "silence", func(Silent) bool { return true })
	}
	// The last packet arrived up to one interval of probes before the cut.
	if took := time.Since(cut); stalls.Longest() < tolerated &&
		(took < SilentAfter-probeInterval-roundTrip-tickInterval || took > SilentAfter+time.Second) {
		t.Errorf("silence after %v, expected %v", took, SilentAfter)
	}
	for _, n := range []*node{e.one, e.two} {
		n.forget()
	}
	e.change(nil)
	for _, n := range []*node{e.one, e.two} {
		await(t, n, "packets", func(PacketsReceived) bool { return true })
	}
}
