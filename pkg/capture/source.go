// Package capture opens a source of point clouds by name and returns its frames when they are due, as a camera would.
// The packages below it implement the sources (synthetic, ply, rgbd, kinect, realsense, glb, journal); package depth
// converts depth images to points. Package capture implements the timing: the frame rate, skipped frames, and reading
// files ahead. Package capture also merges several cameras.
//
// A Source belongs to the goroutine that reads it. A Source has no goroutines between calls, except to read files
// ahead; these goroutines end before Close returns.
package capture

import (
	"context"
	"errors"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of opening and reading. The wrapping error contains the source and the reason.
var (
	ErrUnknownSource = errors.New("unknown source")
	ErrArgument      = errors.New("invalid source argument")
	ErrOptions       = errors.New("invalid source options")
	ErrNoPoints      = errors.New("source without points")
	ErrClosed        = errors.New("source is closed")
)

// Frame is one cloud at one instant. The caller owns its memory. A Frame that is passed to Read
// repeatedly causes no allocation after it has grown to the size of the source's clouds.
type Frame struct {
	// Capture is the time at which the frame was due, not the time of Read. Capture contains Go's monotonic reading, so
	// that the difference of two capture times is exact even if the wall clock was set in between.
	Capture time.Time
	// Number is the number of frame intervals since the first Read, including skipped frames.
	Number int64
	// Skipped is the number of frames that became due between the previous Read and this one and
	// were not read. They are lost: a late consumer gets the newest frame, not a queue.
	Skipped int64
	// Cloud contains the points in an order independent of their positions: a prefix or a stride is
	// an even sample. If several cameras were merged, Cloud.Sources contains the set of
	// Info.Cameras that saw a point, with bit 0 for the first.
	Cloud pointcloud.Cloud
	// Images contains the images of Info.Cameras, one for each camera, before any removal. An image
	// without Depth means that the camera had no image for this frame. Images is empty unless
	// Options.Images is set and the source has cameras.
	Images []depth.Image
	// Rasters contains the images of Info.Cameras without the pixels that are not points: depth 0. An
	// image without Depth means that the camera had no image for this frame. Rasters is empty unless
	// Options.Rasters is set and the source has cameras.
	Rasters []depth.Image
}

// Info describes a source. An Info does not change while the source is open.
type Info struct {
	// Description is text for people, for example "48 RGB-D frames of 512x424 from
	// recordings/desk".
	Description string
	// FrameRate is the number of frames per second.
	FrameRate float64
	// Box contains every point of every frame. All tiles and qualities are quantized in this box.
	Box volumetric.BoundingBox
	// Points is the number of points of the largest frame.
	Points int
	// Frames is the number of frames after which a recording begins again, 0 for the synthetic figure, live cameras
	// and recordings of RealSense cameras.
	Frames int
	// Cameras contains the cameras whose depth images are converted to points. Cameras is empty for other sources.
	Cameras []depth.Camera
}

// Source returns frames at its frame rate.
type Source interface {
	Info() Info
	// Read blocks until the next frame is due and replaces the content of frame. If the caller is
	// late, Read immediately returns the newest frame that is due. The error is the context's error
	// if the context ends first, ErrClosed after Close, or an error of the frame that names the
	// file; a later Read then continues with the next frame.
	Read(ctx context.Context, frame *Frame) error
	// Close releases the resources of the source. No Read may be in progress.
	Close() error
}
