// Package capture is where frames come from: it opens a source of point clouds by name and hands out its frames when they are due, as a camera would.
// What the frames show is the business of the packages below it (synthetic, ply, rgbd, kinect, realsense, glb, journal), what depth images become that
// of package depth; this package owns time: the frame rate, the skipping of frames that nobody fetched, and the reading ahead of files. It also merges
// what several cameras saw.
//
// A Source belongs to the one goroutine that reads it. It keeps no goroutine of its own between calls, but for files that are being
// read ahead; these end before Close returns.
package capture

import (
	"context"
	"errors"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of opening and reading. They are wrapped with the source and what was wrong.
var (
	ErrUnknownSource = errors.New("unknown source")
	ErrArgument      = errors.New("invalid source argument")
	ErrOptions       = errors.New("invalid source options")
	ErrNoPoints      = errors.New("source without points")
	ErrClosed        = errors.New("source is closed")
)

// Frame is one cloud at one instant. Its memory is the caller's: one Frame passed to Read again and again costs no allocation once it has
// grown to the size of the source's clouds.
type Frame struct {
	// Capture is when the frame was due, not when it was fetched. It carries Go's monotonic reading, so that the difference of two
	// captures is exact even where the wall clock was set in between.
	Capture time.Time
	// Number counts the frame intervals since the first Read, skipped frames included.
	Number int64
	// Skipped is how many frames fell due between the Read before and this one without being fetched. They are gone: a late consumer gets
	// the newest frame, not a queue.
	Skipped int64
	// Cloud holds the points, in an order that says nothing about where they lie: a prefix or a stride is an even sample. Where several cameras
	// were merged, Cloud.Sources tells which of Info.Cameras saw a point, bit 0 for the first.
	Cloud pointcloud.Cloud
	// Images are what Info.Cameras saw, one for each, before anything was removed; one without Depth is of a camera that gave none this time. There
	// are none unless Options.Images asked for them and the source has cameras.
	Images []depth.Image
}

// Info describes a source. It does not change while the source is open.
type Info struct {
	// Description is for people, for instance "48 RGB-D frames of 512x424 from recordings/desk".
	Description string
	// FrameRate is how many frames fall due per second.
	FrameRate float64
	// Box holds every point of every frame. It serves as the one box that all tiles and qualities are quantised in.
	Box volumetric.BoundingBox
	// Points is the number of points of the largest frame.
	Points int
	// Cameras are those whose depth images the points come from; empty where there are none.
	Cameras []depth.Camera
}

// Source hands out frames at its frame rate.
type Source interface {
	Info() Info
	// Read blocks until the next frame is due and replaces what the frame holds. Where the caller is late, it gets the newest frame that
	// is due, at once. It returns the context's error when that ends first, ErrClosed after Close, or what went wrong with the frame,
	// naming the file; a later Read then goes on with the next frame.
	Read(ctx context.Context, frame *Frame) error
	// Close frees what the source holds. It is called once no Read is under way.
	Close() error
}
