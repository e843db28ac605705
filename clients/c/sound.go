//go:build cgo

package main

// #include "boundary.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/volsfu/volsfu/clients/c/internal/guest"
	"github.com/volsfu/volsfu/clients/c/internal/handle"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// listener is a guest's listener with a handle.
type listener struct {
	*guest.Listener
	session *session
}

//export volsfu_publish_sound
func volsfu_publish_sound(h C.volsfu_session, sound *C.volsfu_sound_in, out *C.volsfu_publisher) C.int32_t {
	return guarded(func() error {
		s, err := sessionOf(h)
		if err != nil {
			return err
		}
		if err := sized("sound", sound, func(p *C.volsfu_sound_in) C.uint32_t { return p.size }); err != nil {
			return err
		}
		if err := given("publisher", out); err != nil {
			return err
		}
		name, err := text("name", sound.name, maxText)
		if err != nil {
			return err
		}
		p, err := s.PublishSound(name, uint32(sound.bitrate))
		if err != nil {
			return err
		}
		return handPublisher(s, p, name, out)
	})
}

//export volsfu_write_sound
func volsfu_write_sound(
	h C.volsfu_publisher, samples *C.volsfu_samples, count C.size_t, capture C.int64_t,
) C.int32_t {
	return guarded(func() error {
		p, err := publisherOf(h)
		if err != nil {
			return err
		}
		from, err := samplesOf((*C.float)(unsafe.Pointer(samples)), count)
		if err != nil {
			return err
		}
		at, err := moment("capture_us", capture)
		if err != nil {
			return err
		}
		return p.WriteSound(from, at)
	})
}

// samplesOf returns an array of samples of the program.
func samplesOf(samples *C.float, count C.size_t) ([]float32, error) {
	return list("samples", (*float32)(unsafe.Pointer(samples)), uint64(count), guest.MaxSamples)
}

//export volsfu_listen
func volsfu_listen(
	h C.volsfu_session, participant, publication *C.volsfu_text, out *C.volsfu_listener,
) C.int32_t {
	return guarded(func() error {
		s, err := sessionOf(h)
		if err != nil {
			return err
		}
		if err := given("listener", out); err != nil {
			return err
		}
		var ref volumetric.PublicationRef
		if ref.Participant, err = text("participant", participant, maxText); err != nil {
			return err
		}
		if ref.Publication, err = text("publication", publication, maxText); err != nil {
			return err
		}
		l, err := s.Listen(ref)
		if err != nil {
			return err
		}
		added := listeners.Add(&listener{l, s})
		if s.closed.Load() {
			// Closing may have searched for the session's listeners before this one was added.
			_, _ = listeners.Remove(added)
			l.End()
			return fmt.Errorf("listen to %v: %w", ref, client.ErrClosed)
		}
		*out = C.volsfu_listener(added)
		return nil
	})
}

//export volsfu_read_sound
func volsfu_read_sound(h C.volsfu_listener, samples *C.float, count C.size_t, heard *C.size_t) C.int32_t {
	return guarded(func() error {
		l, err := listeners.Get(handle.Handle(h))
		if err != nil {
			return err
		}
		to, err := samplesOf(samples, count)
		if err != nil {
			return err
		}
		n, err := l.Read(to)
		if heard != nil {
			*heard = C.size_t(n)
		}
		return err
	})
}

//export volsfu_end_listening
func volsfu_end_listening(h C.volsfu_listener) C.int32_t {
	return guarded(func() error {
		l, err := listeners.Remove(handle.Handle(h))
		if err != nil {
			return err
		}
		l.End()
		return nil
	})
}
