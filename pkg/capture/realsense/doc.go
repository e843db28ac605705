// Package realsense captures with RealSense cameras and plays their recordings. The package uses librealsense2,
// which is searched for when a camera or recording is opened. The library synchronises depth and colour, filters depth,
// and aligns it to the view of the colour camera. The results are images of package depth.
//
// Cameras uses one goroutine per camera. The goroutine owns the camera's stream, finds the camera
// again after a loss, and passes its newest image to the reader. Recording reads each file in a
// child process, since the library crashes on damaged files. Both types must be used by one
// goroutine only. All goroutines and processes end before Close returns.
package realsense

import "errors"

// These are the errors of this package. They are wrapped with the camera or file and the cause.
// Errors of package rs2 are passed through.
var (
	// ErrConfig reports an unusable setting.
	ErrConfig = errors.New("invalid RealSense settings")
	// ErrNoCamera reports that no camera, or not the requested one, is plugged in.
	ErrNoCamera = errors.New("no RealSense camera")
	// ErrStreams reports that a camera or recording lacks the necessary images.
	ErrStreams = errors.New("RealSense camera without suitable streams")
	// ErrRecording reports that a recording cannot be played.
	ErrRecording = errors.New("unusable RealSense recording")
	// ErrClosed reports that cameras or a recording were read after Close.
	ErrClosed = errors.New("RealSense source is closed")
)
