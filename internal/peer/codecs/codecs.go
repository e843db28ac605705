// Package codecs finds codecs by the names that users give them, and explains how to get a codec that is missing from
// the program.
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
	_ "github.com/volsfu/volsfu/pkg/codec/rgbd"
	_ "github.com/volsfu/volsfu/pkg/codec/zstd"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Choose returns the codec for encoding. The default is Draco, or raw in a program that was built without Draco.
func Choose(name string, log *slog.Logger) (codec.Codec, error) {
	if name == "" {
		name = "draco"
		if !draco.Available() {
			log.Warn("raw frames are published, which are larger", "reason", draco.ErrUnavailable)
			name = codec.Raw.Name()
		}
	}
	c, err := Find(name)
	if err != nil {
		return nil, fmt.Errorf("--codec: %w", err)
	}
	return c, nil
}

// Grammar lists the names that Find accepts, for the help of a flag.
const Grammar = "draco, draco+jpeg, zstd, raw or cwi0; parts:CODEC:K encodes in K parts on as many threads, parts in " +
	"one part per processor with draco; labels:CODEC adds labels and cameras of points to draco, draco+jpeg, zstd " +
	"or raw"

// Find returns a codec that can encode, as parts.Find does. If Draco is missing, the error explains how to build it in.
func Find(name string) (codec.Codec, error) {
	c, err := parts.Find(name)
	if errors.Is(err, codec.ErrUnknown) && strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "parts:"),
		"labels:"), "draco") && !draco.Available() {
		return nil, draco.ErrUnavailable
	}
	return c, err
}

// Explain returns the reason for which a frame cannot be decoded. If a codec is not available, the error explains how
// to get it.
func Explain(fourCC codec.FourCC, err error) error {
	if !errors.Is(err, codec.ErrUnknown) {
		return err
	}
	switch fourCC {
	case codec.FourCC{'d', 'r', 'c', 'o'}, codec.FourCC{'d', 'r', 'c', 'm'}, codec.FourCC{'d', 'r', 'c', 'j'}:
		return draco.ErrUnavailable
	case codec.FourCC{'p', 'a', 'r', 't'}:
		// The error names the codec of the parts. Of the codecs that encode parts, only Draco can be missing.
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
