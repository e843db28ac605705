package feedback

import "time"

// Config tunes feedback.
type Config struct {
	// NACK: requests for lost packets.
	NACK NACKConfig
	// History: packets kept by a publisher for retransmission.
	History HistoryConfig

	// Transport: reports of arrivals for the sender's congestion control.
	Transport TransportFeedbackConfig
}

// NACKConfig tunes the requests for lost packets of one received stream.
type NACKConfig struct {
	// ReorderPackets is the number of later packets after which a missing packet is requested.
	ReorderPackets int `yaml:"-"`
	// ReorderWait is the time after which a missing packet is requested, however few packets came later.
	ReorderWait time.Duration `yaml:"-"`
	// TailWait is the silence after which the missing end of a frame is requested.
	TailWait time.Duration `yaml:"-"`
	// UnknownRTT is the round-trip time assumed until it has been measured.
	UnknownRTT time.Duration `yaml:"-"`
	Deadline   time.Duration `yaml:"deadline" help:"time after which a missing packet is given up"`
	// LongRTT is the round-trip time above which LongDeadline holds.
	LongRTT      time.Duration `yaml:"-"`
	LongDeadline time.Duration `yaml:"long_deadline" help:"time after which a missing packet is given up on paths with a long round trip"`
	// MaxTries bounds the requests for one packet.
	MaxTries int `yaml:"-"`
	// MaxMissing bounds the missing packets remembered per stream.
	MaxMissing int `yaml:"-"`
}

// HistoryConfig limits the packets that a publisher keeps of one track.
type HistoryConfig struct {
	// MaxAge: time that a sent packet is kept for retransmission.
	MaxAge time.Duration
	// MaxBytes: bytes of sent packets kept per track for retransmission.
	MaxBytes int
}

// TransportFeedbackConfig tunes the reports of a TransportRecorder.
type TransportFeedbackConfig struct {
	// IntervalMin: shortest time between two reports at common rates.
	IntervalMin time.Duration
	// IntervalMax: longest time between two reports while packets arrive.
	IntervalMax time.Duration
	// IntervalFast: time between two reports from fast_rate_bps on.
	IntervalFast time.Duration
	// FastRateBPS: received bit/s from which reports follow each other at interval_fast.
	FastRateBPS int
	// Share: what reports may take of the received rate between interval_min and interval_max, 0 to 1.
	Share float64
	// MaxBytes: bytes of the largest RTCP compound of reports, before encryption; at least 64.
	MaxBytes int
}

// maxLate bounds what is waited for a queue: what is later waits for no queue, but for a path that has stalled.
const maxLate = 250 * time.Millisecond

// queued is what of a lateness counts as a queue.
func (c *NACKConfig) queued(late time.Duration) time.Duration {
	if late <= c.LongRTT {
		return 0
	}
	return min(late, maxLate)
}

// Repair returns how long a repair takes, and how long after its first packet a frame is worth repairing: Deadline, or LongDeadline where a single repair takes more
// than LongRTT. Packets that come late by that, compared to others, have waited in a queue that has built up. A repair stands behind it in the same queue, and
// everything that follows does, too: the deadline is later by as much.
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

// DefaultConfig returns the default settings.
func DefaultConfig() Config {
	return Config{
		NACK: NACKConfig{
			// Three later packets are TCP's sign of loss (RFC 5681 section 3.2). Within a frame they come in a fraction of a millisecond.
			ReorderPackets: 3,
			ReorderWait:    10 * time.Millisecond,
			TailWait:       10 * time.Millisecond,
			UnknownRTT:     30 * time.Millisecond,
			// A frame is worth repairing so long after its first packet.
			Deadline:     150 * time.Millisecond,
			LongRTT:      50 * time.Millisecond,
			LongDeadline: 250 * time.Millisecond,
			// The arithmetic stands beside NACKGenerator.
			MaxTries: 8,
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
			// Bounds and share are those of libwebrtc, whose estimator they were tuned for. A report of few packets takes 88 bytes on the wire (see
			// reportOverhead): 5 % of the rate pay for one every 250 ms at 56 kbit/s, and for one every 50 ms at 282 kbit/s.
			IntervalMin: 50 * time.Millisecond,
			IntervalMax: 250 * time.Millisecond,
			Share:       0.05,
			// At 20 Mbit/s 25 ms are 52 packets of 1,200 bytes. Their report takes 88 + 1.15 × 52 = 148 bytes, 47 kbit/s or 0.24 % of the rate, and
			// the share falls further above. A frame interval at 30 Hz has more than one report, so that a queue shows before the next frame. Both
			// steps slide: a report leaves once what came pays for it (88 bytes / 5 %), or once 25 ms at 20 Mbit/s (62.5 kB) have come.
			IntervalFast: 25 * time.Millisecond,
			FastRateBPS:  20_000_000,
			// MaxCompound without a receiver report of three blocks, 80 bytes. Encrypted and with IPv6 and UDP: 1,168.
			MaxBytes: 1100,
		},
	}
}
