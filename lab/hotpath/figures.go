package hotpath

import (
	"slices"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/exposition"
)

// Quantiles are three quantiles of a time, in microseconds.
type Quantiles struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
}

// Figures are the figures of one server.
type Figures struct {
	// CPU is the user and system time of the server's process per sent packet; CPUReceived is the time per received
	// packet.
	CPU         float64 `json:"cpu_us_per_packet"`
	CPUReceived float64 `json:"cpu_us_per_received_packet"`
	// CPUShare is the server process's share of one core.
	CPUShare         float64 `json:"cpu_share"`
	PacketsReceived  uint64  `json:"packets_received"`
	PacketsForwarded uint64  `json:"packets_forwarded"`
	// PacketsLost is the number of packets sent by publishers and not received, counted per receiver. FramesLost is the
	// number of frames not received completely.
	PacketsLost uint64 `json:"packets_lost"`
	FramesLost  uint64 `json:"frames_lost"`
	// ReceiverDrops is the number of packets dropped by full sockets of the receivers: the lab's fault, not the
	// server's.
	ReceiverDrops int `json:"receiver_drops"`
	// Residence is the time from reading a packet to having written the packet, without PacerHold, the time in the
	// pacer; null if the server does not report the time. For the other server, Residence is package fanout's
	// MetricResidence, which begins later and ends with the last receiver.
	Residence *Quantiles `json:"residence_us"`
	PacerHold *Quantiles `json:"pacer_hold_us"`
	// Latency is the time from sending a packet to its arrival at a receiver's socket; null if receivers are whole
	// clients, which report frames only. FrameLatency is the time from sending the first packet of a complete frame to
	// the arrival of its last packet; null without complete frames.
	Latency      *Quantiles `json:"latency_us"`
	FrameLatency *Quantiles `json:"frame_latency_us"`
	// SegmentsPerSend is the mean number of packets in one send; null if the server does not report sends.
	SegmentsPerSend *float64 `json:"segments_per_send"`
	RSS             uint64   `json:"rss_bytes"`
	Goroutines      int      `json:"goroutines"`
	Allocations     float64  `json:"allocs_per_packet"`
	CacheBytes      uint64   `json:"cache_bytes,omitempty"`
	// MachineBusy is the share of all cores' time that was not idle while this server was measured. All programs of the
	// machine count.
	MachineBusy float64 `json:"machine_busy"`
	// PacketsMissed counts packets that did not arrive when due, PacketsRecovered the missed packets that arrived
	// later, Retransmissions the packets retransmitted by the server. All are set only if the path loses packets.
	PacketsMissed    uint64 `json:"packets_missed,omitempty"`
	PacketsRecovered uint64 `json:"packets_recovered,omitempty"`
	Retransmissions  uint64 `json:"retransmissions,omitempty"`
	// Seconds is the measured time.
	Seconds float64 `json:"seconds"`
}

// maxBusy is the share of the machine's time above which figures describe waiting more than work.
const maxBusy = 0.85

// disturbed reports whether the machine was at least as busy as maxBusy, because of the servers or of other work.
func (f *Figures) disturbed() bool { return f.MachineBusy >= maxBusy }

// valid reports whether the figures may be judged: the machine had time, and nothing was lost unless the load loses
// packets on purpose.
func (f *Figures) valid(l Load) bool {
	return !f.disturbed() && (l.impaired() || f.PacketsLost == 0 && f.FramesLost == 0)
}

// window sums the server's counters over the measured intervals.
type window struct {
	counts  exposition.Series
	last    exposition.Series
	cpu     time.Duration
	machine lab.MachineTime
	elapsed time.Duration
}

// add adds the interval between two snapshots.
func (w *window) add(before, after snapshot) {
	if w.counts == nil {
		w.counts = make(exposition.Series)
	}
	w.counts.Add(before.counts, after.counts)
	w.last = after.counts
	w.cpu += after.cpu - before.cpu
	w.machine.Busy += after.machine.Busy - before.machine.Busy
	w.machine.All += after.machine.All - before.machine.All
	w.elapsed += after.at.Sub(before.at)
}

// figures returns the figures from the server's side.
func (w *window) figures(names metricNames) Figures {
	f := Figures{
		PacketsReceived:  uint64(w.counts.Sum(names.packets, `direction="in"`)),
		PacketsForwarded: uint64(w.counts.Sum(names.packets, `direction="out"`)),
		RSS:              uint64(w.last["process_resident_memory_bytes"]),
		Goroutines:       int(w.last["go_goroutines"]),
		CacheBytes:       uint64(w.last[names.cache]),
		CPUShare:         ratio(w.cpu.Seconds(), w.elapsed.Seconds()),
		MachineBusy:      ratio(w.machine.Busy, w.machine.All),
		Seconds:          w.elapsed.Seconds(),
	}
	cpu := float64(w.cpu) / float64(time.Microsecond)
	f.CPU, f.CPUReceived = ratio(cpu, float64(f.PacketsForwarded)), ratio(cpu, float64(f.PacketsReceived))
	f.Allocations = ratio(w.counts["go_memstats_mallocs_total"], float64(max(f.PacketsForwarded, f.PacketsReceived)))
	f.Residence = w.quantiles(names.residence)
	f.PacerHold = w.quantiles(names.hold)
	if sends := w.counts.Sum(names.sends); names.sends != "" && sends > 0 {
		segments := w.counts.Sum(names.datagrams) / sends
		f.SegmentsPerSend = &segments
	}
	return f
}

// quantiles returns the quantiles of a histogram; nil if the server has no such histogram or nothing was counted.
func (w *window) quantiles(name string) *Quantiles {
	buckets := w.counts.Histogram(name)
	if !slices.ContainsFunc(buckets, func(b exposition.Bucket) bool { return b.Count > 0 }) {
		return nil
	}
	at := func(share float64) float64 { return lab.Microseconds(exposition.Quantile(buckets, share)) }
	return &Quantiles{at(0.5), at(0.99), at(0.999)}
}

// quantilesOf returns the quantiles of d; nil if d is empty.
func quantilesOf(d *lab.Distribution) *Quantiles {
	if d.Count() == 0 {
		return nil
	}
	at := func(share float64) float64 { return lab.Microseconds(d.Percentile(share)) }
	return &Quantiles{at(0.5), at(0.99), at(0.999)}
}

// ratio returns a/b, or 0 if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
