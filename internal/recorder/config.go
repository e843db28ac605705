package recorder

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/pkg/recording"
)

// ErrConfig is wrapped with the wrong key and the expected value.
var ErrConfig = errors.New("invalid configuration of recordings")

// off is the value of Config.Automatic without automatic recordings.
const off = "off"

// Config configures recordings of rooms.
type Config struct {
	// Guard confines a panic to the recording in which it happened. If Guard is nil, a panic ends the program.
	Guard *panics.Guard `yaml:"-"`

	Directory string `yaml:"directory" help:"folder for recordings of rooms; empty: rooms cannot be recorded"`
	Automatic string `yaml:"automatic" help:"record every room: off, best (best quality of each tile) or all qualities"`
	// MaxBytes: one room has at most half, so that the participants of one room cannot end the recordings of others.
	MaxBytes     int64 `yaml:"max_bytes" help:"bytes of all recordings, half of them for one room; 0: no limit"`
	DeleteOldest bool  `yaml:"delete_oldest" help:"at the limit delete the oldest segments; false: record no more"`

	// SegmentBytes and SegmentTime bound a segment: 256 MB are 10 s at 200 Mbit/s.
	SegmentBytes int64         `yaml:"-"`
	SegmentTime  time.Duration `yaml:"-"`
	// SyncInterval is the interval at which data is flushed to the disk, so that a loss of power loses no more. It is
	// also the longest time for which data stays in the memory of the process.
	SyncInterval time.Duration `yaml:"-"`
	// MinFree is the free space of the file system, in bytes, below which nothing is written.
	MinFree int64 `yaml:"-"`
	// QueueBytes bounds the data of one recording that waits for the disk: 1.3 s at 200 Mbit/s. TotalQueueBytes bounds
	// that of all recordings.
	QueueBytes, TotalQueueBytes int64 `yaml:"-"`
	// RetryInterval is the time after a failure of the disk, or after a limit was reached, until the next attempt.
	RetryInterval time.Duration `yaml:"-"`
	// FrameBytes is the maximum length of a frame.
	FrameBytes int `yaml:"-"`
}

// DefaultConfig returns a configuration without recordings.
func DefaultConfig() Config {
	return Config{
		Automatic:       off,
		SegmentBytes:    256 << 20,
		SegmentTime:     10 * time.Minute,
		SyncInterval:    time.Second,
		MinFree:         1 << 30,
		QueueBytes:      32 << 20,
		TotalQueueBytes: 128 << 20,
		RetryInterval:   5 * time.Second,
		FrameBytes:      16 << 20,
	}
}

// Validate returns an error for the first wrong key. The error begins with the key.
func (c Config) Validate() error {
	expected := []string{off, string(recording.Best), string(recording.All)}
	switch {
	case !slices.Contains(expected, c.Automatic):
		return fmt.Errorf("%w: automatic is %.40q: expected off, best or all", ErrConfig, c.Automatic)
	case c.Automatic != off && c.Directory == "":
		return fmt.Errorf("%w: automatic is %s, but directory is empty: expected a folder", ErrConfig, c.Automatic)
	case c.MaxBytes < 0:
		return fmt.Errorf("%w: max_bytes is %d: expected 0 or more", ErrConfig, c.MaxBytes)
	}
	return nil
}

// roomShare is the inverse of the share of MaxBytes that one room may use.
const roomShare = 2
