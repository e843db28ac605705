//go:build !linux

package mediasocket

import (
	"errors"
	"syscall"
)

// CountMedia is implemented on Linux only, the system of the published figures.
func CountMedia(syscall.Conn) error { return errors.ErrUnsupported }

// SampleMedia is implemented on Linux only.
func SampleMedia(syscall.Conn) error { return errors.ErrUnsupported }
