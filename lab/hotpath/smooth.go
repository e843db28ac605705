package hotpath

import (
	"context"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/test/claim"
)

// Smooth compares the server's CPU time per forwarded packet on smooth paths, as to receivers with L4S, with the time
// on other paths, to receivers that report arrivals in both cases.
type Smooth struct {
	bench
	// Runs is the number of runs; medians count.
	Runs int
	Load Load
	// Ratio bounds the CPU time relative to other paths.
	Ratio float64
}

// Name implements lab.Check.
func (s *Smooth) Name() string {
	return fmt.Sprintf("CPU time per forwarded packet on smooth paths: %d receivers at %g Mbit/s", s.Load.Receivers,
		s.Load.Mbps)
}

// smoothTick is the longest time between two ticks of the pacer on a smooth path.
const smoothTick = 500 * time.Microsecond

// mostPerSend is the number of packets that leave at once if paths are smooth: those of a tick at 1.05 times the
// estimate, and one.
func (s *Smooth) mostPerSend() float64 {
	bytesPerPacket := s.Load.wireRate() / 8 / s.Load.FrameRate /
		float64(s.Load.Publishers*s.Load.Tracks*s.Load.packetsPerFrame())
	return 1.05*headroom*s.Load.wireRate()/8*smoothTick.Seconds()/bytesPerPacket + 1
}

// Run implements lab.Check.
func (s *Smooth) Run(ctx context.Context) ([]claim.Line, error) {
	runs, err := s.repeat(ctx, "smooth paths", s.Runs, Options{Load: s.Load, Pacing: PacingSmooth, ComparePaced: true})
	const ratioName = "CPU per forwarded packet, relative to other paths"
	if err != nil {
		return unpaced(ratioName, err)
	}
	lines := []claim.Line{
		claim.AtMost(ratioName, runs.Median(func(r *Result) float64 { return *r.CPURatio }), "", s.Ratio),
		claim.Information("CPU per forwarded packet", runs.Median(func(r *Result) float64 { return r.CPU }), "µs"),
		claim.Information("CPU per forwarded packet, other paths",
			runs.Median(func(r *Result) float64 { return r.Compare.CPU }), "µs"),
		claim.Information("resident memory beyond that of other paths, per receiver",
			runs.Median(func(r *Result) float64 {
				return ratio(float64(r.RSS)-float64(r.Compare.RSS), float64(s.Load.Receivers))
			})/1e3, "kB"),
	}
	if segments := runs.Figure(func(r *Result) *float64 { return r.SegmentsPerSend }); segments != nil {
		lines = append(lines, claim.AtMost("packets per send, mean", *segments, "", s.mostPerSend()))
	}
	return append(lines, validity("", runs...)...), nil
}
