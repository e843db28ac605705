package main

// The codecs of what is published and watched register themselves, Draco's where it is built in.
import (
	_ "github.com/volsfu/volsfu/pkg/codec/draco"
	_ "github.com/volsfu/volsfu/pkg/codec/dracojpeg"
	_ "github.com/volsfu/volsfu/pkg/codec/parts"
	_ "github.com/volsfu/volsfu/pkg/codec/zstd"
)
