// Package codecs finds codecs by the names that people give them, and says what to do if a codec is missing from the
// program.
package codecs

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

// Choose finds the codec to encode with. Without a name it is Draco, or raw in a program that was built without Draco.
func Choose(name string, log *slog.Logger) (codec.Codec, error) {
	if name == "" {
		name = "draco"
		if !draco.Available() {
			log.Warn("publishing raw frames, which are larger", "reason", draco.ErrUnavailable)
			name = codec.Raw.Name()
		}
	}
	c, err := Find(name)
	if err != nil {
		return nil, fmt.Errorf("--codec: %w", err)
	}
	return c, nil
}

// Grammar says which names Find knows, for the help of a flag.
const Grammar = "draco, draco+jpeg, zstd, raw or cwi0; parts:CODEC:K codes in K parts on as many threads, parts in one part " +
	"per processor by draco; labels:CODEC keeps labels and cameras of points beside draco, draco+jpeg, zstd or raw"

// Find finds a codec that encodes, as parts.Find does, and says what to do if Draco is missing.
func Find(name string) (codec.Codec, error) {
	c, err := parts.Find(name)
	if errors.Is(err, codec.ErrUnknown) && strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "parts:"),
		"labels:"), "draco") && !draco.Available() {
		return nil, draco.ErrUnavailable
	}
	return c, err
}

// Explain returns why a frame cannot be decoded. If a codec is not available, the error says what to do.
func Explain(fourCC codec.FourCC, err error) error {
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
		return fmt.Errorf("%w: cwi1, VR2Gather's compressed point clouds; its publisher can send cwi0",
			codec.ErrUnknown)
	case codec.FourCC{}:
		return fmt.Errorf("%w: the frame does not name it", codec.ErrUnknown)
	}
	return err
}
