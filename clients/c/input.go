//go:build cgo

package main

// #include "boundary.h"
import "C"

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/volsfu/volsfu/clients/c/internal/guest"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// These are limits in bytes for reading C's memory before its content is known.
const (
	maxText = 1 << 10
	maxURL  = 1 << 13
	// maxJSON is above the limit of the server.
	maxJSON = 1 << 17
)

// given rejects a NULL pointer.
func given[T any](what string, pointer *T) error {
	if pointer == nil {
		return fmt.Errorf("%s: %w", what, errNull)
	}
	return nil
}

// sized rejects a struct that is NULL, or that has a size other than this library's.
func sized[T any](what string, pointer *T, size func(*T) C.uint32_t) error {
	if err := given(what, pointer); err != nil {
		return err
	}
	if got, want := uintptr(size(pointer)), unsafe.Sizeof(*pointer); got != want {
		return fmt.Errorf("%s: %w: %d bytes, expected %d", what, errSize, got, want)
	}
	return nil
}

// wipe zeroes a C struct before Go writes pointers to it: its old content may look like Go pointers
// to the garbage collector.
func wipe[T any](pointer *T) {
	clear(unsafe.Slice((*byte)(unsafe.Pointer(pointer)), unsafe.Sizeof(*pointer)))
}

// text copies a text with a limit in bytes. NULL is empty.
func text(what string, pointer *C.char, most int) (string, error) {
	if pointer == nil {
		return "", nil
	}
	for length := range most + 1 {
		if *(*byte)(unsafe.Add(unsafe.Pointer(pointer), length)) == 0 {
			return string(unsafe.Slice((*byte)(unsafe.Pointer(pointer)), length)), nil
		}
	}
	return "", fmt.Errorf("%w: %s does not end within %d bytes", guest.ErrArgument, what, most)
}

// list returns a C array with a limit of elements. list remains in C's memory.
func list[T any](what string, pointer *T, count uint64, most int) ([]T, error) {
	if count == 0 {
		return nil, nil
	}
	if err := given(what, pointer); err != nil {
		return nil, err
	}
	if count > uint64(most) {
		return nil, fmt.Errorf("%w: %d %s, expected at most %d", guest.ErrArgument, count, what, most)
	}
	return unsafe.Slice(pointer, int(count)), nil
}

// latest is the last representable time of a frame: seconds since 1900 wrap around twice until
// then.
const latest = 4_200_000_000_000_000

// moment converts microseconds since 1970 to a time; 0 is the zero time, which means now.
func moment(what string, us C.int64_t) (time.Time, error) {
	switch {
	case us == 0:
		return time.Time{}, nil
	case us < 0 || us > latest:
		return time.Time{}, fmt.Errorf(
			"%w: %s is %d µs, expected 0 to %d",
			guest.ErrArgument,
			what,
			int64(us),
			int64(latest),
		)
	}
	return time.UnixMicro(int64(us)), nil
}

// patience converts a timeout in milliseconds to the form of the guests.
func patience(ms C.int32_t) (time.Duration, error) {
	if ms < C.VOLSFU_FOREVER {
		return 0, fmt.Errorf(
			"%w: timeout is %d ms, expected 0 or more, or VOLSFU_FOREVER",
			guest.ErrArgument,
			int32(ms),
		)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func vector(v [3]C.double) [3]float64 { return [3]float64{float64(v[0]), float64(v[1]), float64(v[2])} }

func quaternion(q [4]C.double) [4]float64 {
	return [4]float64{float64(q[0]), float64(q[1]), float64(q[2]), float64(q[3])}
}

func box(b C.volsfu_box) volumetric.BoundingBox {
	var read volumetric.BoundingBox
	for axis := range read.Min {
		read.Min[axis], read.Max[axis] = float32(b.min[axis]), float32(b.max[axis])
	}
	return read
}
