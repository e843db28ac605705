//go:build cgo

package main

// #include "boundary.h"
import "C"

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/volsfu/volsfu/clients/c/internal/guest"
	"github.com/volsfu/volsfu/clients/c/internal/handle"
	"github.com/volsfu/volsfu/clients/c/internal/queue"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// session is a guest with a handle.
type session struct {
	*guest.Guest
	// closed is set before its publishers' handles are removed.
	closed atomic.Bool
}

func sessionOf(h C.volsfu_session) (*session, error) { return sessions.Get(handle.Handle(h)) }

//export volsfu_connect
func volsfu_connect(config *C.volsfu_config_in, out *C.volsfu_session) C.int32_t {
	return guarded(func() error {
		if err := sized("config", config, func(c *C.volsfu_config_in) C.uint32_t { return c.size }); err != nil {
			return err
		}
		if err := given("session", out); err != nil {
			return err
		}
		read, err := readConfig(config)
		if err != nil {
			return err
		}
		g, err := guest.Enter(read)
		if err != nil {
			return err
		}
		*out = C.volsfu_session(sessions.Add(&session{Guest: g}))
		return nil
	})
}

func readConfig(c *C.volsfu_config_in) (guest.Config, error) {
	var config guest.Config
	var interfaces string
	for _, field := range []struct {
		what string
		from *C.char
		to   *string
		most int
	}{
		{"url", c.url, &config.URL, maxURL},
		{"room", c.room, &config.Room, maxText},
		{"identity", c.identity, &config.Identity, maxText},
		{"token", c.token, &config.Token, maxURL},
		{"interfaces", c.interfaces, &interfaces, maxText},
		{"passphrase", c.passphrase, &config.Passphrase, maxText},
		{"ca_file", c.ca_file, &config.Authority, maxURL},
	} {
		var err error
		if *field.to, err = text(field.what, field.from, field.most); err != nil {
			return config, err
		}
	}
	if c.flags&^(C.VOLSFU_RECEIVE|C.VOLSFU_TCP|C.VOLSFU_GCC|C.VOLSFU_ENCRYPT) != 0 {
		return config, fmt.Errorf(
			"%w: flags are %#x, expected VOLSFU_RECEIVE, VOLSFU_TCP, VOLSFU_GCC and VOLSFU_ENCRYPT",
			guest.ErrArgument,
			uint32(c.flags),
		)
	}
	if c.frame_bytes > math.MaxInt32 || c.queue_frames > math.MaxInt32 || c.queue_bytes > math.MaxInt32 {
		return config, fmt.Errorf(
			"%w: frames of %d bytes, %d of them with %d bytes, expected up to %d each",
			guest.ErrArgument,
			uint32(c.frame_bytes),
			uint32(c.queue_frames),
			uint64(c.queue_bytes),
			math.MaxInt32,
		)
	}
	config.Receive = c.flags&C.VOLSFU_RECEIVE != 0
	config.TCP = c.flags&C.VOLSFU_TCP != 0
	if c.flags&C.VOLSFU_GCC != 0 {
		config.Controller = client.ControllerGCC
	}
	if c.flags&C.VOLSFU_ENCRYPT != 0 {
		config.Keys = new(e2ee.Keys)
	}
	if interfaces != "" {
		config.Interfaces = strings.Split(interfaces, ",")
	}
	switch c.redundancy {
	case C.VOLSFU_REDUNDANCY_AUTO:
		config.Redundancy = signal.RedundancyAuto
	case C.VOLSFU_REDUNDANCY_OFF:
		config.Redundancy = signal.RedundancyOff
	case C.VOLSFU_REDUNDANCY_ALL:
		config.Redundancy = signal.RedundancyAll
	default:
		return config, fmt.Errorf(
			"%w: redundancy is %d, expected VOLSFU_REDUNDANCY_AUTO, VOLSFU_REDUNDANCY_OFF or VOLSFU_REDUNDANCY_ALL",
			guest.ErrArgument,
			uint32(c.redundancy),
		)
	}
	config.MaxBitrate, config.StartBitrate = volumetric.Bitrate(c.max_bitrate), volumetric.Bitrate(c.start_bitrate)
	config.MaxUplink, config.MinUplink = volumetric.Bitrate(c.max_uplink), volumetric.Bitrate(c.min_uplink)
	config.Deadline = time.Duration(c.deadline_ms) * time.Millisecond
	config.FrameBytes = int(c.frame_bytes)
	config.Frames = queue.Limits{Things: int(c.queue_frames), Bytes: int(c.queue_bytes)}
	config.Timeout = time.Duration(c.request_ms) * time.Millisecond
	return config, nil
}

//export volsfu_close
func volsfu_close(h C.volsfu_session) C.int32_t {
	return guarded(func() error {
		s, err := sessions.Remove(handle.Handle(h))
		if err != nil {
			return err
		}
		s.closed.Store(true)
		for _, p := range publishers.RemoveAll(func(p *publisher) bool { return p.session == s }) {
			p.End()
		}
		listeners.RemoveAll(func(l *listener) bool { return l.session == s })
		s.Close()
		return nil
	})
}

//export volsfu_set_limits
func volsfu_set_limits(h C.volsfu_session, most, least C.int64_t) C.int32_t {
	return guarded(func() error {
		s, err := sessionOf(h)
		if err != nil {
			return err
		}
		return s.SetLimits(volumetric.Bitrate(most), volumetric.Bitrate(least))
	})
}

//export volsfu_set_viewpoint
func volsfu_set_viewpoint(h C.volsfu_session, viewpoint *C.volsfu_viewpoint_in) C.int32_t {
	return guarded(func() error {
		s, err := sessionOf(h)
		if err != nil {
			return err
		}
		if err := sized(
			"viewpoint",
			viewpoint,
			func(v *C.volsfu_viewpoint_in) C.uint32_t { return v.size },
		); err != nil {
			return err
		}
		at, err := moment("at_us", viewpoint.at_us)
		if err != nil {
			return err
		}
		return s.SetViewpoint(client.Viewpoint{
			At:          at,
			Position:    vector(viewpoint.position),
			Orientation: quaternion(viewpoint.orientation),
			FOV:         float64(viewpoint.fov),
			Aspect:      float64(viewpoint.aspect),
		})
	})
}

//export volsfu_server_time
func volsfu_server_time(h C.volsfu_session, local C.int64_t, out *C.int64_t) C.int32_t {
	return guarded(func() error {
		s, err := sessionOf(h)
		if err != nil {
			return err
		}
		if err := given("server_us", out); err != nil {
			return err
		}
		at, err := moment("local_us", local)
		if err != nil {
			return err
		}
		if at.IsZero() {
			at = time.Now()
		}
		*out = C.int64_t(s.ServerTime(at).UnixMicro())
		return nil
	})
}

//export volsfu_get_room
func volsfu_get_room(h C.volsfu_session, buffer *C.char, capacity C.size_t, length *C.size_t) C.int32_t {
	return guarded(func() error {
		s, err := sessionOf(h)
		if err != nil {
			return err
		}
		room, err := s.Room()
		if err != nil {
			return err
		}
		return writeText(room, buffer, capacity, length)
	})
}

//export volsfu_set_attributes
func volsfu_set_attributes(h C.volsfu_session, participant, attributes *C.volsfu_text) C.int32_t {
	return guarded(func() error {
		s, err := sessionOf(h)
		if err != nil {
			return err
		}
		identity, err := text("participant", participant, maxText)
		if err != nil {
			return err
		}
		if err := given("json", attributes); err != nil {
			return err
		}
		object, err := text("json", attributes, maxJSON)
		if err != nil {
			return err
		}
		var read map[string]string
		if err := json.Unmarshal([]byte(object), &read); err != nil {
			return fmt.Errorf("%w: json is no object of texts: %w", guest.ErrArgument, err)
		}
		return s.SetAttributes(identity, read)
	})
}

// writeText copies a text and a zero byte to a C buffer, and stores the length of the text.
func writeText(text []byte, buffer *C.char, capacity C.size_t, length *C.size_t) error {
	if buffer == nil && capacity > 0 {
		return fmt.Errorf("buffer of %d bytes: %w", uint64(capacity), errNull)
	}
	if length != nil {
		*length = C.size_t(len(text))
	}
	if uint64(capacity) <= uint64(len(text)) {
		return fmt.Errorf("%w: %d bytes, expected at least %d", errBuffer, uint64(capacity), len(text)+1)
	}
	to := unsafe.Slice((*byte)(unsafe.Pointer(buffer)), len(text)+1)
	to[copy(to, text)] = 0
	return nil
}
