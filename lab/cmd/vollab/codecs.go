package main

// These packages register the codecs for publishing and receiving. Draco is registered if it was built in.
import (
	_ "github.com/volsfu/volsfu/pkg/codec/draco"
	_ "github.com/volsfu/volsfu/pkg/codec/dracojpeg"
	_ "github.com/volsfu/volsfu/pkg/codec/parts"
	_ "github.com/volsfu/volsfu/pkg/codec/zstd"
)
