//go:build cgo && draco

package main

import (
	_ "github.com/volsfu/volsfu/pkg/codec/draco"
	_ "github.com/volsfu/volsfu/pkg/codec/dracojpeg"
)
