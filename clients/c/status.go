//go:build cgo

package main

// #cgo CFLAGS: -DVOLSFU_BUILDING -O2 -Wall -Wextra
// #include "boundary.h"
import "C"

import (
	"errors"
	"fmt"
	"runtime/debug"
	"unsafe"

	"github.com/volsfu/volsfu/clients/c/internal/guest"
	"github.com/volsfu/volsfu/clients/c/internal/handle"
	"github.com/volsfu/volsfu/clients/c/internal/queue"
	"github.com/volsfu/volsfu/internal/voice/libopus"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/signal"
)

// These are errors of the boundary itself, wrapped with the argument.
var (
	errNull   = errors.New("pointer is NULL")
	errSize   = errors.New("struct has a wrong size")
	errHeld   = errors.New("struct contains an object that was not released")
	errBuffer = errors.New("buffer is too small")
	errMemory = errors.New("out of memory")
	errPanic  = errors.New("defect of the library")
)

// statuses maps errors to statuses. The first match counts, so an error precedes the errors that it
// wraps.
var statuses = []struct {
	err    error
	status C.int32_t
}{
	{errNull, C.VOLSFU_E_NULL},
	{errSize, C.VOLSFU_E_SIZE},
	{errHeld, C.VOLSFU_E_HELD},
	{errBuffer, C.VOLSFU_E_BUFFER},
	{errMemory, C.VOLSFU_E_MEMORY},
	{errPanic, C.VOLSFU_E_INTERNAL},
	{handle.ErrHandle, C.VOLSFU_E_HANDLE},
	{queue.ErrEmpty, C.VOLSFU_E_TIMEOUT},
	{guest.ErrArgument, C.VOLSFU_E_ARGUMENT},
	{guest.ErrOrder, C.VOLSFU_E_ORDER},
	{guest.ErrTooLarge, C.VOLSFU_E_TOO_LARGE},
	{guest.ErrTooMuchHeld, C.VOLSFU_E_TOO_MUCH_HELD},
	{guest.ErrTimeout, C.VOLSFU_E_TIMEOUT},
	{guest.ErrNotSound, C.VOLSFU_E_KIND},
	{guest.ErrUnreachable, C.VOLSFU_E_UNREACHABLE},
	{client.ErrPanicked, C.VOLSFU_E_INTERNAL},
	{client.ErrConfig, C.VOLSFU_E_ARGUMENT},
	{client.ErrInterface, C.VOLSFU_E_INTERFACE},
	{client.ErrClosed, C.VOLSFU_E_CLOSED},
	{client.ErrLost, C.VOLSFU_E_LOST},
	{client.ErrNotConnected, C.VOLSFU_E_NOT_CONNECTED},
	{client.ErrInterrupted, C.VOLSFU_E_INTERRUPTED},
	{client.ErrNotPublished, C.VOLSFU_E_NOT_PUBLISHED},
	{client.ErrDataBacklog, C.VOLSFU_E_BACKLOG},
	{client.ErrKey, C.VOLSFU_E_KEY},
	{e2ee.ErrSecret, C.VOLSFU_E_KEY},
	{libopus.ErrUnavailable, C.VOLSFU_E_CODEC},
	{codec.ErrUnknown, C.VOLSFU_E_CODEC},
	{codec.ErrMalformed, C.VOLSFU_E_MALFORMED},
	{codec.ErrParams, C.VOLSFU_E_ARGUMENT},
}

// refusals maps the server's codes to statuses.
var refusals = map[signal.Code]C.int32_t{
	signal.CodeUnauthorized:     C.VOLSFU_REFUSED_UNAUTHORIZED,
	signal.CodeVersion:          C.VOLSFU_REFUSED_VERSION,
	signal.CodeMalformed:        C.VOLSFU_REFUSED_MALFORMED,
	signal.CodeTooLarge:         C.VOLSFU_REFUSED_TOO_LARGE,
	signal.CodeRateLimited:      C.VOLSFU_REFUSED_RATE_LIMITED,
	signal.CodeForbidden:        C.VOLSFU_REFUSED_FORBIDDEN,
	signal.CodeUnknownType:      C.VOLSFU_REFUSED_UNKNOWN_TYPE,
	signal.CodeNotJoined:        C.VOLSFU_REFUSED_NOT_JOINED,
	signal.CodeAlreadyJoined:    C.VOLSFU_REFUSED_ALREADY_JOINED,
	signal.CodeInvalid:          C.VOLSFU_REFUSED_INVALID,
	signal.CodeIdentityTaken:    C.VOLSFU_REFUSED_IDENTITY_TAKEN,
	signal.CodeLimit:            C.VOLSFU_REFUSED_LIMIT,
	signal.CodeExists:           C.VOLSFU_REFUSED_EXISTS,
	signal.CodeNotFound:         C.VOLSFU_REFUSED_NOT_FOUND,
	signal.CodeUnexpectedAnswer: C.VOLSFU_REFUSED_UNEXPECTED_ANSWER,
	signal.CodeInvalidSDP:       C.VOLSFU_REFUSED_INVALID_SDP,
	signal.CodeResume:           C.VOLSFU_REFUSED_RESUME,
	signal.CodeDraining:         C.VOLSFU_REFUSED_DRAINING,
	signal.CodeSlowReader:       C.VOLSFU_REFUSED_SLOW_READER,
	signal.CodeReplaced:         C.VOLSFU_REFUSED_REPLACED,
	signal.CodeKicked:           C.VOLSFU_REFUSED_KICKED,
	signal.CodeClosed:           C.VOLSFU_REFUSED_CLOSED,
	signal.CodeRevoked:          C.VOLSFU_REFUSED_REVOKED,
	signal.CodeConnection:       C.VOLSFU_REFUSED_CONNECTION,
	signal.CodeInternal:         C.VOLSFU_REFUSED_INTERNAL,
}

// statusOf returns the status of an error.
func statusOf(err error) C.int32_t {
	if err == nil {
		return C.VOLSFU_OK
	}
	for _, known := range statuses {
		if errors.Is(err, known.err) {
			return known.status
		}
	}
	var refused *signal.Error
	if !errors.As(err, &refused) {
		return C.VOLSFU_E_INTERNAL
	}
	if status, ok := refusals[refused.Code]; ok {
		return status
	}
	return C.VOLSFU_REFUSED
}

// guarded runs the body of an exported function. guarded converts a panic to an error, and an error to a status and the
// thread's last message.
func guarded(do func() error) C.int32_t {
	err := contained(do)
	if err != nil {
		text := err.Error()
		C.volsfu_boundary_note((*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text)))
	}
	return statusOf(err)
}

func contained(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanic, p, debug.Stack())
		}
	}()
	return do()
}
