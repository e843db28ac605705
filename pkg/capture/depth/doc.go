// Package depth converts images of depth cameras to point clouds. The package provides cameras with distortion and
// pose, depth images with colours and labels, and a Projector. The Projector removes the background, flying pixels and
// specks, and projects the remaining pixels to space, on several processors and without allocations between images.
//
// There are two coordinate systems. In cameras and clouds, x is right, y is up and z points from
// the scene to the camera, so that everything visible has z < 0 before the camera's pose is
// applied. For pixels, rays and distortion, x is right, y is down and z is forward, as in OpenCV
// and in camera documentation. Only Camera.Project and Camera.Deproject use the second system in
// the package's API.
//
// A Camera and an Image are plain values. A Projector belongs to the goroutine that calls it and
// has no goroutines between calls.
package depth

import "errors"

// Errors of this package. The wrapping error contains the value found and the value expected.
var (
	ErrCamera      = errors.New("invalid depth camera")
	ErrImage       = errors.New("invalid depth image")
	ErrCleaning    = errors.New("invalid cleaning of depth images")
	ErrBackground  = errors.New("invalid background")
	ErrCalibration = errors.New("invalid calibration")
)
