//go:build !linux

package hotpath

import (
	"errors"
	"time"
)

// limitBench is not implemented: the measurement needs segmented sends.
type limitBench struct{}

func newLimitBench() (*limitBench, error) { return nil, errors.ErrUnsupported }

func (*limitBench) close() {}

func (*limitBench) sealSegmented() (time.Duration, int, error) { return 0, 0, errors.ErrUnsupported }
func (*limitBench) plainSend() (time.Duration, int, error)     { return 0, 0, errors.ErrUnsupported }
func (*limitBench) receive() (time.Duration, int, error)       { return 0, 0, errors.ErrUnsupported }
func (*limitBench) coalesced() (time.Duration, int, error)     { return 0, 0, errors.ErrUnsupported }
