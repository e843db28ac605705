// Package virtual provides virtual depth cameras: the package renders the images that a depth camera would take of a
// mesh or of a surface of points with normals, and adds the errors of a sensor. The images have the form of a real
// camera's, so that all later stages (removal of flying pixels, several views of one surface, codecs of rasters) can be
// tried and measured without a camera, with a known truth.
//
// A Rig is read from a file. A Renderer renders the images of one camera and belongs to one goroutine. Images are a
// function of the scene, the camera, the seed and the frame's number, in any order of frames.
package virtual

import "errors"

// ErrRig is the error of an invalid file of virtual cameras. The wrapping error contains the value found and the value
// expected.
var ErrRig = errors.New("invalid virtual cameras")
