// Package glb makes point clouds of animated meshes: binary glTF 2.0 files, whose surface is sampled once and moves with the animation. Skins, morph
// targets, animation of nodes with all three interpolations, textures, vertex colours and factors are taken into account; light and other properties
// of materials are not.
//
// A Figure never changes after it was opened, so any number of goroutines may load from it at once.
package glb

import "errors"

// Errors of files. They are wrapped with the file and what was wrong.
var (
	ErrFile        = errors.New("invalid glTF binary file")
	ErrUnsupported = errors.New("glTF file needs what is not supported")
	ErrConfig      = errors.New("invalid sampling of a mesh")
)
