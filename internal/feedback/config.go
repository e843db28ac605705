package feedback

import "time"

// Config tunes feedback.
type Config struct {
	NACK    NACKConfig    `yaml:"nack" help:"requests for lost packets"`
	History HistoryConfig `yaml:"history" help:"packets kept by a publisher for retransmission"`
}

// NACKConfig tunes the requests for lost packets of one received stream.
type NACKConfig struct {
	ReorderPackets int           `yaml:"reorder_packets" help:"later packets after which a missing one is asked for"`
	ReorderWait    time.Duration `yaml:"reorder_wait" help:"time after which a missing packet is asked for, however few came later"`
	TailWait       time.Duration `yaml:"tail_wait" help:"silence after which the missing end of a frame is asked for"`
	UnknownRTT     time.Duration `yaml:"unknown_rtt" help:"round-trip time assumed until it is known"`
	Deadline       time.Duration `yaml:"deadline" help:"time after which a missing packet is given up"`
	LongRTT        time.Duration `yaml:"long_rtt" help:"round-trip time above which the long deadline holds"`
	LongDeadline   time.Duration `yaml:"long_deadline" help:"time after which a missing packet is given up on paths with a long round trip"`
	MaxTries       int           `yaml:"max_tries" help:"requests for one packet"`
	MaxMissing     int           `yaml:"max_missing" help:"missing packets remembered per stream"`
}

// HistoryConfig limits the packets that a publisher keeps of one track.
type HistoryConfig struct {
	MaxAge   time.Duration `yaml:"max_age" help:"time that a sent packet is kept for retransmission"`
	MaxBytes int           `yaml:"max_bytes" help:"bytes of sent packets kept per track for retransmission"`
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
	}
}
