// Package kinect reads recordings of Azure Kinect cameras: Matroska files written by k4arecorder
// and the sensor SDK, with tracks of depth and colour and the camera's calibration. Colours are
// registered to the depth images.
//
// Only an index of the frames is kept in memory. The package contains its own small Matroska
// parser, because the available libraries read whole clusters of megabytes and trust the sizes in a
// file. A Recording is immutable; any number of goroutines may load from it concurrently.
package kinect

import "errors"

// Errors of recordings. The wrapping error contains the value found and the value expected.
var (
	ErrMatroska    = errors.New("invalid Matroska file")
	ErrRecording   = errors.New("invalid Azure Kinect recording")
	ErrCalibration = errors.New("invalid Azure Kinect calibration")
	ErrColor       = errors.New("invalid colour image")
)
