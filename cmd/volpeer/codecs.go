package main

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
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
const codecGrammar = `draco, draco+jpeg, zstd, raw or cwi0; parts:CODEC:K codes in K parts on as many threads, parts in one part per processor by draco`

// namedCodec finds a codec that encodes by what people call it: a name of the registry, or parts with what codes them and how many there are.
func namedCodec(name string) (codec.Codec, error) {
	inner, inParts := strings.CutPrefix(name, "parts:")
	count := 0
	if text, number, given := strings.Cut(inner, ":"); inParts && given {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > parts.MaxParts {
			return nil, fmt.Errorf("%w: %.32q parts, expected 1 to %d", codec.ErrUnknown, number, parts.MaxParts)
		}
		inner, count = text, n
	}
	c, err := codec.ByName(inner)
	switch {
	case errors.Is(err, codec.ErrUnknown) && strings.HasPrefix(inner, "draco") && !draco.Available():
		return nil, draco.ErrUnavailable
	case err != nil:
		return nil, err
	case !c.Capabilities().Encodes:
		return nil, fmt.Errorf("%w: %s is only decoded here", codec.ErrUnknown, c.Name())
	case inParts && c.Name() == "parts":
		return nil, fmt.Errorf("%w: parts of parts", codec.ErrUnknown)
	case inParts:
		return parts.New(parts.Config{Inner: c, Parts: count, Pool: parts.NewPool(max(count, runtime.GOMAXPROCS(0)) - 1)}), nil
	}
	return c, nil
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
