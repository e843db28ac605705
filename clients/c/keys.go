//go:build cgo

package main

// #include "boundary.h"
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/volsfu/volsfu/clients/c/internal/guest"
	"github.com/volsfu/volsfu/pkg/e2ee"
)

// maxSecret bounds a secret, in bytes. 32 random bytes are enough.
const maxSecret = 1 << 10

//export volsfu_set_key
func volsfu_set_key(
	h C.volsfu_session, number C.uint32_t, participant *C.volsfu_text, secret *C.volsfu_bytes, length C.size_t,
) C.int32_t {
	return guarded(func() error {
		s, epoch, err := sessionAndEpoch(h, number)
		if err != nil {
			return err
		}
		identity, err := text("identity", participant, maxText)
		if err != nil {
			return err
		}
		given, err := list("bytes of a secret", (*byte)(unsafe.Pointer(secret)), uint64(length), maxSecret)
		if err != nil {
			return err
		}
		return s.SetKey(epoch, identity, given)
	})
}

//export volsfu_use_epoch
func volsfu_use_epoch(h C.volsfu_session, number C.uint32_t) C.int32_t {
	return guarded(func() error {
		s, epoch, err := sessionAndEpoch(h, number)
		if err != nil {
			return err
		}
		return s.UseEpoch(epoch)
	})
}

//export volsfu_forget_epoch
func volsfu_forget_epoch(h C.volsfu_session, number C.uint32_t) C.int32_t {
	return guarded(func() error {
		s, epoch, err := sessionAndEpoch(h, number)
		if err != nil {
			return err
		}
		return s.ForgetEpoch(epoch)
	})
}

// sessionAndEpoch returns the session of a handle, and a checked epoch.
func sessionAndEpoch(h C.volsfu_session, number C.uint32_t) (*session, e2ee.Epoch, error) {
	s, err := sessionOf(h)
	if err != nil {
		return nil, 0, err
	}
	if number > math.MaxUint16 {
		return nil, 0, fmt.Errorf("%w: epoch is %d, expected 0 to %d", guest.ErrArgument, uint32(number), math.MaxUint16)
	}
	return s, e2ee.Epoch(number), nil
}
