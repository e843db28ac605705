package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/draco" // registers itself where it is built in
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// chooseCodec finds the codec to encode with. Without a name it is Draco, or raw in a program that was built without it.
func chooseCodec(name string, log *slog.Logger) (codec.Codec, error) {
	if name == "" {
		name = "draco"
		if !draco.Available() {
			log.Warn("publishing raw frames, which are larger", "reason", draco.ErrUnavailable)
			name = codec.Raw.Name()
		}
	}
	c, err := codec.ByName(name)
	if errors.Is(err, codec.ErrUnknown) && name == "draco" {
		return nil, draco.ErrUnavailable
	}
	if err != nil {
		return nil, fmt.Errorf("--codec: %w", err)
	}
	return c, nil
}

// explained is why a frame cannot be decoded; where a codec is not available, what to do.
func explained(fourCC codec.FourCC, err error) error {
	if !errors.Is(err, codec.ErrUnknown) {
		return err
	}
	switch fourCC {
	case codec.FourCC{'d', 'r', 'c', 'o'}:
		return draco.ErrUnavailable
	case vr2gather.CodecOctree:
		return fmt.Errorf("%w: cwi1, VR2Gather's compressed point clouds; its publisher can send cwi0", codec.ErrUnknown)
	case codec.FourCC{}:
		return fmt.Errorf("%w: the frame does not name it", codec.ErrUnknown)
	}
	return err
}
