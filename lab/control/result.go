package control

import (
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/lab"
)

// Result holds the figures of a run. Figures that do not apply to the case are nil. Shares are from 0 to 1. The figures
// of several receivers are combined.
type Result struct {
	Case string `json:"case"`
	// Utilisation is the rate received in decodable frames as a share of the most that fits into the link if tiles are
	// at most one step apart. The allocator may exceed this limit a little. Measured from 10 s on.
	Utilisation float64 `json:"utilisation"`
	// ShareOfCapacity is the same rate as a share of the link's rate.
	ShareOfCapacity float64 `json:"share_of_capacity"`
	// Queue is the waiting time of packets at the bottleneck.
	Queue QueueFigures `json:"queue_ms"`
	// LowLatency and Classic hold the figures of the two classes of packets at the bottleneck, those of competitors
	// included. They are nil unless the queue separates the classes or packets were ECN-capable, if the class had no
	// packet, and in a run in real time without hosts.
	LowLatency *ClassFigures `json:"low_latency,omitempty"`
	Classic    *ClassFigures `json:"classic,omitempty"`
	// AudioQueue is the 99th percentile of the waiting times of audio packets at the bottleneck, in ms; nil without
	// audio.
	AudioQueue *float64 `json:"audio_queue_ms_p99,omitempty"`
	// Latency is the time from the capture of a frame to the arrival of the last packet needed.
	Latency LatencyFigures `json:"frame_latency_ms"`
	// FramesSent counts frames of tiles that began to leave. FramesUndecodable counts the frames among them that were
	// not complete by their deadline. FramesDroppedWhole counts other frames, of which nothing was sent because they
	// had waited too long.
	FramesSent         int `json:"frames_sent"`
	FramesUndecodable  int `json:"frames_undecodable"`
	FramesDroppedWhole int `json:"frames_dropped_whole"`
	// PacketsDiscarded counts packets that the bottleneck's queue dropped.
	PacketsDiscarded uint64 `json:"packets_discarded"`
	// SecondsToTarget is the time until the sent rate reached 90 % of the case's target and stayed there for at least a
	// second.
	SecondsToTarget *float64 `json:"seconds_to_target,omitempty"`
	// RecoverySeconds is the time after the link's rate was restored until 80 % of the rate was in use. If the trace
	// has several outages, RecoverySeconds is the longest time until frames captured since the outage arrived at half
	// of the link's best possible rate.
	RecoverySeconds *float64 `json:"recovery_seconds,omitempty"`
	// QueueSeconds is the time after a fall of the link's rate until no packet waited 50 ms or longer for a second.
	// QualitySeconds is the time until the qualities fitted into the new rate.
	QueueSeconds   *float64 `json:"queue_seconds,omitempty"`
	QualitySeconds *float64 `json:"quality_seconds,omitempty"`
	// ShareOfFair is the rate received beside competitors as a share of the rate that each flow would have if all were
	// equal.
	ShareOfFair *float64 `json:"share_of_fair,omitempty"`
	// JainIndex is Jain's fairness index of several receivers: 1 if all rates are equal. In a room it is the index of
	// the downlinks before the mark.
	JainIndex *float64 `json:"jain_index,omitempty"`
	// Others holds the competitors' figures in the first 3 s beside the receiver.
	Others *OtherFigures `json:"others,omitempty"`
	// Cliff holds the figures of a fall of the link's rate within 50 ms.
	Cliff *CliffFigures `json:"cliff,omitempty"`
	// FallbackSeconds is the time after the beginning of a treatment of the ECN field until packets left with another
	// codepoint, or the time until the end of the run. It is nil if packets were not ECN-capable before.
	FallbackSeconds *float64 `json:"fallback_seconds,omitempty"`
	// Codepoints lists the codepoints with which packets left, if packets were ECN-capable: those of the first
	// receiver, each with the time from which it was used.
	Codepoints []CodepointFigures `json:"codepoints,omitempty"`
	// FirstMarkSeconds is the time at which the first packet with CE arrived at the first receiver, nil if none did.
	// End to end it is the time at which the server has read the report.
	FirstMarkSeconds *float64 `json:"first_mark_seconds,omitempty"`
	// Room holds the estimates of a room.
	Room *RoomFigures `json:"room,omitempty"`
	// Emulation reports whether the network of a run with hosts was in time, nil for other runs.
	Emulation *EmulationFigures `json:"emulation,omitempty"`
	// EstimateShare is the mean estimate as a share of the link's rate, from 10 s on.
	EstimateShare float64 `json:"estimate_share"`
	// RepairOverhead is the bytes of retransmissions and parity as a share of media.
	RepairOverhead float64 `json:"repair_overhead"`
	// PaddingOverhead is the bytes of probe padding as a share of media.
	PaddingOverhead float64 `json:"padding_overhead"`
}

// OtherFigures holds the competitors' losses at the bottleneck, as a share of their packets, and the 95th percentile of
// their packets' waiting time there, in ms.
type OtherFigures struct {
	Loss     float64 `json:"loss"`
	QueueP95 float64 `json:"queue_ms_p95"`
	// ShareOfFair is the competitors' mean rate as a share of the rate that each flow would have if all were equal,
	// over the time of Result.ShareOfFair. It is nil in a run in real time without hosts.
	ShareOfFair *float64 `json:"share_of_fair,omitempty"`
}

// EmulationFigures reports whether the emulated network was in time. The figures of a run that is not Valid have the
// errors of a busy machine; a Disturbance has a cause outside of the run.
type EmulationFigures struct {
	Valid       bool   `json:"valid"`
	Reason      string `json:"reason,omitempty"`
	Disturbance string `json:"disturbance,omitempty"`
	// LateP95 and LateP999 are quantiles of the lateness of packets, in ms.
	LateP95  float64 `json:"late_ms_p95"`
	LateP999 float64 `json:"late_ms_p999"`
	// Discarded is the number of earlier runs of the case whose figures were discarded because of a Disturbance.
	Discarded int `json:"discarded,omitempty"`
}

// CliffFigures holds the longest time in the queue after a fall of the link's rate, in ms, and the time in seconds from
// the fall until no packet waited 5 ms or longer for a second.
type CliffFigures struct {
	LongestQueue float64 `json:"queue_ms_max"`
	ShortAfter   float64 `json:"queue_short_seconds"`
}

// CodepointFigures is a codepoint and the time from which packets left with it, in seconds.
type CodepointFigures struct {
	Seconds   float64 `json:"from_seconds"`
	Codepoint string  `json:"codepoint"`
}

// QueueFigures are quantiles of waiting times in the queue, in ms.
type QueueFigures struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// ClassFigures holds the figures of a class of packets at the bottleneck's queue: the number of transmitted, of marked
// and of dropped packets, and quantiles of waiting times in ms.
type ClassFigures struct {
	Packets uint64  `json:"packets"`
	Marked  uint64  `json:"marked"`
	Dropped uint64  `json:"dropped"`
	P50     float64 `json:"queue_ms_p50"`
	P99     float64 `json:"queue_ms_p99"`
	Max     float64 `json:"queue_ms_max"`
}

// LatencyFigures are quantiles of latencies, in ms.
type LatencyFigures struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// outageShadow is the time after an outage in which latencies do not count.
const outageShadow = 3 * time.Second

// Record is the outcome of a run: the result of each frame, and rates over time.
type Record struct {
	scenario *scenario
	ladder   ladder
	// receivers holds one ledger per receiver. The samples of the first ledger have the times, the link's capacity and
	// the sent rate.
	receivers []*ledger
	queue     QueueFigures
	// lowLatency and classic are as in Result.
	lowLatency, classic *ClassFigures
	audioQueue          *float64
	discarded           uint64
	others              *OtherFigures
	emulation           *EmulationFigures
}

// Result computes the figures of the run.
func (r *Record) Result() *Result {
	result := &Result{Case: r.scenario.name, Queue: r.queue, LowLatency: r.lowLatency, Classic: r.classic,
		AudioQueue: r.audioQueue, PacketsDiscarded: r.discarded, Others: r.others, Emulation: r.emulation}
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
	result.RepairOverhead, result.PaddingOverhead = float64(repairs)/max(float64(media), 1),
		float64(padding)/max(float64(media), 1)
	r.rates(result)
	r.changes(result)
	result.Codepoints = r.receivers[0].codepointFigures()
	if marked := r.receivers[0].marked; marked > 0 {
		result.FirstMarkSeconds = figure(marked.Seconds())
	}
	return result
}

// up reports whether the link is up, and has been up for outageShadow or since the beginning.
func (r *Record) up(now time.Duration) bool {
	for _, o := range r.scenario.trace.Outages() {
		if now >= o.Start && now < o.End+outageShadow {
			return false
		}
	}
	return true
}
