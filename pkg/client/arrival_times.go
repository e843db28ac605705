package client

import (
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes"
)

// kernelStamp is when kernel and network card received a packet, the zero time where they do not tell.
type kernelStamp struct{ kernel, hardware time.Time }

// keptKernelStamps is how many frames under way of one stream have the stamps of their first packet kept: the ones that a reassembler holds.
const keptKernelStamps = 32

// kernelStamps keeps the stamps of the first packets of frames. It belongs to media's lock.
type kernelStamps struct {
	// now are those of the packet at hand.
	now   kernelStamp
	ring  [keptKernelStamps]frameStamp
	count int
}

type frameStamp struct {
	frame uint32
	stamp kernelStamp
}

// first notes the stamps of the packet at hand, if it is the first of its frame.
func (k *kernelStamps) first(frame uint32) {
	if k.now.kernel.IsZero() {
		return
	}
	// Packets of a frame come one after the other, so that the newest entries are looked at first.
	for i := k.count - 1; i >= max(0, k.count-keptKernelStamps); i-- {
		if k.ring[i%keptKernelStamps].frame == frame {
			return
		}
	}
	k.ring[k.count%keptKernelStamps] = frameStamp{frame, k.now}
	k.count++
}

// take finds the stamps of a frame's first packet.
func (k *kernelStamps) take(frame uint32) kernelStamp {
	for i := k.count - 1; i >= max(0, k.count-keptKernelStamps); i-- {
		if s := &k.ring[i%keptKernelStamps]; s.frame == frame {
			return s.stamp
		}
	}
	return kernelStamp{}
}

// arrived is what a receiver knows of the arrival of a frame, by the system's clock.
type arrived struct {
	first, segment, last time.Time
	stamps               kernelStamp
}

// Sent implements transport.Sink.
func (m *media) Sent(ssrc uint32, sequence uint16, kernel, hardware time.Time) {
	m.tracing.stamped(sentStamp{ssrc, sequence, kernel, hardware})
}

// trace notes the stamps of a frame that is complete.
func (m *media) trace(f *Frame) {
	t := m.tracing
	if !t.receiving.Load() {
		return
	}
	now := time.Now()
	clock := m.clock.state(now)
	if clock.Source == "" {
		return
	}
	part := frametimes.Record{Track: f.Track, Frame: f.Number, Bytes: len(f.Data)}
	part.Clocks[frametimes.Receiver] = clock
	for _, s := range [...]struct {
		stamp frametimes.Stamp
		at    time.Time
	}{
		{frametimes.FirstReceivedHardware, f.arrived.stamps.hardware}, {frametimes.FirstReceivedKernel, f.arrived.stamps.kernel},
		{frametimes.FirstReceived, f.arrived.first}, {frametimes.FirstSegmentReceived, f.arrived.segment}, {frametimes.LastReceived, f.arrived.last},
		{frametimes.Reassembled, now},
	} {
		if !s.at.IsZero() {
			part.SetLocal(s.stamp, m.clock.local(s.at))
		}
	}
	t.received(&part, now)
}
