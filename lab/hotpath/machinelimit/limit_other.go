//go:build !linux

package machinelimit

import (
	"errors"
	"time"
)

// bench is not implemented: the measurement needs segmented sends.
type bench struct{}

func newBench() (*bench, error) { return nil, errors.ErrUnsupported }

func (*bench) close() {}

func (*bench) sealSegmented() (time.Duration, int, error) { return 0, 0, errors.ErrUnsupported }
func (*bench) plainSend() (time.Duration, int, error)     { return 0, 0, errors.ErrUnsupported }
func (*bench) receive() (time.Duration, int, error)       { return 0, 0, errors.ErrUnsupported }
func (*bench) coalesced() (time.Duration, int, error)     { return 0, 0, errors.ErrUnsupported }
