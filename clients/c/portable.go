//go:build cgo && portable

package main

import (
	// The build tag portable selects the decoders in Go. Debian's static libjpeg cannot be part of a shared library,
	// and the names of the package's functions in C++ are those of this library.
	_ "github.com/volsfu/volsfu/pkg/codec/draco"
	_ "github.com/volsfu/volsfu/pkg/codec/dracojpeg"
	_ "github.com/volsfu/volsfu/pkg/codec/rgbd"
)
