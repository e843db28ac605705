package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/draco" // registers itself where it is built in
	_ "github.com/volsfu/volsfu/pkg/codec/dracojpeg"
	"github.com/volsfu/volsfu/pkg/codec/parts" // registers itself, as the ones around it do
	_ "github.com/volsfu/volsfu/pkg/codec/zstd"
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
	c, err := namedCodec(name)
	if err != nil {
		return nil, fmt.Errorf("--codec: %w", err)
	}
	return c, nil
}

// codecGrammar says what namedCodec understands, for the help of a flag.
const codecGrammar = `draco, draco+jpeg, zstd, raw or cwi0; parts:CODEC:K codes in K parts on as many threads, parts in one part per processor by draco; labels:CODEC keeps labels and cameras of points beside draco, draco+jpeg, zstd or raw`

// namedCodec finds a codec that encodes by what people call it, as parts.Find does, and says what to do where Draco is missing.
func namedCodec(name string) (codec.Codec, error) {
	c, err := parts.Find(name)
	if errors.Is(err, codec.ErrUnknown) && strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "parts:"), "labels:"), "draco") && !draco.Available() {
		return nil, draco.ErrUnavailable
	}
	return c, err
}

// explained is why a frame cannot be decoded; where a codec is not available, what to do.
func explained(fourCC codec.FourCC, err error) error {
	if !errors.Is(err, codec.ErrUnknown) {
		return err
	}
	switch fourCC {
	case codec.FourCC{'d', 'r', 'c', 'o'}, codec.FourCC{'d', 'r', 'c', 'm'}, codec.FourCC{'d', 'r', 'c', 'j'}:
		return draco.ErrUnavailable
	case codec.FourCC{'p', 'a', 'r', 't'}:
		// The error says what codes the parts: of what encodes, only Draco's can be missing.
		if !draco.Available() {
			return fmt.Errorf("%w; %w", err, draco.ErrUnavailable)
		}
	case vr2gather.CodecOctree:
		return fmt.Errorf("%w: cwi1, VR2Gather's compressed point clouds; its publisher can send cwi0", codec.ErrUnknown)
	case codec.FourCC{}:
		return fmt.Errorf("%w: the frame does not name it", codec.ErrUnknown)
	}
	return err
}
