package congestion

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Bitrate is a rate in bits per second.
type Bitrate = volumetric.Bitrate

// PacketOverhead is the size of a packet on the wire beside its RTP payload, in bytes: 20 of IPv4, 8 of UDP, 12 of RTP,
// 8 of the header extension with the transport-wide number, and 16 of the SRTP tag (AES-GCM, RFC 7714). All rates of
// this package are rates on the wire.
const PacketOverhead = 20 + 8 + 12 + 8 + 16

// ProbeCluster is a short train of packets sent at a rate above the estimate, in order to learn whether the path
// carries that rate.
//
// While a cluster is active, all packets to the receiver are sent at Rate and carry the cluster's ID: media first,
// whatever its pacing would be otherwise, then padding. The cluster ends when both MinBytes and MinPackets have been
// sent.
type ProbeCluster struct {
	ID         int
	Rate       Bitrate
	Duration   time.Duration
	MinBytes   int
	MinPackets int
}

// Usage is the state of the path's queue, derived from packet delays.
type Usage uint8

// The usages of a path.
const (
	// Normal: the queue does not change.
	Normal Usage = iota
	// Overusing: the queue grows or does not empty.
	Overusing
	// Underusing: the queue drains.
	Underusing
)

// String returns the name of the usage.
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

// Stats is the state of an estimator. Counters start with the estimator.
type Stats struct {
	// Estimate is the result of Estimate. DelayBased and LossBased are the two estimates of which it is the minimum,
	// before limits and draining. LossBased is 0 while losses do not limit the estimate.
	Estimate, DelayBased, LossBased Bitrate
	// Acknowledged is the arrival rate over the last 500 ms, 0 while unknown.
	Acknowledged Bitrate
	// Trend is the slope of the queueing delay that the detector compares with Threshold, both in ms as in the draft.
	Trend, Threshold float64
	// Usage is the state of the overuse detector.
	Usage Usage
	// QueueDelay is the minimum queueing delay of the last 100 ms.
	QueueDelay time.Duration
	// RTT is the smoothed round-trip time, queues included, 0 before the first report.
	RTT time.Duration
	// Loss is the share of packets lost over the last seconds, InherentLoss the share that does not depend on the rate,
	// 0 to 1.
	Loss, InherentLoss float64
	// ApplicationLimited reports that the sender uses much less than the estimate: frames may leave as soon as the
	// estimate permits.
	ApplicationLimited bool
	// Evenly reports that frames should be sent evenly, because cross traffic keeps the queue of the path full or the
	// queue is too short for bursts.
	Evenly bool
	// Unmarked reports that the path has not marked packets for a long time although it passes ECT: frames should be
	// sent as slowly as with Evenly until the first mark, but short frames may leave as soon as the estimate permits.
	Unmarked bool
	// Smooth reports that frames should leave one after another at the estimate, because the queue of the path marks
	// packets.
	Smooth bool
	// Spaced reports that packets should leave one by one, because the queue of the path marks the packets of a burst
	// beyond the first.
	Spaced bool
	// Burst is the queue that frames may build on a path with the rate of the estimate, 0 if it is not known that the
	// path admits more than that of smooth frames.
	Burst time.Duration
	// Overuses is the number of times that the path was found overused, Silences the number of reductions because of
	// missing feedback.
	Overuses, Silences uint64
	// Probes is the number of clusters returned by Probe, ProbesMeasured the number of clusters whose arrival rate was
	// measured.
	Probes, ProbesMeasured uint64
	// Window bounds the bytes in flight; 0 means no bound.
	Window int
	// Backlog bounds the bytes that a reliable transport holds until they are acknowledged; 0 means no bound.
	Backlog int
	// ECN is the codepoint with which RTP packets to the receiver leave.
	ECN ecn.Codepoint
	// L4S is the state of L4S. Alpha is the mean share of marked packets while the rate follows marks, 0 to 1.
	L4S   L4SState
	Alpha float64
	// ProbeMarked reports that packets have been marked since the last probe began: the probe ends.
	ProbeMarked bool
	// ECNFallbacks counts the fallbacks of L4S by reason.
	ECNFallbacks [Fallbacks]uint64
	// Received and Lost count packets by their last report, Congested those that arrived with ECN-CE, Capable those
	// with ECT(0) or ECT(1).
	Received, Lost, Congested, Capable uint64
}

// Path returns the input of a pacer.
func (s *Stats) Path() pacing.Path {
	return pacing.Path{Estimate: int64(s.Estimate), Carried: int64(s.DelayBased), Evenly: s.Evenly,
		Unmarked: s.Unmarked, ApplicationLimited: s.ApplicationLimited, Smooth: s.Smooth || s.Burst > 0,
		Spaced: s.Spaced, Burst: uint8(s.Burst / time.Millisecond), Window: s.Window}
}

// countECN counts the codepoint with which a packet arrived.
func (s *Stats) countECN(arrived ecn.Codepoint) {
	switch arrived {
	case ecn.CE:
		s.Congested++
	case ecn.ECT0, ecn.ECT1:
		s.Capable++
	}
}

// Algorithm selects an estimator.
type Algorithm int

const (
	// GCC is Google Congestion Control (draft-ietf-rmcat-gcc-02 with the later changes of libwebrtc), for receivers
	// that report packet arrivals.
	GCC Algorithm = iota
	// Reliable is for a transport that retransmits lost data and reports only acknowledgements.
	Reliable
	// L4S is GCC with the response of Prague to marks, for receivers that report the ECN field of packets (RFC 8888).
	L4S
	// Paper000 is the controller of paper 000, for comparison, for the same receivers.
	Paper000
)

// New returns an estimator for one receiver. The configuration must be valid. Reliable uses only the limits,
// Rate.Backoff, Rate.Headroom, Rate.UnusedShare and the probe intervals.
func New(algorithm Algorithm, cfg Config, now time.Time) Estimator {
	switch algorithm {
	case GCC:
		return newGCC(cfg, now)
	case Reliable:
		return newReliable(cfg, now)
	case L4S:
		return newL4S(cfg, now)
	case Paper000:
		return newPaper000(cfg, now)
	}
	panic(fmt.Sprintf("congestion: unknown algorithm %d", algorithm))
}

// Estimator estimates the bit rate that one receiver can take. It is stepped with now, which never decreases, and
// belongs to the goroutine that steps it.
type Estimator interface {
	// Sent records a packet sent to the receiver, or several packets sent at once, with their size on the wire: at most
	// 65,535 bytes in all. Media, audio, retransmissions and padding count.
	Sent(now time.Time, size int)
	// Report processes a feedback report. The slice is not kept.
	Report(now time.Time, results []feedback.PacketResult)
	// Step advances the time: it detects silences and plans probes.
	Step(now time.Time)
	// Next returns the time of the next Step, or the zero time for never. Every other call may change the result.
	Next() time.Time
	// Estimate returns the rate that may be sent.
	Estimate() Bitrate
	// Probe returns a cluster that is due now, and whether there is one.
	Probe(now time.Time) (ProbeCluster, bool)
	// Want sets the rate that the allocator would send if the receiver could take it. Lower estimates cause probes. The
	// default is Limits.Max.
	Want(now time.Time, rate Bitrate)
	// SetLimits changes the limits of the estimate. Start has an effect only before the first report.
	SetLimits(now time.Time, limits Limits)
	// Stats returns the state for metrics.
	Stats() Stats
}
