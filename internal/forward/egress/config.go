package egress

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/switching"
)

// Config tunes the writers of one engine.
type Config struct {
	// Plan is how frames are spread.
	Plan pacing.Plan
	// MaxLag is the age at which a frame that a writer has not begun yet is dropped. Audio never is.
	MaxLag time.Duration
	// QueueBudget is the age at which a frame that waits for a receiver and has not begun to leave is dropped. 0 is one
	// frame interval, or the time that the plan spreads one over if that is longer.
	QueueBudget time.Duration
	// LateWindow is how long late packets of the former track reach the slot after a switch.
	LateWindow time.Duration
	// KeyFrameInterval is the interval in which the requests of one receiver for key frames are bounded.
	KeyFrameInterval time.Duration
	// ReportInterval is the interval of sender reports.
	ReportInterval time.Duration
	// MaxNACKed bounds the sequence numbers of one slot that are looked up per batch of NACKs.
	MaxNACKed int
	// RetransmissionBurst is the number of retransmissions that a receiver may be sent beyond one per media packet.
	RetransmissionBurst int
	// CutAfter is how long a switch waits for the end of a frame, or for a track that has fallen silent.
	CutAfter time.Duration
	// FrameTimes is set if the times of all frames are measured, also if no receiver asks for them.
	FrameTimes bool
	NACK       feedback.NACKConfig
	Congestion congestion.Config
}

// DefaultConfig is the configuration of a server that does not spread frames.
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
