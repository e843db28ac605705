package gcc

import (
	"cmp"
	"slices"
	"time"

	"github.com/pion/logging"
)

// pionHistory is the number of packets in Pion's send history.
const pionHistory = 250

// Stepped is the estimator of this package in virtual time, without sockets and goroutines: the same parts, called in
// the goroutine of Acknowledge. The two goroutines of the original, which run at the same time, take turns with each
// packet. Stepped belongs to one goroutine.
type Stepped struct {
	now     time.Time
	loss    *lossBasedBandwidthEstimator
	control *rateController
	groups  *arrivalGroupAccumulator
	slope   *slopeEstimator
	rate    *rateCalculator
	history int64
	newest  int64
	target  int
}

// NewStepped returns an estimator with a start rate and bounds in bit/s. With corrected it has the corrections of this
// package, without it is Pion's estimator as published.
func NewStepped(start, least, most int, corrected bool, now time.Time) *Stepped {
	s := &Stepped{now: now, history: historySize, newest: -1, target: start}
	clock := func() time.Time { return s.now }
	s.loss = newLossBasedBWE(clock, start, silentLoggers())
	s.control = newRateController(clock, start, least, most, func(d DelayStats) {
		s.target = min(d.TargetBitrate, s.loss.getEstimate(d.TargetBitrate).TargetBitrate)
	})
	detector := newOveruseDetector(clock, newAdaptiveThreshold(clock), 10*time.Millisecond, s.control.onDelayStats)
	s.slope = newSlopeEstimator(newKalman(), detector.onDelayStats)
	s.groups = newArrivalGroupAccumulator()
	s.rate = newRateCalculator(500 * time.Millisecond)
	if !corrected {
		s.groups.longest, s.history = 0, pionHistory
	}
	return s
}

// silentLoggers returns a factory of loggers that write errors only.
func silentLoggers() logging.LoggerFactory {
	factory := logging.NewDefaultLoggerFactory()
	factory.DefaultLogLevel = logging.LogLevelError
	return factory
}

// Sent records the number of a packet that leaves; numbers increase by 1.
func (s *Stepped) Sent(number int64) { s.newest = number }

// Numbered is the acknowledgement of a packet with its number.
type Numbered struct {
	Number int64
	Acknowledgment
}

// Acknowledge processes the acknowledgements of one report, and may sort them. Packets that have left the send history
// are ignored. The arrival of a lost packet is zero.
func (s *Stepped) Acknowledge(acks []Numbered, now time.Time) {
	s.now = now
	acks = slices.DeleteFunc(acks, func(a Numbered) bool { return a.Number <= s.newest-s.history })
	slices.SortFunc(acks, func(a, b Numbered) int { return cmp.Compare(a.Number, b.Number) })
	var latest time.Time
	known := make([]Acknowledgment, len(acks))
	for i, a := range acks {
		known[i] = a.Acknowledgment
		if a.Arrival.After(latest) {
			latest = a.Arrival
		}
	}
	trip := time.Duration(-1)
	for _, a := range known {
		if a.Arrival.IsZero() {
			continue
		}
		if own := now.Sub(a.Departure) - latest.Sub(a.Arrival); trip < 0 || own < trip {
			trip = own
		}
	}
	if trip >= 0 {
		s.control.updateRTT(trip)
	}
	s.loss.updateLossEstimate(known)
	for _, a := range known {
		s.groups.add(a, s.slope.onArrivalGroup)
		s.rate.add(a, s.control.onReceivedRate)
	}
}

// Target returns the estimate in bit/s.
func (s *Stepped) Target() int { return s.target }
