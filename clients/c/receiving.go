//go:build cgo

package main

// #include <stdlib.h>
// #include "boundary.h"
import "C"

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/volsfu/volsfu/clients/c/internal/guest"
	"github.com/volsfu/volsfu/clients/c/internal/handle"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// held is a frame or an event held by the program: a block of C's memory with all data that its
// struct points to.
type held struct {
	block unsafe.Pointer
	// size is the number of bytes that the guest counts for the frame.
	size  int
	guest *guest.Guest
}

// block copies parts one after the other to C's memory, each followed by a zero byte.
func block(parts ...[]byte) (unsafe.Pointer, []unsafe.Pointer, error) {
	size := 0
	for _, part := range parts {
		size += len(part) + 1
	}
	begin := C.volsfu_boundary_allocate(C.size_t(size))
	if begin == nil {
		return nil, nil, fmt.Errorf("%w: %d bytes", errMemory, size)
	}
	memory := unsafe.Slice((*byte)(begin), size)
	places := make([]unsafe.Pointer, len(parts))
	for i, part := range parts {
		places[i] = unsafe.Pointer(&memory[0])
		n := copy(memory, part)
		memory[n] = 0
		memory = memory[n+1:]
	}
	return begin, places, nil
}

// release frees the object of a handle.
func release(table *handle.Table[held], h C.uint64_t, forget func(held)) error {
	thing, err := table.Remove(handle.Handle(h))
	if err != nil {
		return err
	}
	C.free(thing.block)
	forget(thing)
	return nil
}

//export volsfu_next_frame
func volsfu_next_frame(h C.volsfu_session, timeout C.int32_t, out *C.volsfu_frame) C.int32_t {
	return guarded(func() error {
		s, err := sessionOf(h)
		if err != nil {
			return err
		}
		if err := sized("frame", out, func(f *C.volsfu_frame) C.uint32_t { return f.size }); err != nil {
			return err
		}
		if frames.Holds(handle.Handle(out.handle)) {
			return fmt.Errorf("frame: %w", errHeld)
		}
		wait, err := patience(timeout)
		if err != nil {
			return err
		}
		frame, err := s.NextFrame(wait)
		if err != nil {
			return err
		}
		return handOut(s.Guest, &frame, out)
	})
}

// handOut copies a frame to C. Because of the copy, a C program's tools can detect use after
// release.
func handOut(g *guest.Guest, frame *client.Frame, out *C.volsfu_frame) error {
	begin, places, err := block(frame.Data, []byte(frame.Track.Participant), []byte(frame.Track.Publication))
	if err != nil {
		g.ReleaseFrame(len(frame.Data))
		return err
	}
	size := out.size
	wipe(out)
	*out = C.volsfu_frame{
		size:        size,
		handle:      C.uint64_t(frames.Add(held{begin, len(frame.Data), g})),
		participant: (*C.char)(places[1]),
		publication: (*C.char)(places[2]),
		tile:        C.int32_t(frame.Track.Tile),
		quality:     C.int32_t(frame.Track.Quality),
		number:      C.int64_t(frame.Number),
		capture_us:  microseconds(frame.Capture),
		first_us:    microseconds(frame.First),
		complete_us: microseconds(frame.Complete),
		data:        (*C.uint8_t)(places[0]),
		length:      C.size_t(len(frame.Data)),
	}
	*(*volumetric.FourCC)(unsafe.Pointer(&out.codec)) = frame.Codec
	return nil
}

// microseconds converts a time to microseconds since 1970, 0 for none.
func microseconds(t time.Time) C.int64_t {
	if t.IsZero() {
		return 0
	}
	return C.int64_t(t.UnixMicro())
}

//export volsfu_release_frame
func volsfu_release_frame(frame *C.volsfu_frame) C.int32_t {
	return guarded(func() error {
		if err := sized("frame", frame, func(f *C.volsfu_frame) C.uint32_t { return f.size }); err != nil {
			return err
		}
		if err := release(frames, frame.handle, func(h held) { h.guest.ReleaseFrame(h.size) }); err != nil {
			return err
		}
		*frame = C.volsfu_frame{size: frame.size}
		return nil
	})
}

//export volsfu_set_quality
func volsfu_set_quality(h C.volsfu_session, choices *C.volsfu_choice_in, count C.size_t) C.int32_t {
	return guarded(func() error {
		s, err := sessionOf(h)
		if err != nil {
			return err
		}
		given, err := list("choices", choices, uint64(count), signal.MaxChoices)
		if err != nil {
			return err
		}
		read := make([]signal.Choice, len(given))
		for i := range given {
			if read[i], err = readChoice(&given[i]); err != nil {
				return fmt.Errorf("choice %d: %w", i, err)
			}
		}
		return s.SetQuality(read)
	})
}

func readChoice(c *C.volsfu_choice_in) (choice signal.Choice, err error) {
	if choice.Participant, err = text("participant", c.participant, maxText); err != nil {
		return choice, err
	}
	if choice.Publication, err = text("publication", c.publication, maxText); err != nil {
		return choice, err
	}
	if c.tile != C.VOLSFU_ALL_TILES {
		tile := int(c.tile)
		choice.Tile = &tile
	}
	switch {
	case c.quality == C.VOLSFU_AUTO:
		choice.Quality = signal.Auto()
	case c.quality == C.VOLSFU_SET:
		for quality := range volumetric.Quality(volumetric.MaxQualities) {
			if c.qualities>>quality&1 != 0 {
				choice.Quality.Qualities = append(choice.Quality.Qualities, quality)
			}
		}
	case c.quality >= C.VOLSFU_OFF:
		choice.Quality = signal.Only(volumetric.Quality(c.quality))
	default:
		err = fmt.Errorf(
			"%w: quality is %d, expected 0 or more, VOLSFU_OFF, VOLSFU_AUTO or VOLSFU_SET",
			guest.ErrArgument,
			int32(c.quality),
		)
	}
	return choice, err
}
