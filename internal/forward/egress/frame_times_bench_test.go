package egress

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// loop forwards frames to receivers.
type loop struct {
	rig       *rig
	ingress   *ingress.Ingress
	publisher *publisher
	packets   [][]byte
	sequence  uint16
	number    uint32
	receivers []*Receiver
	taken     []FrameTimes
}

// newLoop returns a loop with one slot per receiver. flushes counts the flushes of all peers.
func newLoop(b testing.TB, slots, perFrame int, mode pacing.Mode, traced bool, flushes *int) *loop {
	cfg := defaultConfig()
	cfg.Writers, cfg.Pacing, cfg.FrameTimes = 1, mode, traced
	l := &loop{rig: &rig{t: b, now: time.Now()}}
	// Time is virtual, but the real clock is read as well, because reading is a part of the cost of tracing.
	l.rig.engine = newEngine(cfg, func() time.Time {
		_ = time.Now()
		return l.rig.now
	})
	l.ingress = l.rig.engine.ingresses.NewStepped(&fakePeer{})
	l.publisher = l.rig.publish(l.ingress, 10, volumetric.MIMEVolumetric)
	for k := range slots {
		receiver := l.rig.engine.NewReceiver(&nullPeer{flushes: flushes}, 0)
		receiver.AddSlot(nullOutlet{uint32(1000 + 10*k)}, volumetric.KindVideo).Select(l.publisher.track, 1, l.rig.now)
		receiver.TraceFrames(traced)
		l.receivers = append(l.receivers, receiver)
	}
	l.rig.run()
	l.packets = l.publisher.Packets(perFrame * 1144)
	return l
}

// frame forwards one frame.
func (l *loop) frame() {
	l.arrive()
	l.rig.ticks(time.Second / 30)
	for _, r := range l.receivers {
		select {
		case <-r.FrameTimesReady():
			l.taken = r.TakeFrameTimes(l.taken[:0])
		default:
		}
	}
}

// arrive passes the packets of the next frame to the ingress.
func (l *loop) arrive() {
	l.number++
	for _, packet := range l.packets {
		binary.BigEndian.PutUint16(packet[2:], l.sequence)
		binary.BigEndian.PutUint32(packet[4:], l.number*3000)
		binary.BigEndian.PutUint32(packet[rtpHeader+8:], l.number)
		l.sequence++
		l.ingress.RTP(l.publisher.SSRC, packet, forwardtest.InfoAt(l.rig.now))
	}
	l.ingress.Flush()
}

// BenchmarkFrameTimes compares forwarding with and without tracing in alternate turns of some frames, so that other
// load on the machine affects both equally. on/off is the median over the turns of the additional time with tracing,
// relative to the turn before without tracing, in percent.
func BenchmarkFrameTimes(b *testing.B) {
	for _, shape := range []struct{ slots, perFrame int }{{1, 20}, {10, 20}, {50, 20}, {10, 100}} {
		b.Run(fmt.Sprintf("slots=%d/packets=%d", shape.slots, shape.perFrame), func(b *testing.B) {
			compareTracing(b, shape.slots, shape.perFrame)
		})
	}
}

func compareTracing(b *testing.B, slots, perFrame int) {
	turn := 500 / perFrame
	var loops [2]*loop
	for i, traced := range []bool{false, true} {
		loops[i] = newLoop(b, slots, perFrame, pacing.Off, traced, new(int))
	}
	for range 100 {
		loops[0].frame()
		loops[1].frame()
	}
	var took [2][]float64
	var ratios []float64
	b.ReportAllocs()
	b.ResetTimer()
	for n := range b.N {
		var times [2]float64
		for i := range loops {
			// The first turn has the caches of the turn before, so both alternate as the first.
			at := (i + n) % 2
			begin := time.Now()
			for range turn {
				loops[at].frame()
			}
			times[at] = float64(time.Since(begin).Nanoseconds()) / float64(turn*perFrame*slots)
			took[at] = append(took[at], times[at])
		}
		ratios = append(ratios, times[1]/times[0])
	}
	b.StopTimer()
	b.ReportMetric(median(took[0]), "off-ns/packet")
	b.ReportMetric(median(took[1]), "on-ns/packet")
	b.ReportMetric(100*(median(ratios)-1), "%-more")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
