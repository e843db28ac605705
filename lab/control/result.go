package control

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/lab"
)

// Result holds the figures of a run; those that the case does not have are nil. Shares are from 0 to 1. Where there are several receivers they are taken together.
type Result struct {
	Case string `json:"case"`
	// Utilisation is what was received in decodable frames, as a share of the most that fits into the link where tiles are one step apart at
	// most, which the allocator may exceed a little. It counts after 10 s.
	Utilisation float64 `json:"utilisation"`
	// ShareOfCapacity is the same as a share of the link's rate.
	ShareOfCapacity float64 `json:"share_of_capacity"`
	// Queue is what packets waited at the bottleneck.
	Queue QueueFigures `json:"queue_ms"`
	// Latency is from the capture of a frame to its last packet that was needed.
	Latency LatencyFigures `json:"frame_latency_ms"`
	// FramesSent counts frames of tiles that began to leave. FramesUndecodable are those that were not complete by their deadline, FramesDroppedWhole others, of
	// which nothing was sent because they had waited too long.
	FramesSent         int `json:"frames_sent"`
	FramesUndecodable  int `json:"frames_undecodable"`
	FramesDroppedWhole int `json:"frames_dropped_whole"`
	// PacketsDiscarded counts packets that the bottleneck's queue has dropped.
	PacketsDiscarded uint64 `json:"packets_discarded"`
	// SecondsToTarget is when the sent rate has come to 90 % of the case's target, to stay there for a second at least.
	SecondsToTarget *float64 `json:"seconds_to_target,omitempty"`
	// RecoverySeconds is how long it took after the link had its rate again: until 80 % of it were in use; or of several outages the longest, until half of what it
	// would have carried at best came through in frames captured since.
	RecoverySeconds *float64 `json:"recovery_seconds,omitempty"`
	// QueueSeconds is how long after a fall of the link's rate packets waited 50 ms and longer, until for a second none did, QualitySeconds how long until the qualities
	// fitted into what was left of it.
	QueueSeconds   *float64 `json:"queue_seconds,omitempty"`
	QualitySeconds *float64 `json:"quality_seconds,omitempty"`
	// ShareOfFair is the rate that got through beside competitors, as a share of what each would have if all had the same.
	ShareOfFair *float64 `json:"share_of_fair,omitempty"`
	// JainIndex tells how equal the rates of several receivers were: 1 if all were the same.
	JainIndex *float64 `json:"jain_index,omitempty"`
	// Others is how competitors fared in the first 3 s beside the receiver.
	Others *OtherFigures `json:"others,omitempty"`
	// EstimateShare is the mean estimate as a share of the link's rate, after 10 s.
	EstimateShare float64 `json:"estimate_share"`
	// RepairOverhead is what retransmissions and parity took, as a share of media.
	RepairOverhead float64 `json:"repair_overhead"`
	// PaddingOverhead is what the padding of probes took, as a share of media.
	PaddingOverhead float64 `json:"padding_overhead"`
}

// OtherFigures are the losses of competitors at the bottleneck, as a share of their packets, and the 95th percentile of what their packets waited there.
type OtherFigures struct {
	Loss     float64 `json:"loss"`
	QueueP95 float64 `json:"queue_ms_p95"`
}

// QueueFigures are quantiles of times in the queue, in ms.
type QueueFigures struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// LatencyFigures are quantiles of latencies, in ms.
type LatencyFigures struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// outageShadow is how long after an outage latencies do not count.
const outageShadow = 3 * time.Second

// Record is what is left of a run: what became of frames, and rates over time.
type Record struct {
	scenario *scenario
	ladder   ladder
	// receivers are their books. The first one's samples have the times, the link's capacity and what was sent.
	receivers []*ledger
	queue     QueueFigures
	discarded uint64
	others    *OtherFigures
}

// Result gives the figures.
func (r *Record) Result() *Result {
	result := &Result{Case: r.scenario.name, Queue: r.queue, PacketsDiscarded: r.discarded, Others: r.others}
	var latency lab.Distribution
	var media, repairs, padding int64
	for _, l := range r.receivers {
		for _, key := range l.order {
			record := l.frames[key]
			if record.complete == 0 {
				result.FramesUndecodable++
			} else if r.up(record.captured) {
				latency.Add(record.complete - record.captured)
			}
		}
		result.FramesSent += len(l.order)
		result.FramesDroppedWhole += l.droppedWhole
		media += l.sentBytes[feedback.Media]
		repairs += l.sentBytes[feedback.Retransmission] + l.sentBytes[feedback.Parity]
		padding += l.sentBytes[feedback.Probe]
	}
	ms := func(share float64) float64 { return lab.Milliseconds(latency.Percentile(share)) }
	result.Latency = LatencyFigures{ms(0.5), ms(0.95), ms(0.99)}
	result.RepairOverhead, result.PaddingOverhead = float64(repairs)/max(float64(media), 1), float64(padding)/max(float64(media), 1)
	r.rates(result)
	r.changes(result)
	return result
}

// up tells whether the link is up, and has been for outageShadow or since the beginning.
func (r *Record) up(now time.Duration) bool {
	for _, o := range r.scenario.trace.Outages() {
		if now >= o.Start && now < o.End+outageShadow {
			return false
		}
	}
	return true
}
