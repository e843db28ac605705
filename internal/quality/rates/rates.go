// Package rates reads bitrates as people write them.
package rates

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrSyntax says how bitrates are written.
var ErrSyntax = errors.New("expected a rate such as 20Mbit, 500kbit or 1.5Gbit")

// units are what a number may be followed by, longer ones before those that they end with.
var units = []struct {
	suffix string
	factor float64
}{{"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {"bit", 1}}

// Parse reads a rate above zero and up to what signalling admits, with or without "/s". Errors are around ErrSyntax.
func Parse(text string) (volumetric.Bitrate, error) {
	number := strings.TrimSuffix(text, "/s")
	factor := 0.0
	for _, unit := range units {
		if rest, ok := strings.CutSuffix(number, unit.suffix); ok {
			number, factor = strings.TrimSpace(rest), unit.factor
			break
		}
	}
	value, err := strconv.ParseFloat(number, 64)
	if rate := value * factor; err == nil && rate >= 1 && rate <= float64(signal.MaxBitrate) {
		return volumetric.Bitrate(rate), nil
	}
	return 0, fmt.Errorf("%w, got %.32q", ErrSyntax, text)
}
