//go:build cgo

package main

// #include "boundary.h"
import "C"

import (
	"fmt"

	"github.com/volsfu/volsfu/clients/c/internal/guest"
	"github.com/volsfu/volsfu/clients/c/internal/handle"
)

// kinds maps the kinds of events to those of C.
var kinds = map[guest.Kind]C.uint32_t{
	guest.Connected:         C.VOLSFU_EVENT_CONNECTED,
	guest.Interrupted:       C.VOLSFU_EVENT_INTERRUPTED,
	guest.Resumed:           C.VOLSFU_EVENT_RESUMED,
	guest.Closing:           C.VOLSFU_EVENT_CLOSING,
	guest.ParticipantJoined: C.VOLSFU_EVENT_PARTICIPANT_JOINED,
	guest.ParticipantLeft:   C.VOLSFU_EVENT_PARTICIPANT_LEFT,
	guest.Published:         C.VOLSFU_EVENT_PUBLISHED,
	guest.Unpublished:       C.VOLSFU_EVENT_UNPUBLISHED,
	guest.Sending:           C.VOLSFU_EVENT_SENDING,
	guest.Wanted:            C.VOLSFU_EVENT_WANTED,
	guest.Uplink:            C.VOLSFU_EVENT_UPLINK,
	guest.PoseChanged:       C.VOLSFU_EVENT_POSE,
	guest.Bandwidth:         C.VOLSFU_EVENT_BANDWIDTH,
	guest.Refused:           C.VOLSFU_EVENT_REFUSED,
	guest.Attributes:        C.VOLSFU_EVENT_ATTRIBUTES,
	guest.Metadata:          C.VOLSFU_EVENT_METADATA,
	guest.Muted:             C.VOLSFU_EVENT_MUTED,
	guest.Permissions:       C.VOLSFU_EVENT_PERMISSIONS,
	guest.Recording:         C.VOLSFU_EVENT_RECORDING,
	guest.Moved:             C.VOLSFU_EVENT_MOVED,
	guest.Audience:          C.VOLSFU_EVENT_AUDIENCE,
}

//export volsfu_next_event
func volsfu_next_event(h C.volsfu_session, timeout C.int32_t, out *C.volsfu_event) C.int32_t {
	return guarded(func() error {
		s, err := sessionOf(h)
		if err != nil {
			return err
		}
		if err := sized("event", out, func(e *C.volsfu_event) C.uint32_t { return e.size }); err != nil {
			return err
		}
		if events.Holds(handle.Handle(out.handle)) {
			return fmt.Errorf("event: %w", errHeld)
		}
		wait, err := patience(timeout)
		if err != nil {
			return err
		}
		event, err := s.NextEvent(wait)
		if err != nil {
			return err
		}
		return tell(s.Guest, &event, out)
	})
}

// tell copies an event to C.
func tell(g *guest.Guest, event *guest.Event, out *C.volsfu_event) error {
	begin, places, err := block([]byte(event.Participant), []byte(event.Publication), []byte(event.Text), event.JSON)
	if err != nil {
		g.ReleaseEvent()
		return err
	}
	size := out.size
	wipe(out)
	*out = C.volsfu_event{
		size:        size,
		kind:        kinds[event.Kind],
		handle:      C.uint64_t(events.Add(held{block: begin, guest: g})),
		participant: (*C.char)(places[0]),
		publication: (*C.char)(places[1]),
		text:        (*C.char)(places[2]),
		json:        (*C.char)(places[3]),
		tile:        C.int32_t(event.Tile),
		quality:     C.int32_t(event.Quality),
		description: C.int32_t(event.Description),
		delay_us:    C.int64_t(event.Delay.Microseconds()),
		estimate:    C.int64_t(event.Estimate),
		allocated:   C.int64_t(event.Allocated),
		wanted:      C.int64_t(event.Wanted),
		scale:       C.double(event.Pose.Scale),
		priority:    C.double(event.Pose.Priority),
	}
	for i, coordinate := range event.Pose.Position {
		out.position[i] = C.double(coordinate)
	}
	for i, component := range event.Pose.Orientation {
		out.orientation[i] = C.double(component)
	}
	return nil
}

//export volsfu_release_event
func volsfu_release_event(event *C.volsfu_event) C.int32_t {
	return guarded(func() error {
		if err := sized("event", event, func(e *C.volsfu_event) C.uint32_t { return e.size }); err != nil {
			return err
		}
		if err := release(events, event.handle, func(h held) { h.guest.ReleaseEvent() }); err != nil {
			return err
		}
		*event = C.volsfu_event{size: event.size}
		return nil
	})
}
