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

// Figures are what was measured of one server.
type Figures struct {
	// CPU is user and system time of the server's process per packet that it sent, CPUReceived per packet that it received.
	CPU         float64 `json:"cpu_us_per_packet"`
	CPUReceived float64 `json:"cpu_us_per_received_packet"`
	// CPUShare is the share of one core that the server's process took.
	CPUShare         float64 `json:"cpu_share"`
	PacketsReceived  uint64  `json:"packets_received"`
	PacketsForwarded uint64  `json:"packets_forwarded"`
	// PacketsLost are those that publishers sent and receivers did not get, each counted per receiver; FramesLost those that did not come whole.
	PacketsLost uint64 `json:"packets_lost"`
	FramesLost  uint64 `json:"frames_lost"`
	// ReceiverDrops are packets that the receivers' own sockets had no room for: the lab's doing, not the server's.
	ReceiverDrops int `json:"receiver_drops"`
	// Residence is from reading a packet to having written it, without PacerHold, the time that the pacer holds it on purpose; null where the server
	// does not tell. Of the server to compare with it is package fanout's MetricResidence, which begins later and ends with the last receiver.
	Residence *Quantiles `json:"residence_us"`
	PacerHold *Quantiles `json:"pacer_hold_us"`
	// Latency is from sending a packet to its arrival at a receiver's socket, null where receivers are whole clients, which tell of frames only; FrameLatency
	// from sending the first packet of a frame to the arrival of its last one, whole frames only, null where there were none.
	Latency      *Quantiles `json:"latency_us"`
	FrameLatency *Quantiles `json:"frame_latency_us"`
	// SegmentsPerSend is the mean number of packets in one send; null where the server does not tell.
	SegmentsPerSend *float64 `json:"segments_per_send"`
	RSS             uint64   `json:"rss_bytes"`
	Goroutines      int      `json:"goroutines"`
	Allocations     float64  `json:"allocs_per_packet"`
	CacheBytes      uint64   `json:"cache_bytes,omitempty"`
	// MachineBusy is the share of all cores' time that was not idle while this server was measured, everything on the machine included.
	MachineBusy float64 `json:"machine_busy"`
	// PacketsMissed did not come when they were due, PacketsRecovered came after all; Retransmissions is what the server sent for that. Only where the
	// path loses.
	PacketsMissed    uint64 `json:"packets_missed,omitempty"`
	PacketsRecovered uint64 `json:"packets_recovered,omitempty"`
	Retransmissions  uint64 `json:"retransmissions,omitempty"`
	// Seconds is how long was measured.
	Seconds float64 `json:"seconds"`
}

// maxBusy is the share of the machine's time above which figures say more about waiting than about work.
const maxBusy = 0.85

// disturbed reports whether the machine was busier than maxBusy, by the servers or by other work.
func (f *Figures) disturbed() bool { return f.MachineBusy >= maxBusy }

// valid reports whether the figures may be judged: the machine had time, and nothing was lost unless the load loses
// packets on purpose.
func (f *Figures) valid(l Load) bool {
	return !f.disturbed() && (l.impaired() || f.PacketsLost == 0 && f.FramesLost == 0)
}

// window sums what a server counted over the times in which it was measured.
type window struct {
	counts  exposition.Series
	last    exposition.Series
	cpu     time.Duration
	machine lab.MachineTime
	elapsed time.Duration
}

// add adds the time between two snapshots.
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

// figures are those that the server's side gives.
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

// quantiles are those of a histogram; nil where the server has none, or nothing was counted.
func (w *window) quantiles(name string) *Quantiles {
	buckets := w.counts.Histogram(name)
	if !slices.ContainsFunc(buckets, func(b exposition.Bucket) bool { return b.Count > 0 }) {
		return nil
	}
	at := func(share float64) float64 { return microseconds(exposition.Quantile(buckets, share)) }
	return &Quantiles{at(0.5), at(0.99), at(0.999)}
}

// quantilesOf are those of times that were taken; nil where none were.
func quantilesOf(d *lab.Distribution) *Quantiles {
	if d.Count() == 0 {
		return nil
	}
	at := func(share float64) float64 { return microseconds(d.Percentile(share)) }
	return &Quantiles{at(0.5), at(0.99), at(0.999)}
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// ratio is 0 where there is nothing to divide by.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
