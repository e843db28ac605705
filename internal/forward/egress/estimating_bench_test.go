package egress

import (
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// estimated is a receiver that gets results as from reports: 25 ms of 100 Mbit/s, 256 packets of spread frames, on an
// idle path.
type estimated struct {
	*rig
	receiver *Receiver
	header   rtp.Header
	results  []feedback.PacketResult
	// numbered counts the packets.
	numbered int64
}

func newEstimated(t testing.TB) *estimated {
	r := newRig(t, func(c *rigConfig) { c.Pacing = pacing.Default })
	e := &estimated{rig: r, receiver: r.engine.NewReceiver(&nullPeer{fakePeer: fakePeer{extension: testExtension},
		flushes: new(int)}, 0)}
	e.receiver.AddSlot(nullOutlet{1000}, volumetric.KindVideo).Select(nil, 0, r.now)
	r.run()
	e.receiver.Want(200e6)
	e.results = make([]feedback.PacketResult, 0, 256)
	return e
}

// interval numbers the packets of an interval.
func (e *estimated) interval() {
	e.results = e.results[:0]
	w := e.receiver.writer
	for n := range cap(e.results) {
		if n%16 == 0 {
			e.now = e.now.Add(25 * time.Millisecond / 16)
			w.read()
		}
		e.receiver.number(&e.header, 1160, packetlog.Media)
		e.numbered++
		e.results = append(e.results, feedback.PacketResult{
			Sequence: 1<<16 + e.numbered, Size: 1224, Sent: w.now, Received: true,
			Arrived: w.at + time.Duration(n%16)*50*time.Microsecond,
		})
	}
}

// report passes the results of the interval.
func (e *estimated) report() {
	w := e.receiver.writer
	e.receiver.path.sender.Learn(e.results, e.now, w.now)
	e.receiver.syncEstimator()
}

func TestEstimatingDoesNotAllocate(t *testing.T) {
	e := newEstimated(t)
	step := func() {
		e.interval()
		e.report()
	}
	for range 200 {
		step()
	}
	// The history forgets unreported numbers by itself.
	if n := testing.AllocsPerRun(200, step); n > 0.5 {
		t.Errorf("%v allocations per report of 256 packets, expected none", n)
	}
	if p := e.receiver.Path(); !p.Known || p.Acknowledged < 80e6 {
		t.Errorf("the path is %+v", p)
	}
}

// BenchmarkEstimate measures the cost of the estimator per packet: ns/sent for recording sent packets, numbering
// included, ns/learnt for one report.
func BenchmarkEstimate(b *testing.B) {
	e := newEstimated(b)
	for range 100 {
		e.interval()
		e.report()
	}
	var sent, learnt time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		begin := time.Now()
		e.interval()
		middle := time.Now()
		e.report()
		sent += middle.Sub(begin)
		learnt += time.Since(middle)
	}
	packets := float64(b.N * cap(e.results))
	b.ReportMetric(float64(sent.Nanoseconds())/packets, "ns/sent")
	b.ReportMetric(float64(learnt.Nanoseconds())/packets, "ns/learnt")
}
