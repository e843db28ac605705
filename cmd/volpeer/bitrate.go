package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// errBitrate says how bitrates are written.
var errBitrate = errors.New("expected a rate such as 20Mbit, 500kbit or 1.5Gbit")

// bitrate is a flag for a rate in bit/s, 0 where it is not given.
type bitrate volumetric.Bitrate

// bitrateUnits are what a number may be followed by, longer ones before those that they end with.
var bitrateUnits = []struct {
	suffix string
	factor float64
}{{"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {"bit", 1}}

// Set implements pflag.Value.
func (b *bitrate) Set(text string) error {
	number := strings.TrimSuffix(text, "/s")
	factor := 0.0
	for _, unit := range bitrateUnits {
		if rest, ok := strings.CutSuffix(number, unit.suffix); ok {
			number, factor = strings.TrimSpace(rest), unit.factor
			break
		}
	}
	value, err := strconv.ParseFloat(number, 64)
	if rate := value * factor; err == nil && rate >= 1 && rate <= float64(signal.MaxBitrate) {
		*b = bitrate(rate)
		return nil
	}
	return fmt.Errorf("%w, got %.32q", errBitrate, text)
}

// String implements pflag.Value.
func (b *bitrate) String() string {
	if *b == 0 {
		return ""
	}
	return volumetric.Bitrate(*b).String()
}

// Type implements pflag.Value.
func (b *bitrate) Type() string { return "rate" }
