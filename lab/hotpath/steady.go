package hotpath

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// Allocations counts the allocations of the server's process per forwarded packet. A process also allocates per second:
// for reports, connectivity checks and reading its metrics. This part is the same at another bit rate, so the
// difference between two rates is due to packets.
type Allocations struct {
	bench
	Load Load
	// Part is the bit rate of the second run as a share of the first.
	Part float64
	// PerPacket is the bound: zero apart from other differences between two runs.
	PerPacket float64
	// Time is the duration of each run. Connectivity checks happen every two seconds and allocate much at once, so runs
	// differ by one check.
	Time time.Duration
}

// Name implements lab.Check.
func (a *Allocations) Name() string {
	return "allocations of the server's process per forwarded packet"
}

// Run implements lab.Check.
func (a *Allocations) Run(ctx context.Context) ([]claim.Line, error) {
	full, err := a.run(ctx, Options{Load: a.Load, Duration: a.Time})
	if err != nil {
		return nil, err
	}
	load := a.Load
	load.Mbps *= a.Part
	less, err := a.run(ctx, Options{Load: load, Duration: a.Time})
	if err != nil {
		return nil, err
	}
	perSecond := func(r *Result) (allocations, packets float64) {
		packets = ratio(float64(r.PacketsForwarded), r.Seconds)
		return r.Allocations * packets, packets
	}
	moreAllocations, morePackets := perSecond(full)
	fewerAllocations, fewerPackets := perSecond(less)
	lines := []claim.Line{
		claim.AtMost("allocations per additional packet", ratio(moreAllocations-fewerAllocations,
			morePackets-fewerPackets), "", a.PerPacket),
		claim.Information("allocations per packet, including those per second", full.Allocations, ""),
		claim.Information("allocations per second", moreAllocations, "1/s"),
		claim.Information("packets forwarded per second", morePackets, "1/s"),
	}
	return append(lines, validity("", full, less)...), nil
}

// Residence measures the time that packets stay in a server that uses half a core.
type Residence struct {
	bench
	// Load is the initial load. Its bit rate is changed until the server uses Share of a core. Runs is the number of
	// runs at that rate; the medians count.
	Load           Load
	Runs           int
	Share          float64
	P50, P99, P999 time.Duration
}

// Name implements lab.Check.
func (r *Residence) Name() string {
	return fmt.Sprintf("residence time of packets in a server that uses %.0f %% of a core", 100*r.Share)
}

// busyTarget is the intended share of the machine's time if the lab's own work would exceed maxBusy before the server
// reaches its share.
const busyTarget = 0.75

// Run implements lab.Check.
func (r *Residence) Run(ctx context.Context) ([]claim.Line, error) {
	lines, err := r.measure(ctx, "", PacingOff, true)
	if err != nil {
		return lines, err
	}
	paced, err := r.measure(ctx, "paced: ", PacingOn, false)
	if err != nil {
		paced, err = unpaced("paced: residence time and hold", err)
	}
	return append(lines, paced...), err
}

// measure finds the bit rate in a trial run and measures at that rate.
func (r *Residence) measure(ctx context.Context, prefix string, pacing Pacing, bounded bool) ([]claim.Line, error) {
	trial, err := r.run(ctx, Options{Load: r.Load, Pacing: pacing})
	if err != nil {
		return nil, err
	}
	load := r.Load
	if factor := min(ratio(r.Share, trial.CPUShare), ratio(busyTarget, trial.MachineBusy)); factor > 0 {
		load.Mbps *= factor
	}
	runs, err := r.repeat(ctx, fmt.Sprintf("%sresidence at %.3g Mbit/s", prefix, load.Mbps), r.Runs,
		Options{Load: load, Pacing: pacing})
	if err != nil {
		return nil, err
	}
	var lines []claim.Line
	if residence := runs.Quantiles(func(r *Result) *Quantiles { return r.Residence }); residence != nil {
		lines = append(lines, r.quantiles(prefix, *residence, bounded)...)
	} else {
		lines = append(lines, claim.Skip(prefix+"residence time", "the server's metrics do not have it"))
	}
	lines = append(lines,
		two(prefix+"hold by the pacer", runs.Quantiles(func(r *Result) *Quantiles { return r.PacerHold }), "µs", 1)...)
	lines = append(lines,
		claim.Information(prefix+"server CPU, share of a core",
			100*runs.Median(func(r *Result) float64 { return r.CPUShare }), "%"),
		claim.Information(prefix+"total bit rate from the publisher", load.Mbps, "Mbit/s"),
	)
	lines = append(lines,
		two(prefix+"end-to-end packet latency", runs.Quantiles(func(r *Result) *Quantiles { return r.Latency }), "µs",
			1)...)
	lines = append(lines,
		two(prefix+"end-to-end frame latency", runs.Quantiles(func(r *Result) *Quantiles { return r.FrameLatency }),
			"µs", 1)...)
	return append(lines, validity(prefix, runs...)...), nil
}

// quantiles returns the lines, with bounds if bounded.
func (r *Residence) quantiles(prefix string, q Quantiles, bounded bool) []claim.Line {
	var lines []claim.Line
	for _, one := range []struct {
		name   string
		figure float64
		bound  time.Duration
	}{{"p50", q.P50, r.P50}, {"p99", q.P99, r.P99}, {"p99.9", q.P999, r.P999}} {
		name := prefix + "residence time, " + one.name
		if bounded {
			lines = append(lines, claim.AtMost(name, one.figure, "µs", lab.Microseconds(one.bound)))
		} else {
			lines = append(lines, claim.Information(name, one.figure, "µs"))
		}
	}
	return lines
}

// Unwatched measures the cost of a track without subscribers.
type Unwatched struct {
	bench
	Load Load
}

func (u *Unwatched) Name() string { return "the cost of a track without subscribers" }

// Run implements lab.Check.
func (u *Unwatched) Run(ctx context.Context) ([]claim.Line, error) {
	result, err := u.run(ctx, Options{Load: u.Load})
	if err != nil {
		return nil, err
	}
	tracks := float64(u.Load.Publishers * u.Load.Tracks)
	lines := []claim.Line{
		claim.Exactly("packets forwarded", int64(result.PacketsForwarded), "", 0),
		claim.Stated("CPU per packet received", result.CPUReceived, "µs"),
		claim.Stated(fmt.Sprintf("share of a core per track of %.3g Mbit/s", ratio(u.Load.Mbps, tracks)),
			100*ratio(result.CPUShare, tracks), "%"),
		claim.Stated("packet cache per track", ratio(float64(result.CacheBytes), tracks)/1e6, "MB"),
	}
	limit, err := u.limit(ctx)
	if err == nil {
		lines = append(lines, claim.Information("the machine's limit: receive and decrypt", limit.Receive, "µs"),
			claim.Information("the machine's limit: receive and decrypt in runs", limit.Coalesced, "µs"))
	}
	return append(lines, validity("", result)...), nil
}

// Repair measures the recovery of random losses between the server and a receiver by retransmission.
type Repair struct {
	bench
	Load Load
	// Recovered is the least percentage of lost packets to be recovered. PerLoss is the largest number of
	// retransmissions per lost packet.
	Recovered, PerLoss float64
}

// Name implements lab.Check.
func (r *Repair) Name() string {
	return fmt.Sprintf("retransmission under %g %% random loss at %g Mbit/s, RTT %v", 100*r.Load.Loss, r.Load.Mbps,
		r.Load.RTT)
}

// Run implements lab.Check.
func (r *Repair) Run(ctx context.Context) ([]claim.Line, error) {
	result, err := r.run(ctx, Options{Load: r.Load})
	if err != nil {
		return nil, err
	}
	missed := float64(result.PacketsMissed)
	lines := []claim.Line{
		claim.AtLeast("lost packets recovered", 100*ratio(float64(result.PacketsRecovered), missed), "%", r.Recovered),
		claim.AtMost("retransmissions sent per loss", ratio(float64(result.Retransmissions), missed), "", r.PerLoss),
		claim.Information("packets lost", missed, ""),
		claim.Information("packets not recovered", missed-float64(result.PacketsRecovered), ""),
		// A packet that is not recovered breaks one frame.
		claim.AtMost("frames lost", float64(result.FramesLost), "", math.Floor(missed*(1-r.Recovered/100))),
	}
	lines = append(lines, two("end-to-end frame latency", result.FrameLatency, "ms", 1000)...)
	if result.PacketsMissed == 0 {
		lines[0].Met = false
	}
	return append(lines, claim.Exactly("valid runs", int64(map[bool]int{true: 1}[result.Valid]), "", 1),
		claim.Information("machine busy", 100*result.MachineBusy, "%")), nil
}
