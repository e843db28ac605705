package volumetric

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Bitrate is a rate in bits per second.
type Bitrate int64

// String prints the rate with a unit, as in "12.5 Mbit/s".
func (b Bitrate) String() string {
	switch {
	case b >= 1e6 || b <= -1e6:
		return fmt.Sprintf("%.4g Mbit/s", float64(b)/1e6)
	case b >= 1e3 || b <= -1e3:
		return fmt.Sprintf("%.4g kbit/s", float64(b)/1e3)
	default:
		return fmt.Sprintf("%d bit/s", int64(b))
	}
}

// ErrBitrate says how bitrates are written.
var ErrBitrate = errors.New("expected a rate such as 20Mbit, 500kbit or 1.5Gbit")

// bitrateUnits are the units of ParseBitrate. A unit stands before the units that it ends with.
var bitrateUnits = []struct {
	suffix string
	factor float64
}{{"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {"bit", 1}}

// maxParsedBitrate is 1 Tbit/s, which signalling admits at most (signal.MaxBitrate).
const maxParsedBitrate = 1e12

// ParseBitrate reads a rate from 1 bit/s to 1 Tbit/s, with or without "/s". Errors wrap ErrBitrate.
func ParseBitrate(text string) (Bitrate, error) {
	number := strings.TrimSuffix(text, "/s")
	factor := 0.0
	for _, unit := range bitrateUnits {
		if rest, ok := strings.CutSuffix(number, unit.suffix); ok {
			number, factor = strings.TrimSpace(rest), unit.factor
			break
		}
	}
	value, err := strconv.ParseFloat(number, 64)
	if rate := value * factor; err == nil && rate >= 1 && rate <= maxParsedBitrate {
		return Bitrate(rate), nil
	}
	return 0, fmt.Errorf("%w, got %.32q", ErrBitrate, text)
}
