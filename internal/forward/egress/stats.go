package egress

import (
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/trace"
)

// Stats are the durations that the writers have measured, and gauges.
type Stats struct {
	// Residence is from a packet's arrival until it was sent, for each receiver, without the time that the pacer
	// intended to hold it, which is PacerHold. SwitchDelay is from a slot's selection to the first packet of the new
	// track.
	Residence, PacerHold, SwitchDelay trace.Histogram
	// FrameHold, FrameDistribution and FrameReception are those of trace.Totals.
	FrameHold, FrameDistribution, FrameReception trace.Histogram
	// ActiveSlots carry a track, WaitingSlots wait for the first frame of one.
	Slots, ActiveSlots, WaitingSlots, Receivers int
}

// writerStats are what one writer counts: for itself while it forwards, for others whenever it rests.
type writerStats struct {
	counts      counters.Counts
	residence   trace.Durations
	pacerHold   trace.Durations
	switchDelay trace.Durations
	frames      trace.Totals

	public counters.Shard
	// active and waiting are the numbers of slots, up to a tenth of a second ago.
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
