package control

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/netem"
)

// ErrCase reports an invalid case or an invalid option of a case. The wrapping error names the expected value.
var ErrCase = errors.New("invalid case")

// Options configure the run of a case.
type Options struct {
	// RTT is the round trip of the empty path; 0 selects the case's default.
	RTT time.Duration
	// Duration is the length of the run; 0 selects the case's default.
	Duration time.Duration
	// Seed seeds frame sizes and losses.
	Seed uint64
	// Queue is the queue of the bottleneck: fifo:MS, codel, fq, dualpi2 or paper000. Empty selects the case's default.
	Queue string
	// Pacing is the pacer's mode.
	Pacing pacing.Mode
	// Estimator configures the estimator. An empty profile selects the case's default.
	Estimator congestion.Config
	// Feedback is the format of the receivers' arrival reports. Empty selects FeedbackTransport with
	// congestion.ControllerGCC, and FeedbackCCFB with other controllers, which need the codepoints of packets.
	Feedback Feedback
	// RivalRTT is the round trip of the empty path of competitors; 0 selects RTT. Both paths have the same delay before
	// the receivers, half of the shorter round trip.
	RivalRTT time.Duration
	// Joins selects who joins after some seconds beside competitors: JoinReceiver or JoinRivals. Empty selects
	// JoinRivals with the queue of paper 000, as in its section 4.1, and else JoinReceiver.
	Joins string
	// CubicECN makes competing Cubic flows use classic ECN (RFC 3168).
	CubicECN bool
	// Audio is set if the server also sends audio to receivers.
	Audio bool
	// NoRTX is set if receivers do not accept RTX, and therefore neither retransmissions nor padding.
	NoRTX bool
	// Trace, if set, is the rate of the link in the case trace without a file.
	Trace *netem.RateTrace
	// NewEstimator, if set, returns the estimator of a receiver in virtual time, in place of the one that Estimator
	// selects.
	NewEstimator func(start EstimatorStart) congestion.Estimator
	// Packets, if set, is called for each packet that leaves the queue of a bottleneck or is dropped there, in virtual
	// time.
	Packets func(p PacketFate)
	// LinkBPS is the rate of the bottleneck in cases without a rate of their own, in bit/s; 0 selects the case's
	// default.
	LinkBPS int64
}

// EstimatorStart describes a receiver to Options.NewEstimator.
type EstimatorStart struct {
	Limits congestion.Limits
	Now    time.Time
	// RTT is the round trip of the empty path, and Rate the rate of its bottleneck at a time, in bit/s, for estimators
	// that know the path.
	RTT  time.Duration
	Rate func(now time.Time) float64
}

// PacketCounter is an estimator that is told the number of each packet that leaves, as in feedback.PacketResult.
type PacketCounter interface{ SentPacket(number int64) }

// PacketFate is the fate of a packet at the queue of a bottleneck.
type PacketFate struct {
	// Flow is the number of the receiver, from 1 on; competitors follow.
	Flow uint64
	Size int
	// Arrived is when the packet arrived at the queue, and Waited how long it waited there. A packet with Dropped set
	// was dropped, and Waited is 0.
	Arrived, Waited time.Duration
	Dropped         bool
}

// The values of Options.Joins: the receiver joins the competitors, or the competitors join the receiver.
const (
	JoinReceiver = "receiver"
	JoinRivals   = "rivals"
)

// DefaultOptions returns the defaults of the command.
func DefaultOptions() Options {
	cfg := congestion.DefaultConfig()
	cfg.Profile = ""
	return Options{Seed: 1, Pacing: pacing.Default, Estimator: cfg}
}

// completeFeedback applies the default format of reports, and validates the format.
func (o *Options) completeFeedback() error {
	switch {
	case o.Feedback == "" && o.Estimator.Controller == congestion.ControllerGCC:
		o.Feedback = FeedbackTransport
	case o.Feedback == "":
		o.Feedback = FeedbackCCFB
	case o.Feedback != FeedbackTransport && o.Feedback != FeedbackCCFB:
		return fmt.Errorf("%w: feedback %q, expected %s or %s", ErrCase, o.Feedback, FeedbackTransport, FeedbackCCFB)
	}
	return nil
}

// scenario is a case with all options resolved.
type scenario struct {
	name      string
	options   Options
	trace     netem.RateTrace
	loss      float64 // in each direction
	receivers int
	begin     time.Duration // when the receivers begin
	least     time.Duration // minimum length of the case
	cubics    int           // number of competing Cubic flows
	pragues   int           // number of competing Prague flows
	rivals    time.Duration // when the competitors begin
	target    float64       // rate to be reached, in bit/s
	measured  time.Duration // time from which rates count
	fall      time.Duration // when the link's rate falls, 0 for never
	rise      time.Duration // when the link's rate is restored, 0 for never
	cliff     bool          // the rate falls within cliffTime, to a fifth
	uplink    bool          // the bottleneck is the publisher's uplink, not the receivers' downlink
	bleach    string        // treatment of the ECN field from bleachAt on, empty for none
	// participants is the number of participants of a room, 0 for other cases. The receivers are then the server on
	// each participant's uplink, and after them the participants on their downlinks.
	participants int
	// discipline is the queue of the bottleneck.
	discipline discipline
	// The following are of the cases of RFC 8867. starts and trips have the begin and the round trip of each receiver,
	// if set. Reports of the first receiver share the bottleneck of the second, whose rate is backward, and the
	// reverse.
	// The first receiver has no media from pause to resume. shorts is the number of competitors with short transfers.
	starts, trips []time.Duration
	backward      netem.RateTrace
	pause, resume time.Duration
	shorts        int
}

const (
	// warmUp is the time left out of utilisation.
	warmUp = 10 * time.Second
	// besideBegin is when a receiver joins Prague flows, which have the rate of a long transfer by then, or when
	// competitors join a receiver (paper 000, section 4.1).
	besideBegin = 5 * time.Second
	// cliffTime is the time in which the rate falls, cliffSteps the number of equal steps, and cliffFactor the factor.
	cliffTime, cliffSteps, cliffFactor = 50 * time.Millisecond, 10, 5
	// bleachAt is when a treatment of the ECN field begins, and bleachSettling the time after which rates count again.
	bleachAt, bleachSettling = 10 * time.Second, 5 * time.Second
	// roomLeast is the shortest run of a room. A Prague flow joins the first participant's uplink at half of the run.
	roomLeast = 17 * time.Second
)

// bleachKinds are the treatments of the case bleach.
var bleachKinds = []string{netem.ECNClear, netem.ECNECT0, netem.ECNMark, netem.ECNDrop}

// newScenario parses a case, NAME or NAME:PARAMETER.
func newScenario(text string, o Options) (*scenario, error) {
	s := &scenario{name: text, options: o, receivers: 1, measured: warmUp}
	name, parameter, _ := strings.Cut(text, ":")
	d := defaults{rtt: 20 * time.Millisecond, queue: "fifo:50", profile: "default", link: 100e6,
		duration: 30 * time.Second}
	var err error
	switch name {
	case "steady":
		d.link, err = number(text, parameter, 0.5, 1000)
		d.link *= 1e6
		s.options.LinkBPS = 0
	case "uplink":
		d.link, err = number(text, parameter, 0.5, 1000)
		d.link *= 1e6
		s.options.LinkBPS, s.uplink, d.queue = 0, true, netem.QueueDualPI2
	case "ramp":
		d.profile, d.duration, s.target = "paper000", 15*time.Second, 90e6
	case "drop":
		d.duration, s.fall, s.rise = 40*time.Second, 15*time.Second, 25*time.Second
		s.least = s.rise + time.Second
	case "cliff":
		d.queue, s.fall, s.cliff = "dualpi2", 15*time.Second, true
		s.least = s.fall + time.Second
	case "trace":
		if o.Trace != nil && parameter == "" {
			s.trace = *o.Trace
		} else {
			s.trace, err = readTrace(parameter)
		}
		d.duration = s.trace.Duration
	case "cubic":
		s.cubics, err = count(text, parameter, 1, 100)
		d.link, d.queue, d.duration = 200e6, "fq", 50*time.Second
		// A cycle of Cubic is ten seconds long; the seed selects the phase at which the receiver joins.
		s.begin = 10*time.Second + time.Duration(o.Seed%rampRuns)*10*time.Second/rampRuns
	case "prague":
		s.pragues, err = count(text, parameter, 1, 100)
		d.queue = netem.QueueDualPI2
		if o.Queue == netem.QueuePaper000 {
			d.link = 200e6 // of paper 000
		}
		s.begin = besideBegin
	case "room":
		s.participants, err = count(text, parameter, 2, 10)
		s.receivers, s.pragues = 2*s.participants, 1
		d.queue, s.least = netem.QueueDualPI2, roomLeast
	case "bleach":
		s.bleach, err = kind(text, parameter)
		d.queue, s.least = netem.QueueDualPI2, bleachAt+2*time.Second
		s.measured = bleachAt + bleachSettling
	case "fair":
		s.receivers, err = count(text, parameter, 2, 20)
		d.link, d.duration = 50e6, 60*time.Second
	case "rfc8867":
		err = s.evaluation(text, parameter, &d)
	case "loss":
		s.loss, err = number(text, parameter, 0, 50)
		s.loss /= 100
	default:
		return nil, fmt.Errorf("%w: %q, expected steady:MBPS, uplink:MBPS, ramp, drop, cliff, trace:FILE, cubic:N, "+
			"prague:N, fair:N, room:N, loss:PERCENT, bleach:KIND or rfc8867:SECTION",
			ErrCase, text)
	}
	if err != nil {
		return nil, err
	}
	if err := s.order(&d); err != nil {
		return nil, err
	}
	return s, s.complete(d)
}

// order decides who joins after some seconds in a case in which the receiver joins competitors or the reverse. The
// bounds of the estimate beside competitors in the queue of paper 000 are those of the paper.
func (s *scenario) order(d *defaults) error {
	joins, paper := s.options.Joins, s.options.Queue == netem.QueuePaper000
	if joins != "" && joins != JoinReceiver && joins != JoinRivals {
		return fmt.Errorf("%w: %q joins, expected %s or %s", ErrCase, joins, JoinReceiver, JoinRivals)
	}
	if s.begin == 0 {
		return nil
	}
	if paper {
		d.profile = "paper000"
	}
	if joins == JoinRivals || joins == "" && paper {
		s.begin, s.rivals = 0, besideBegin
	}
	s.measured += max(s.begin, s.rivals)
	return nil
}

// defaults are the settings of a case for options that are not set.
type defaults struct {
	rtt, duration  time.Duration
	queue, profile string
	link           float64
}

// complete applies the case's defaults and validates the options.
func (s *scenario) complete(d defaults) error {
	o := &s.options
	if o.RTT == 0 {
		o.RTT = d.rtt
	}
	if o.RivalRTT == 0 {
		o.RivalRTT = o.RTT
	}
	if o.Duration == 0 {
		o.Duration = d.duration
	}
	if s.participants > 0 {
		s.rivals = o.Duration / 2
	}
	if o.Queue == "" {
		o.Queue = d.queue
	}
	if o.Estimator.Profile == "" {
		o.Estimator.Profile = d.profile
	}
	if o.LinkBPS != 0 {
		d.link = float64(o.LinkBPS)
	}
	if len(s.trace.Steps) == 0 {
		s.trace = s.rate(d.link)
	}
	switch {
	case o.RTT < time.Millisecond || o.RTT > time.Second:
		return fmt.Errorf("%w: a round trip of %v, expected 1 ms to 1 s", ErrCase, o.RTT)
	case o.RivalRTT < time.Millisecond || o.RivalRTT > time.Second:
		return fmt.Errorf("%w: a round trip of %v of competitors, expected 1 ms to 1 s", ErrCase, o.RivalRTT)
	}
	begun := s.begin
	if s.participants == 0 {
		begun = max(begun, s.rivals)
	}
	if least := max(s.least, begun+time.Second); o.Duration < least || o.Duration > time.Hour {
		return fmt.Errorf("%w: %v long, expected %v to 1 h", ErrCase, o.Duration, least)
	}
	// If the run is short, the second half counts.
	s.measured = min(s.measured, begun+(o.Duration-begun)/2)
	if d.link < 1e5 || d.link > 1e10 {
		return fmt.Errorf("%w: a link of %g bit/s, expected 100 kbit/s to 10 Gbit/s", ErrCase, d.link)
	}
	var err error
	if s.discipline, err = parseDiscipline(o.Queue, s.trace.Mean()); err != nil {
		return err
	}
	if err := o.completeFeedback(); err != nil {
		return err
	}
	if err := o.Pacing.Validate(); err != nil {
		return err
	}
	return o.Estimator.Validate()
}

// rate returns the rate of the link over time. bps is the rate before any change.
func (s *scenario) rate(bps float64) netem.RateTrace {
	duration := s.options.Duration
	trace := netem.RateTrace{Steps: []netem.RateStep{{RateBPS: int(bps)}}, Duration: duration}
	switch {
	case s.cliff:
		for i := range cliffSteps {
			lost := (1 - 1.0/cliffFactor) * float64(i+1) / cliffSteps
			trace.Steps = append(trace.Steps, netem.RateStep{At: s.fall + time.Duration(i)*cliffTime/cliffSteps,
				RateBPS: int(bps * (1 - lost))})
		}
		trace.Duration = max(duration, s.fall+time.Second)
	case s.fall > 0:
		trace.Steps = append(trace.Steps, netem.RateStep{At: s.fall, RateBPS: int(bps / 4)},
			netem.RateStep{At: s.rise, RateBPS: int(bps)})
		trace.Duration = max(duration, s.rise+time.Second)
	}
	return trace
}

// hops returns the number of bottlenecks.
func (s *scenario) hops() int {
	switch {
	case s.participants > 0:
		return s.receivers
	case s.bidirectional():
		return 2
	}
	return 1
}

// forth returns the parameters of a bottleneck, without its rate and queue.
func (s *scenario) forth() netem.Config {
	return netem.Config{Delay: min(s.options.RTT, s.options.RivalRTT) / 2, Loss: s.loss}
}

// needsHosts reports whether an end-to-end run of the case needs hosts with real sockets: marks then pass the system's
// network, and the queue is measured by class.
func (s *scenario) needsHosts() bool {
	switch s.discipline.name {
	case netem.QueueCoDel, netem.QueueDualPI2, netem.QueuePaper000:
		return true
	}
	return s.pragues > 0 || s.rivals > 0 || s.cliff || s.bleach != "" || s.uplink || s.options.CubicECN ||
		s.options.RivalRTT != s.options.RTT
}

// kind parses the parameter of bleach.
func kind(text, parameter string) (string, error) {
	if !slices.Contains(bleachKinds, parameter) {
		return "", fmt.Errorf("%w: %q, expected %s after the colon", ErrCase, text, strings.Join(bleachKinds, ", "))
	}
	return parameter, nil
}

// number parses a numeric parameter and checks its bounds.
func number(text, parameter string, least, most float64) (float64, error) {
	v, err := strconv.ParseFloat(parameter, 64)
	if err != nil || !(v >= least && v <= most) {
		return 0, fmt.Errorf("%w: %q, expected a number from %g to %g after the colon", ErrCase, text, least, most)
	}
	return v, nil
}

// count parses a whole-number parameter and checks its bounds.
func count(text, parameter string, least, most int) (int, error) {
	n, err := strconv.Atoi(parameter)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%w: %q, expected a whole number from %d to %d after the colon", ErrCase, text, least,
			most)
	}
	return n, nil
}

// readTrace reads a link's rates from a file.
func readTrace(name string) (netem.RateTrace, error) {
	file, err := os.Open(name)
	if err != nil {
		return netem.RateTrace{}, fmt.Errorf("read a trace: %w", err)
	}
	defer func() { _ = file.Close() }()
	trace, err := netem.ReadRateTrace(file)
	if err != nil {
		return netem.RateTrace{}, fmt.Errorf("%s: %w", name, err)
	}
	// Packets in flight at the end must still arrive, so a trace that ends with an outage is repeated.
	if last := len(trace.Steps) - 1; trace.Steps[last].RateBPS == 0 {
		trace.Loop = true
	}
	return trace, nil
}

// access returns the bottleneck as the access link of a host.
func (s *scenario) access() netem.Config {
	c, forth := netem.DefaultConfig(), s.forth()
	c.Queue, c.QueueBytes, c.QueueDelay = s.discipline.name, s.discipline.bytes, 0
	c.RateBPS, c.Delay, c.Loss = s.trace.RateAt(0), forth.Delay, forth.Loss
	return c
}
