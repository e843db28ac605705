package egress

import (
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/trace"
)

// Stats are the durations that the writers have measured, and gauges.
type Stats struct {
	// Residence is the time from a packet's arrival until it was sent, per receiver, without the intended delay of the
	// pacer. PacerHold is that intended delay. SwitchDelay is the time from a slot's selection to the first packet of
	// the new track.
	Residence, PacerHold, SwitchDelay trace.Histogram
	// FrameHold, FrameDistribution and FrameReception are the durations of trace.Totals.
	FrameHold, FrameDistribution, FrameReception trace.Histogram
	// ActiveSlots carry a track, WaitingSlots wait for the first frame of a track.
	Slots, ActiveSlots, WaitingSlots, Receivers int
}

// writerStats are the counters and durations of one writer, which publishes them whenever it rests.
type writerStats struct {
	counts      counters.Counts
	residence   trace.Durations
	pacerHold   trace.Durations
	switchDelay trace.Durations
	frames      trace.Totals

	public counters.Shard
	// active and waiting are numbers of slots, up to a tenth of a second old.
	active, waiting atomic.Int64
}

func (s *writerStats) publish() {
	s.counts[counters.TimesDropped] += s.frames.Dropped
	s.frames.Dropped = 0
	s.public.Merge(&s.counts)
	s.residence.Publish()
	s.pacerHold.Publish()
	s.switchDelay.Publish()
	s.frames.Hold.Publish()
	s.frames.Distribution.Publish()
	s.frames.Reception.Publish()
}

func (s *writerStats) addTo(sum *Stats, counts *counters.Counts) {
	s.public.AddTo(counts)
	s.residence.AddTo(&sum.Residence)
	s.pacerHold.AddTo(&sum.PacerHold)
	s.switchDelay.AddTo(&sum.SwitchDelay)
	s.frames.Hold.AddTo(&sum.FrameHold)
	s.frames.Distribution.AddTo(&sum.FrameDistribution)
	s.frames.Reception.AddTo(&sum.FrameReception)
	sum.ActiveSlots += int(s.active.Load())
	sum.WaitingSlots += int(s.waiting.Load())
}
