package forward

import (
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/panics"
)

// ErrConfig is wrapped with the name of the invalid key, its value and the expected value.
var ErrConfig = errors.New("invalid forwarding configuration")

// PanicPlaces are the places that this package passes to Config.Guard.
var PanicPlaces = []string{ingress.Place}

// Config is the configuration of an engine.
type Config struct {
	// Guard confines a panic in a publisher's goroutine to that publisher. Without a guard a panic ends the program.
	Guard *panics.Guard `yaml:"-"`

	Writers int `yaml:"writers" help:"number of goroutines that write to receivers; 0 is one per core"`
	// CacheAge must cover the age of a packet that a receiver still requests by NACK: at most the deadline (250 ms) and
	// one round trip. One second covers round trips of 750 ms.
	CacheAge time.Duration `yaml:"cache_age" help:"time for which packets of a track are kept for retransmission"`
	// TrackCacheBytes must hold one frame: a frame of 16 MiB is 14,665 fragments of about 1,700 bytes of memory each,
	// 25 MB in all.
	TrackCacheBytes int64 `yaml:"-"`
	CacheBytes      int64 `yaml:"cache_bytes" help:"maximum size in bytes of the packet caches of all tracks"`
	// MaxFrameBytes is the maximum length of a frame of payload v1. The server sets it to the size that it announces to
	// clients (rooms.frame_bytes).
	MaxFrameBytes int `yaml:"-"`
	// MaxLag is the age limit of a frame that a writer has not begun. A frame is worth repairing until 150 ms after its
	// first packet. A frame that a writer begins later than MaxLag arrives too late. Audio is never dropped by age.
	MaxLag time.Duration `yaml:"max_lag" help:"age at which a frame that a writer has not begun is dropped; not audio"`
	// Pacing is how frames are spread. spread:0.4 adds 13 ms at 30 frames/s to a frame that arrives at once, and less
	// if the receiver is sent much less than its estimate. spread:20ms adds 20 ms. burst5ms sends every 5 ms at 2.5
	// times the estimate, as GCC does. off adds no delay.
	Pacing pacing.Mode `yaml:"pacing" help:"how frames are spread: spread:PART, spread:DURATION, burst5ms or off"`
	// QueueBudget is the age limit of a frame that waits in a receiver's pacer and has not begun to leave. The default
	// 0 means one frame interval, or the time over which pacing spreads a frame if that is longer: after one interval
	// the next frame is available and newer.
	QueueBudget time.Duration `yaml:"queue_budget" help:"age at which a waiting frame is dropped; 0 is one interval"`
	// LateWindow is how long after a switch late packets of the former track still reach the slot: the deadline of
	// frames (250 ms if the round trip is long) plus the round trip of a repair.
	LateWindow time.Duration `yaml:"-"`
	// KeyFrameInterval is the minimum time between two key frame requests for one track.
	KeyFrameInterval time.Duration `yaml:"-"`
	// ReportInterval is the interval of RTCP sender and receiver reports.
	ReportInterval time.Duration `yaml:"-"`
	// MaxNACKed bounds the sequence numbers of one slot that are looked up per batch of NACKs. The excess is ignored. A
	// burst of half a second on one stream at 20 Mbit/s is 1,050 packets.
	MaxNACKed int `yaml:"-"`
	// RetransmissionBurst is the number of retransmissions that a receiver may be sent beyond one per media packet: a
	// burst of 1.4 MB, half a second at 22 Mbit/s.
	RetransmissionBurst int `yaml:"-"`
	// CutAfter is the maximum time that a switch waits for the end of a frame, or for the packets of a silent track.
	CutAfter time.Duration `yaml:"-"`

	// FrameTimes costs 160 ns per frame and receiver, less than 1 % of the cost of forwarding, sealing and sending the
	// packets of the frame.
	FrameTimes bool `yaml:"frame_times" help:"measure the times of all frames, even if no receiver requests them"`

	// NACK configures requests to publishers for lost packets.
	NACK       feedback.NACKConfig `yaml:"-"`
	Congestion congestion.Config   `yaml:"congestion" help:"estimation of the rate that a receiver's path carries"`
}

// DefaultConfig returns the configuration of a server.
func DefaultConfig() Config {
	in, out := ingress.DefaultConfig(), egress.DefaultConfig()
	return Config{
		CacheAge:            time.Second,
		TrackCacheBytes:     32 << 20,
		CacheBytes:          1 << 30,
		MaxFrameBytes:       in.MaxFrameBytes,
		MaxLag:              out.MaxLag,
		Pacing:              pacing.Default,
		LateWindow:          out.LateWindow,
		KeyFrameInterval:    in.KeyFrameInterval,
		ReportInterval:      in.ReportInterval,
		MaxNACKed:           out.MaxNACKed,
		RetransmissionBurst: out.RetransmissionBurst,
		CutAfter:            out.CutAfter,
		NACK:                in.NACK,
		Congestion:          out.Congestion,
	}
}

// Validate returns an error for the first invalid key.
func (c Config) Validate() error {
	if c.Writers < 0 {
		return fmt.Errorf("%w: writers is %d, expected 0 or more", ErrConfig, c.Writers)
	}
	if err := c.Pacing.Validate(); err != nil {
		return fmt.Errorf("%w: pacing: %w", ErrConfig, err)
	}
	if err := c.Congestion.Validate(); err != nil {
		return fmt.Errorf("%w: congestion: %w", ErrConfig, err)
	}
	for _, d := range []struct {
		key   string
		value time.Duration
		least time.Duration
	}{
		{"cache_age", c.CacheAge, time.Millisecond},
		{"max_lag", c.MaxLag, time.Millisecond},
		{"queue_budget", c.QueueBudget, 0},
		{"late_window", c.LateWindow, 0},
		{"key_frame_interval", c.KeyFrameInterval, time.Millisecond},
		{"report_interval", c.ReportInterval, egress.HousekeepingInterval},
		{"cut_after", c.CutAfter, time.Millisecond},
	} {
		if d.value < d.least {
			return fmt.Errorf("%w: %s is %v, expected %v or more", ErrConfig, d.key, d.value, d.least)
		}
	}
	for _, n := range []struct {
		key   string
		value int64
		least int64
	}{
		{"track_cache_bytes", c.TrackCacheBytes, packetlog.BudgetChunk},
		{"cache_bytes", c.CacheBytes, packetlog.BudgetChunk},
		{"max_frame_bytes", int64(c.MaxFrameBytes), 1},
		{"max_nacked", int64(c.MaxNACKed), 0},
		{"retransmission_burst", int64(c.RetransmissionBurst), 0},
	} {
		if n.value < n.least {
			return fmt.Errorf("%w: %s is %d, expected %d or more", ErrConfig, n.key, n.value, n.least)
		}
	}
	return nil
}

// ingress returns the configuration of the ingresses.
func (c *Config) ingress(plan pacing.Plan) ingress.Config {
	return ingress.Config{
		Guard: c.Guard, Plan: plan, MaxFrameBytes: c.MaxFrameBytes, KeyFrameInterval: c.KeyFrameInterval,
		ReportInterval: c.ReportInterval, NACK: c.NACK,
	}
}

// egress returns the configuration of the writers.
func (c *Config) egress(plan pacing.Plan) egress.Config {
	return egress.Config{
		Plan: plan, MaxLag: c.MaxLag, QueueBudget: c.QueueBudget, LateWindow: c.LateWindow,
		KeyFrameInterval: c.KeyFrameInterval, ReportInterval: c.ReportInterval, MaxNACKed: c.MaxNACKed,
		RetransmissionBurst: c.RetransmissionBurst, CutAfter: c.CutAfter, FrameTimes: c.FrameTimes, NACK: c.NACK,
		Congestion: c.Congestion,
	}
}
