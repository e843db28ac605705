// Package journal keeps captures in files, so that an experiment repeats exactly: clouds and depth images as they were captured, or tiles as they
// were encoded, with the times of both. docs/capture.md describes the format.
//
// A journal grows by whole records, each with a checksum, and each in one write: what a program that dies had recorded stays readable, and a record
// that was cut off ends the journal before it.
//
// Any number of goroutines may write to a Writer, and read from a Reader.
package journal

import (
	"errors"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of journals. They are wrapped with what was wrong and what was expected.
var (
	ErrJournal = errors.New("invalid journal")
	ErrContent = errors.New("journal of other content")
)

// Content is what the frames of a journal are.
type Content string

// The contents of journals.
const (
	// Points are clouds as they were captured.
	Points Content = "points"
	// Images are depth images with colours and labels, as they were captured.
	Images Content = "images"
	// Encoded are tiles at all qualities, as they were handed over.
	Encoded Content = "encoded"
)

// Head is what a journal says of its source.
type Head struct {
	Content Content `json:"content"`
	// Description is that of the source.
	Description string    `json:"description"`
	Begun       time.Time `json:"begun"`
	// FrameRate is the source's own.
	FrameRate float64 `json:"frame_rate"`
	// Box holds all points, in journals of clouds, and Points is how many the largest frame has at most.
	Box    volumetric.BoundingBox `json:"box"`
	Points int                    `json:"points"`
	// Cameras are those of the images, in their order.
	Cameras []depth.Camera `json:"cameras,omitempty"`
	// Publication describes the tiles and qualities of encoded frames.
	Publication *volumetric.Publication `json:"publication,omitempty"`
}

// Frame is a captured frame: a cloud, or images.
type Frame struct {
	// Number is the source's: it counts frame intervals.
	Number  int64
	Capture time.Time
	Cloud   pointcloud.Cloud
	Images  []depth.Image
}

// Tile is an encoded tile at one quality.
type Tile struct {
	// Number counts capture instants: the same for all tiles of one.
	Number  uint32
	Capture time.Time
	Tile    int
	Quality volumetric.Quality
	Codec   volumetric.FourCC
	Data    []byte
}
