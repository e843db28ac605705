// Package realsense captures with RealSense cameras and plays recordings made with them, through librealsense2, which is looked for when a
// camera or recording is opened. The library synchronises depth and colour, filters depth, and moves it into the view of the colour
// camera; what comes out are the images of package depth.
//
// Cameras keeps one goroutine per camera, which owns the camera's stream, finds the camera again when it was lost, and leaves its newest
// image for the reader. Recording reads files in a child process each, since the library crashes on damaged ones. Both belong to the one
// goroutine that reads them, and end what they began before Close returns.
package realsense

import "errors"

// Errors of this package. They are wrapped with the camera or file and what was wrong; those of package rs2 come through.
var (
	// ErrConfig says that a setting cannot be used.
	ErrConfig = errors.New("invalid RealSense settings")
	// ErrNoCamera says that no camera, or not the one that was asked for, is plugged in.
	ErrNoCamera = errors.New("no RealSense camera")
	// ErrStreams says that a camera or recording does not have the images that are needed.
	ErrStreams = errors.New("RealSense camera without suitable streams")
	// ErrRecording says that a recording cannot be played.
	ErrRecording = errors.New("unusable RealSense recording")
	// ErrClosed says that cameras or a recording were read after Close.
	ErrClosed = errors.New("RealSense source is closed")
)
