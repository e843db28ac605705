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

// clockRate is the RTP clock of volumetric video, in Hz.
const clockRate = 90000

// publisher is a guest's publisher with a handle.
type publisher struct {
	*guest.Publisher
	session *session
}

func publisherOf(h C.volsfu_publisher) (*publisher, error) { return publishers.Get(handle.Handle(h)) }

//export volsfu_publish
func volsfu_publish(h C.volsfu_session, publication *C.volsfu_publication_in, out *C.volsfu_publisher) C.int32_t {
	return guarded(func() error {
		s, err := sessionOf(h)
		if err != nil {
			return err
		}
		if err := sized(
			"publication",
			publication,
			func(p *C.volsfu_publication_in) C.uint32_t { return p.size },
		); err != nil {
			return err
		}
		if err := given("publisher", out); err != nil {
			return err
		}
		read, err := readPublication(publication)
		if err != nil {
			return err
		}
		p, err := s.Publish(read)
		if err != nil {
			return err
		}
		return handPublisher(s, p, read.Name, out)
	})
}

// handPublisher stores the handle of a new publisher.
func handPublisher(s *session, p *guest.Publisher, name string, out *C.volsfu_publisher) error {
	added := publishers.Add(&publisher{p, s})
	if s.closed.Load() {
		// Closing may have searched for the session's publishers before this one was added.
		_, _ = publishers.Remove(added)
		p.End()
		return fmt.Errorf("publish %q: %w", name, client.ErrClosed)
	}
	*out = C.volsfu_publisher(added)
	return nil
}

func readPublication(p *C.volsfu_publication_in) (volumetric.Publication, error) {
	read := volumetric.Publication{
		Kind:      volumetric.KindVideo,
		Mode:      volumetric.ModeAlternatives,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: clockRate},
		FrameRate: float64(p.frame_rate),
		VR2Gather: p.flags&C.VOLSFU_VR2GATHER != 0,
	}
	if p.flags&^C.VOLSFU_VR2GATHER != 0 {
		return read, fmt.Errorf(
			"%w: flags are %#x, expected VOLSFU_VR2GATHER or none",
			guest.ErrArgument,
			uint32(p.flags),
		)
	}
	switch p.mode {
	case C.VOLSFU_ALTERNATIVES:
	case C.VOLSFU_DESCRIPTIONS:
		read.Mode = volumetric.ModeDescriptions
	default:
		return read, fmt.Errorf(
			"%w: mode is %d, expected VOLSFU_ALTERNATIVES or VOLSFU_DESCRIPTIONS",
			guest.ErrArgument,
			uint32(p.mode),
		)
	}
	var err error
	if read.Name, err = text("name", p.name, maxText); err != nil {
		return read, err
	}
	if read.Codec.Format, err = text("format", p.format, maxText); err != nil {
		return read, err
	}
	tiles, err := list("tiles", p.tiles, uint64(p.tile_count), volumetric.MaxTiles)
	if err != nil {
		return read, err
	}
	for i := range tiles {
		label, err := text("label", tiles[i].label, maxText)
		if err != nil {
			return read, err
		}
		read.Tiles = append(read.Tiles, volumetric.Tile{Label: label, Box: box(tiles[i].box)})
	}
	qualities, err := list("qualities", p.qualities, uint64(p.quality_count), volumetric.MaxQualities)
	if err != nil {
		return read, err
	}
	for i := range qualities {
		name, err := text("name of a quality", qualities[i].name, maxText)
		if err != nil {
			return read, err
		}
		read.Qualities = append(
			read.Qualities,
			volumetric.QualityLevel{Name: name, Bitrate: volumetric.Bitrate(qualities[i].bitrate)},
		)
	}
	return read, nil
}

//export volsfu_unpublish
func volsfu_unpublish(h C.volsfu_publisher) C.int32_t {
	return guarded(func() error {
		p, err := publishers.Remove(handle.Handle(h))
		if err != nil {
			return err
		}
		defer p.End()
		return p.Unpublish()
	})
}

//export volsfu_write_frame
func volsfu_write_frame(h C.volsfu_publisher, tile, quality C.int32_t, frame *C.volsfu_outgoing_frame_in) C.int32_t {
	return guarded(func() error {
		p, err := publisherOf(h)
		if err != nil {
			return err
		}
		if err := sized("frame", frame, func(f *C.volsfu_outgoing_frame_in) C.uint32_t { return f.size }); err != nil {
			return err
		}
		capture, err := moment("capture_us", frame.capture_us)
		if err != nil {
			return err
		}
		if uint64(frame.length) > guest.MaxFrameBytes {
			return fmt.Errorf(
				"%w: %d bytes, expected at most %d",
				guest.ErrTooLarge,
				uint64(frame.length),
				guest.MaxFrameBytes,
			)
		}
		// The session copies its arguments.
		data, err := list("bytes", (*byte)(frame.data), uint64(frame.length), guest.MaxFrameBytes)
		if err != nil {
			return err
		}
		return p.Write(int(tile), volumetric.Quality(quality), client.OutgoingFrame{
			Number:  uint32(frame.number),
			Capture: capture,
			Codec:   *(*volumetric.FourCC)(unsafe.Pointer(&frame.codec)),
			Data:    data,
		})
	})
}

//export volsfu_wanted
func volsfu_wanted(h C.volsfu_publisher, tile, quality C.int32_t) C.int32_t {
	wanted := false
	status := guarded(func() error {
		p, err := publisherOf(h)
		if err != nil {
			return err
		}
		wanted, err = p.Wanted(int(tile), volumetric.Quality(quality))
		return err
	})
	if wanted {
		return 1
	}
	return status
}

//export volsfu_set_pose
func volsfu_set_pose(h C.volsfu_publisher, pose *C.volsfu_pose_in) C.int32_t {
	return guarded(func() error {
		p, err := publisherOf(h)
		if err != nil {
			return err
		}
		if err := sized("pose", pose, func(p *C.volsfu_pose_in) C.uint32_t { return p.size }); err != nil {
			return err
		}
		given, err := list("boxes", pose.boxes, uint64(pose.box_count), volumetric.MaxTiles)
		if err != nil {
			return err
		}
		var boxes []volumetric.BoundingBox
		for _, b := range given {
			boxes = append(boxes, box(b))
		}
		return p.SetPose(client.Pose{
			Position:    vector(pose.position),
			Orientation: quaternion(pose.orientation),
			Scale:       float64(pose.scale),
			Boxes:       boxes,
			Priority:    float64(pose.priority),
		})
	})
}
