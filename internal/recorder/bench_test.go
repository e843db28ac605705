package recorder

import (
	"syscall"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// BenchmarkRecording records frames of 41,667 bytes, those of 25 ms at 200 Mbit/s at a time. The CPU time is that of
// the process, with the part of the kernel, without the arrival of packets.
func BenchmarkRecording(b *testing.B) {
	const frameBytes, perStep = 41_667, 15
	r := newRig(b, volumetric.MIMEVolumetric, nil)
	g := r.recorder.Start("lab", r.now)
	r.publish(g)
	var f payload.Fragmenter
	if err := f.Begin(payload.Descriptor{Prefixed: true}, make([]byte, frameBytes)); err != nil {
		b.Fatal(err)
	}
	bodies := make([][]byte, f.Packets())
	for i := range bodies {
		body, err := f.AppendPacket(nil, i)
		if err != nil {
			b.Fatal(err)
		}
		bodies[i] = body
	}
	var used time.Duration
	steps, packets := 0, 0
	b.SetBytes(perStep * frameBytes)
	for b.Loop() {
		for range perStep {
			r.number++
			for i, body := range bodies {
				r.sequence++
				p := r.pool.Get(body)
				p.Payload[8], p.Payload[9] = byte(r.number>>24), byte(r.number>>16)
				p.Payload[10], p.Payload[11] = byte(r.number>>8), byte(r.number)
				p.Facts = switching.Packet{Sequence: r.sequence, Marker: i == len(bodies)-1}
				p.Order = r.track.Now()
				r.track.Publish(p)
				packets++
			}
		}
		r.now = r.now.Add(stepInterval)
		before := cpuTime(b)
		g.step(r.now)
		r.settle(g)
		steps++
		used += cpuTime(b) - before
	}
	g.Stop(r.now, "test")
	g.Wait(b.Context())
	b.ReportMetric(float64(used.Nanoseconds())/float64(packets), "cpu-ns/packet")
	if s := r.recorder.Stats(); s.Frames != uint64(perStep*steps) {
		b.Errorf("%+v, expected %d frames", s, perStep*steps)
	}
}

func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
