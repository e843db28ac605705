package congestion

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Bitrate is a rate in bits per second.
type Bitrate = volumetric.Bitrate

// PacketOverhead is what a packet takes on the wire beside its RTP payload, in bytes: 20 of IPv4, 8 of UDP, 12 of RTP, 8 for the header extension with the
// transport-wide number, and the 16 of SRTP's tag (AES-GCM, RFC 7714). All rates here are of the wire.
const PacketOverhead = 20 + 8 + 12 + 8 + 16

// ProbeCluster is a short train of packets sent at a rate above the estimate, in order to learn whether the path carries it.
//
// While a cluster is under way everything that is sent to the receiver goes out at Rate and bears its ID: media first, whatever else its pacing would be,
// then padding. It ends once both MinBytes and MinPackets have been sent.
type ProbeCluster struct {
	ID         int
	Rate       Bitrate
	Duration   time.Duration
	MinBytes   int
	MinPackets int
}

// Usage is what the delay of packets tells about the path.
type Usage uint8

// The usages of a path.
const (
	// Normal is a path whose queue does not change.
	Normal Usage = iota
	// Overusing is a path whose queue grows, or does not empty.
	Overusing
	// Underusing is a path whose queue empties.
	Underusing
)

// String names the usage.
func (u Usage) String() string {
	switch u {
	case Overusing:
		return "overusing"
	case Underusing:
		return "underusing"
	default:
		return "normal"
	}
}

// Stats tells what an estimator has come to. Counts are since the beginning.
type Stats struct {
	// Estimate is what Estimate returns. DelayBased and LossBased are the two estimates that it is the least of, before limits and draining; LossBased
	// is 0 as long as losses do not limit anything.
	Estimate, DelayBased, LossBased Bitrate
	// Acknowledged is the rate at which packets have arrived over the last half second, 0 while unknown.
	Acknowledged Bitrate
	// Trend is the slope of the queueing delay as the detector compares it with Threshold, both in ms as in the draft.
	Trend, Threshold float64
	// Usage is what the detector says.
	Usage Usage
	// QueueDelay is how long the queue on the path has been at least, throughout the last tenth of a second.
	QueueDelay time.Duration
	// RTT is the smoothed round-trip time, queues included, 0 before the first report.
	RTT time.Duration
	// Loss is the share of packets lost over the last seconds, InherentLoss the share that does not depend on the rate, 0 to 1.
	Loss, InherentLoss float64
	// ApplicationLimited tells that the sender uses much less than the estimate: frames may leave as soon as that carries them.
	ApplicationLimited bool
	// Evenly tells that frames had better leave evenly: others keep the queue of the path full, or it is too short for bursts.
	Evenly bool
	// Overuses is how often the detector found the path overused, Silences how often the rate was reduced because no feedback came.
	Overuses, Silences uint64
	// Probes is the number of clusters handed out, ProbesMeasured the number of those that gave a rate.
	Probes, ProbesMeasured uint64
	// Window is how many bytes may be under way at once, 0 where the estimator does not bound them.
	Window int
	// Received and Lost count packets by what was reported last about them; Congested those that arrived with ECN-CE, Capable those with ECT(0) or ECT(1).
	Received, Lost, Congested, Capable uint64
}

// Path is what a pacer goes by.
func (s *Stats) Path() pacing.Path {
	return pacing.Path{Estimate: int64(s.Estimate), Carried: int64(s.DelayBased), Evenly: s.Evenly, ApplicationLimited: s.ApplicationLimited}
}

// Algorithm is a way to estimate what a receiver can take.
type Algorithm int

const (
	// GCC is Google Congestion Control (draft-ietf-rmcat-gcc-02, and libwebrtc's, which has gone on), for receivers that
	// report the arrival of packets.
	GCC Algorithm = iota
	// Reliable is for a transport that repeats what is lost, of which nothing is known but what it acknowledges.
	Reliable
)

// New makes an estimator for one receiver. The configuration has to be valid. Of Reliable count the limits, Rate.Backoff,
// Rate.Headroom and Rate.UnusedShare, and what says when to probe.
func New(algorithm Algorithm, cfg Config, now time.Time) Estimator {
	switch algorithm {
	case GCC:
		return newGCC(cfg, now)
	case Reliable:
		return newReliable(cfg, now)
	}
	panic(fmt.Sprintf("congestion: unknown algorithm %d", algorithm))
}

// Estimator says how many bits per second one receiver can take. It is stepped with now, which never goes back, and belongs to the goroutine that steps it.
type Estimator interface {
	// Sent takes note of a packet sent to the receiver, with its size on the wire in bytes, or of several sent at once, up to 65,535 bytes in all. Media, audio,
	// retransmissions and padding all count.
	Sent(now time.Time, size int)
	// Report takes a feedback report. The slice is not kept.
	Report(now time.Time, results []feedback.PacketResult)
	// Step lets time pass: silence of the receiver is noticed, and probes are planned.
	Step(now time.Time)
	// Next is when Step is due, the zero time for never. It may move with every other call.
	Next() time.Time
	// Estimate is what may be sent.
	Estimate() Bitrate
	// Probe returns a cluster to send now, and tells whether there is one.
	Probe(now time.Time) (ProbeCluster, bool)
	// Want says what the allocator would send if the receiver could take it. Estimates below it are probed beyond. Without it, Limits.Max is wanted.
	Want(now time.Time, rate Bitrate)
	// SetLimits changes the limits of the estimate. The start rate matters until the first report only.
	SetLimits(now time.Time, limits Limits)
	// Stats is for metrics.
	Stats() Stats
}
