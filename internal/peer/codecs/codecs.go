// Package codecs finds codecs by the names that users give them, and explains how to get a codec that is missing from
// the program.
package codecs

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/volsfu/volsfu/pkg/codec"
	_ "github.com/volsfu/volsfu/pkg/codec/cwi1" // registers itself
	"github.com/volsfu/volsfu/pkg/codec/draco"  // registers itself
	_ "github.com/volsfu/volsfu/pkg/codec/dracojpeg"
	"github.com/volsfu/volsfu/pkg/codec/parts" // registers itself, as the ones around it do
	_ "github.com/volsfu/volsfu/pkg/codec/rgbd"
	_ "github.com/volsfu/volsfu/pkg/codec/zstd"
)

// defaultName returns the name of the codec for encoding without a choice of the user: Draco, or zstd in a program that
// was built without Draco.
func defaultName() string {
	if draco.Available() {
		return "draco"
	}
	return "zstd"
}

// Default returns the codec for encoding without a choice of the user.
func Default() codec.Codec {
	c, err := codec.ByName(defaultName())
	if err != nil {
		panic("codecs: the default codec registers itself, and is not registered")
	}
	return c
}

// Choose returns the codec for encoding. The default is that of Default.
func Choose(name string, log *slog.Logger) (codec.Codec, error) {
	if name == "" {
		c := Default()
		if !draco.Available() {
			log.Info("points are published as zstd, because this program does not encode draco")
		}
		return c, nil
	}
	c, err := Find(name)
	if err != nil {
		return nil, fmt.Errorf("--codec: %w", err)
	}
	return c, nil
}

// Grammar lists the names that Find accepts, for the help of a flag.
const Grammar = "draco, draco+jpeg, zstd, raw or cwi0; parts:CODEC:K encodes in K parts on as many threads, parts in " +
	"one part per processor with the default codec; labels:CODEC adds labels and cameras of points to draco, " +
	"draco+jpeg, zstd or raw"

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
	case codec.FourCC{'d', 'r', 'c', 'm'}:
		return draco.ErrUnavailable
	case codec.FourCC{}:
		return fmt.Errorf("%w: the frame does not name it", codec.ErrUnknown)
	}
	return err
}
