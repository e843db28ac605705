// Package depth turns what depth cameras see into point clouds: cameras with distortion and pose, depth images with colours and labels, and a
// Projector that removes the background, flying pixels and specks, and projects the rest back into space, on several processors and without
// allocating from one image to the next.
//
// Two systems of coordinates are in use. Cameras and clouds have x to the right, y up and z towards the camera from what it sees, so that everything
// seen has z < 0 before the camera's pose is applied. Pixels, rays and distortion have x to the right, y down and z forward, as camera makers and
// OpenCV have them; nothing of that leaves the package but for Camera.Project and Camera.Deproject.
//
// A Camera and an Image are plain values. A Projector belongs to the goroutine that calls it; it keeps no goroutine between calls.
package depth

import "errors"

// Errors of this package. They are wrapped with what was wrong and what was expected.
var (
	ErrCamera      = errors.New("invalid depth camera")
	ErrImage       = errors.New("invalid depth image")
	ErrCleaning    = errors.New("invalid cleaning of depth images")
	ErrBackground  = errors.New("invalid background")
	ErrCalibration = errors.New("invalid calibration")
)
