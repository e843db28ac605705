package egress

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/switching"
)

// Config is the configuration of the writers of one engine.
type Config struct {
	// Plan determines how frames are spread over time.
	Plan pacing.Plan
	// MaxLag is the age at which a frame that a writer has not begun is dropped. Audio is never dropped by age.
	MaxLag time.Duration
	// QueueBudget is the age at which a frame that waits in a receiver's pacer and has not begun to leave is dropped. 0
	// means one frame interval, or the time over which the plan spreads a frame if that is longer.
	QueueBudget time.Duration
	// LateWindow is how long late packets of the former track reach the slot after a switch.
	LateWindow time.Duration
	// KeyFrameInterval is the interval over which the key frame requests of one receiver are limited.
	KeyFrameInterval time.Duration
	// ReportInterval is the interval of sender reports.
	ReportInterval time.Duration
	// MaxNACKed bounds the sequence numbers of one slot that are looked up per batch of NACKs.
	MaxNACKed int
	// RetransmissionBurst is the number of retransmissions that a receiver may be sent beyond one per media packet.
	RetransmissionBurst int
	// CutAfter is the maximum time that a switch waits for the end of a frame, or for the packets of a silent track.
	CutAfter time.Duration
	// FrameTimes is set if the times of all frames are measured, even if no receiver requests them.
	FrameTimes bool
	NACK       feedback.NACKConfig
	Congestion congestion.Config
}

// DefaultConfig returns the configuration of a server that does not spread frames.
func DefaultConfig() Config {
	return Config{
		MaxLag:              150 * time.Millisecond,
		LateWindow:          500 * time.Millisecond,
		KeyFrameInterval:    500 * time.Millisecond,
		ReportInterval:      time.Second,
		MaxNACKed:           1024,
		RetransmissionBurst: 1200,
		CutAfter:            switching.DefaultCutAfter,
		NACK:                feedback.DefaultConfig().NACK,
		Congestion:          congestion.DefaultConfig(),
	}
}
