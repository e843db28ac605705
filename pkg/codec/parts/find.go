package parts

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/labels" // registers its codec, too
)

// Find returns the encoding codec for a name specified by a user: a name of the registry; parts
// with the inner codec and the number of parts, as in parts:draco:3; or labels with the codec of
// the points, as in labels:zstd. Errors wrap codec.ErrUnknown.
func Find(name string) (codec.Codec, error) {
	if coder, labelled := strings.CutPrefix(name, "labels:"); labelled {
		c, err := codec.ByName(coder)
		if err != nil {
			return nil, err
		}
		return labels.New(c)
	}
	inner, inParts := strings.CutPrefix(name, "parts:")
	count := 0
	if text, number, given := strings.Cut(inner, ":"); inParts && given {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > MaxParts {
			return nil, fmt.Errorf("%w: %.32q parts, expected 1 to %d", codec.ErrUnknown, number, MaxParts)
		}
		inner, count = text, n
	}
	c, err := codec.ByName(inner)
	switch {
	case err != nil:
		return nil, err
	case c.Capabilities().Rasters:
		return nil, fmt.Errorf("%w: %s encodes images of depth cameras and no clouds", codec.ErrUnknown, c.Name())
	case !c.Capabilities().Encodes:
		return nil, fmt.Errorf("%w: this program only decodes %s", codec.ErrUnknown, c.Name())
	case inParts && (c.Name() == "parts" || c.Name() == "labels"):
		return nil, fmt.Errorf("%w: parts of %s", codec.ErrUnknown, c.Name())
	case inParts:
		return New(Config{Inner: c, Parts: count, Pool: NewPool(max(count, runtime.GOMAXPROCS(0)) - 1)}), nil
	}
	return c, nil
}
