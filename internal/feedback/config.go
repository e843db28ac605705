package feedback

import "time"

// Config is the configuration of feedback.
type Config struct {
	// NACK configures requests for lost packets.
	NACK NACKConfig
	// History configures the packets that a publisher keeps for retransmission.
	History HistoryConfig

	// Transport configures reports of arrivals for the sender's congestion control.
	Transport TransportFeedbackConfig
}

// NACKConfig configures the requests for lost packets of one received stream.
type NACKConfig struct {
	// ReorderPackets is the number of later packets after which a missing packet is requested.
	ReorderPackets int
	// ReorderWait is the time after which a missing packet is requested, even without enough later packets.
	ReorderWait time.Duration
	// TailWait is the silence after which the missing end of a frame is requested.
	TailWait time.Duration
	// UnknownRTT is the round-trip time before the first measurement.
	UnknownRTT time.Duration
	// Deadline is the time after which a missing packet is given up.
	Deadline time.Duration
	// LongDeadline replaces Deadline if the round-trip time exceeds LongRTT.
	LongRTT      time.Duration
	LongDeadline time.Duration
	// QuickTries is the number of requests for one packet after which the time between requests doubles each time.
	QuickTries int
	// OncePerTrip makes each repeat wait for a round trip and a margin, as the first repeat does. Few packets are then
	// requested needlessly. It is for paths between servers, whose round trip is short against the deadline.
	OncePerTrip bool
	// MaxMissing bounds the missing packets remembered per stream.
	MaxMissing int
}

// HistoryConfig limits the packets that a publisher keeps of one track.
type HistoryConfig struct {
	// MaxAge is the time for which a sent packet is kept for retransmission.
	MaxAge time.Duration
	// MaxBytes is the number of bytes of sent packets kept per track for retransmission.
	MaxBytes int
}

// TransportFeedbackConfig configures the reports of a TransportRecorder or a CongestionRecorder.
type TransportFeedbackConfig struct {
	// IntervalMin is the shortest time between two reports at common rates.
	IntervalMin time.Duration
	// IntervalMax is the longest time between two reports while packets arrive.
	IntervalMax time.Duration
	// IntervalFast is the time between two reports at FastRateBPS and above.
	IntervalFast time.Duration
	// FastRateBPS is the received bit rate above which reports are sent every IntervalFast.
	FastRateBPS int
	// MarkedInterval is the shortest time between a report about a packet with ECN-CE and the report before it.
	MarkedInterval time.Duration
	// Share is the share of the received rate that reports may use if they are sent more often than every IntervalMax,
	// 0 to 1. FastShare applies to reports about packets with ECN-CE at FastRateBPS and above.
	Share, FastShare float64
	// MaxBytes is the size of the largest RTCP compound of reports, before encryption; at least 64.
	MaxBytes int
}

// maxLate bounds the lateness that counts as a queue: a later packet met a stalled path, not a queue.
const maxLate = 250 * time.Millisecond

// queued returns the part of a lateness that counts as a queue.
func (c *NACKConfig) queued(late time.Duration) time.Duration {
	if late <= c.LongRTT {
		return 0
	}
	return min(late, maxLate)
}

// Repair returns the time that a repair takes, and the time after its first packet for which a frame is worth
// repairing: Deadline, or LongDeadline if a single repair takes longer than LongRTT. late is the lateness of packets
// relative to the earliest ones, that is a queue on the path. A repair waits in the same queue, and so does everything
// after it: both results increase by the queue.
func (c *NACKConfig) Repair(rtt, late time.Duration) (trip, deadline time.Duration) {
	late = c.queued(late)
	switch {
	case late > 0:
		return rtt + late, c.LongDeadline + late
	case rtt > c.LongRTT:
		return rtt, c.LongDeadline
	default:
		return rtt, c.Deadline
	}
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	return Config{
		NACK: NACKConfig{
			// Three later packets are TCP's sign of loss (RFC 5681 section 3.2). Within a frame they arrive in a
			// fraction of a millisecond.
			ReorderPackets: 3,
			ReorderWait:    10 * time.Millisecond,
			TailWait:       10 * time.Millisecond,
			UnknownRTT:     30 * time.Millisecond,
			// A frame is worth repairing for this time after its first packet.
			Deadline:     150 * time.Millisecond,
			LongRTT:      50 * time.Millisecond,
			LongDeadline: 250 * time.Millisecond,
			// NACKGenerator has the arithmetic.
			QuickTries: 8,
			// The largest frames have 7,000 to 14,700 packets.
			MaxMissing: 1 << 14,
		},
		History: HistoryConfig{
			// Four times the longest deadline.
			MaxAge: time.Second,
			// One second at 250 Mbit/s.
			MaxBytes: 32 << 20,
		},
		Transport: TransportFeedbackConfig{
			// Bounds and share are those of libwebrtc, for whose estimator they were chosen. A report of few packets
			// takes 88 bytes on the wire (see reportOverhead): 5 % of the rate permit one every 250 ms at 56 kbit/s,
			// and one every 50 ms at 282 kbit/s.
			IntervalMin: 50 * time.Millisecond,
			IntervalMax: 250 * time.Millisecond,
			Share:       0.05,
			// At 20 Mbit/s 25 ms are 52 packets of 1,200 bytes. Their report takes 88 + 1.15 × 52 = 148 bytes, 47
			// kbit/s or 0.24 % of the rate, and the share decreases at higher rates. A frame interval at 30 Hz has more
			// than one report, so that a queue is reported before the next frame. Both steps are gradual: a report is
			// sent when the received bytes permit (88 bytes / 5 %), or when 25 ms at 20 Mbit/s (62.5 kB) have been
			// received.
			IntervalFast: 25 * time.Millisecond,
			FastRateBPS:  20_000_000,
			// A report leaves within 5 ms of a mark: 4 ms, and 1 ms by which a timer may be late. If all packets of
			// 1,200 bytes are marked, a report takes 88 bytes on the wire, and 2 for each packet. 1 % of the rate
			// permits one every 4.2 ms at 20 Mbit/s; at 100 Mbit/s one every 4 ms takes 0.35 %. 5 % permit one every 4
			// ms from 3.7 Mbit/s on, and every 7.3 ms at 2 Mbit/s.
			MarkedInterval: 4 * time.Millisecond,
			FastShare:      0.01,
			// MaxCompound less a receiver report of three blocks, 80 bytes. Encrypted and with IPv6 and UDP: 1,168.
			MaxBytes: 1100,
		},
	}
}
