// Package glb converts animated meshes to point clouds. The package reads binary glTF 2.0 files; the surface is sampled
// once, and the samples move with the animation. The package supports skins, morph targets, animation of nodes with all
// three interpolations, textures, vertex colours and factors. The package ignores light and other properties of
// materials.
//
// A Figure is immutable; any number of goroutines may load from it concurrently.
package glb

import "errors"

// Errors of files. The wrapping error contains the file and the reason.
var (
	ErrFile        = errors.New("invalid glTF binary file")
	ErrUnsupported = errors.New("glTF file needs an unsupported feature")
	ErrConfig      = errors.New("invalid sampling of a mesh")
)
