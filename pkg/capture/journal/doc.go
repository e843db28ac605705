// Package journal stores captures in files, so that an experiment can be repeated exactly: clouds
// and depth images as captured, or tiles as encoded, with their times. docs/capture.md describes
// the format.
//
// A journal grows by whole records. Each record has a checksum and is written by one write call. If
// the program dies, all recorded frames remain readable; the journal ends before an incomplete
// record.
//
// Writers and Readers are safe for concurrent use.
package journal

import (
	"errors"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of journals. The wrapping error contains the value found and the value expected.
var (
	ErrJournal = errors.New("invalid journal")
	ErrContent = errors.New("journal with different content")
)

// Content is the type of the frames of a journal.
type Content string

// The contents of journals.
const (
	// Points are captured clouds.
	Points Content = "points"
	// Images are captured depth images with colours and labels.
	Images Content = "images"
	// Encoded are tiles at all qualities, as sent.
	Encoded Content = "encoded"
)

// Head describes the source of a journal.
type Head struct {
	Content Content `json:"content"`
	// Description is the description of the source.
	Description string    `json:"description"`
	Begun       time.Time `json:"begun"`
	// FrameRate is the frame rate of the source.
	FrameRate float64 `json:"frame_rate"`
	// Box contains all points, in journals of clouds. Points is the maximum number of points of a
	// frame.
	Box    volumetric.BoundingBox `json:"box"`
	Points int                    `json:"points"`
	// Cameras contains the cameras of the images, in their order.
	Cameras []depth.Camera `json:"cameras,omitempty"`
	// Publication describes the tiles and qualities of encoded frames.
	Publication *volumetric.Publication `json:"publication,omitempty"`
}

// Frame is a captured frame: a cloud, or images.
type Frame struct {
	// Number is the source's frame number, which counts frame intervals.
	Number  int64
	Capture time.Time
	Cloud   pointcloud.Cloud
	Images  []depth.Image
}

// Tile is an encoded tile at one quality.
type Tile struct {
	// Number counts capture times: all tiles of one capture time have the same number.
	Number  uint32
	Capture time.Time
	Tile    int
	Quality volumetric.Quality
	Codec   volumetric.FourCC
	Data    []byte
}
