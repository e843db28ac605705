// Package kinect reads recordings of Azure Kinect cameras: Matroska files as k4arecorder and the sensor SDK write them, with tracks of depth and colour and the
// camera's calibration. Colours are registered to the depth images.
//
// Only an index of the frames is kept in memory. Matroska is read by a small walker here rather than by a library, since those at hand read whole
// clusters of megabytes and trust the sizes that a file claims. A Recording never changes after it was opened, so any number of goroutines may load
// from it at once.
package kinect

import "errors"

// Errors of recordings. They are wrapped with what was wrong and what was expected.
var (
	ErrMatroska    = errors.New("invalid Matroska file")
	ErrRecording   = errors.New("invalid Azure Kinect recording")
	ErrCalibration = errors.New("invalid Azure Kinect calibration")
	ErrColor       = errors.New("invalid colour image")
)
