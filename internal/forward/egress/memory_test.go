package egress

import (
	"runtime"
	"testing"

	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// inUse returns the memory in use after a collection, in bytes.
func inUse() int64 {
	var m runtime.MemStats
	// The contents of a sync.Pool survive one collection.
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMemory measures the memory of idle tracks, receivers and slots. The bounds are two to three times the measured
// values: 3.5 kB, 1.0 kB, 9.5 kB, mostly the switcher's history of numbers, 6.5 kB more for a receiver with an
// estimate, and 20 kB more for a slot with retransmissions.
func TestMemory(t *testing.T) {
	race.SkipSequential(t)
	const n = 1000
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	measure := func(what string, bound int64, make func(n int)) {
		t.Helper()
		before := inUse()
		for k := range n {
			make(k)
		}
		r.run()
		each := (inUse() - before) / n
		t.Logf("%s: %d bytes", what, each)
		if each > bound {
			t.Errorf("%s takes %d bytes, expected at most %d", what, each, bound)
		}
	}
	var tracks []*track.Track
	var receivers []*Receiver
	var slots []*Slot
	codec := volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000}
	measure("an idle track", 8<<10, func(k int) {
		tracks = append(tracks, r.engine.NewTrack(track.Config{Codec: codec}))
		i.Bind(uint32(10+2*k), uint32(11+2*k), tracks[k])
	})
	peer := &nullPeer{flushes: new(int)}
	measure("a receiver", 2<<10, func(int) { receivers = append(receivers, r.engine.NewReceiver(peer, 0)) })
	measure("a slot", 20<<10, func(k int) {
		slots = append(slots, receivers[k].AddSlot(nullOutlet{uint32(10_000 + 2*k)}, volumetric.KindVideo))
		slots[k].Select(tracks[k], 1, r.now)
	})
	measure("an estimate", 16<<10, func(k int) {
		receivers[k].path.departures = newDepartures(false)
		receivers[k].path.estimate(true, r.now, 0)
	})
	measure("a slot that retransmits", 24<<10, func(k int) { slots[k].repeats = &repeatTable{} })
	runtime.KeepAlive(r)
	if used := r.engine.budget.Used(); used != 0 {
		t.Errorf("idle tracks reserve %d bytes of packet cache", used)
	}
}
