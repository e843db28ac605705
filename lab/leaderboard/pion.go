package leaderboard

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/lab/baseline/rtc/gcc"
	"github.com/volsfu/volsfu/lab/control"
)

// pion is Pion's estimator.
type pion struct {
	base
	estimator *gcc.Stepped
	acks      []gcc.Numbered
}

// newPion returns Pion's estimator, with the corrections of package gcc or as published.
func newPion(corrected bool) func(control.EstimatorStart) congestion.Estimator {
	return func(s control.EstimatorStart) congestion.Estimator {
		l := s.Limits
		return &pion{base: base{limits: l},
			estimator: gcc.NewStepped(int(l.Start), int(l.Min), int(l.Max), corrected, s.Now)}
	}
}

// SentPacket implements control.PacketCounter.
func (p *pion) SentPacket(number int64) { p.estimator.Sent(number) }

// Report implements congestion.Estimator.
func (p *pion) Report(now time.Time, results []feedback.PacketResult) {
	p.report(now, results)
	p.acks = p.acks[:0]
	for i := range results {
		r := &results[i]
		a := gcc.Numbered{Number: r.Sequence, Acknowledgment: gcc.Acknowledgment{
			SequenceNumber: uint16(r.Sequence), Size: r.Size, Departure: r.Sent,
		}}
		if r.Received {
			a.Arrival = clockOrigin.Add(r.Arrived)
		}
		p.acks = append(p.acks, a)
	}
	p.estimator.Acknowledge(p.acks, now)
}

// clockOrigin is the beginning of the receivers' clocks; only differences of arrival times have a meaning.
var clockOrigin = time.Unix(1<<30, 0)

// Estimate implements congestion.Estimator.
func (p *pion) Estimate() congestion.Bitrate { return p.Stats().Estimate }

// Stats implements congestion.Estimator.
func (p *pion) Stats() congestion.Stats { return p.stats(float64(p.estimator.Target())) }
