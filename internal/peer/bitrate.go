package peer

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Bitrate is a flag value: a rate in bit/s, 0 if the flag is not set.
type Bitrate volumetric.Bitrate

// Set implements pflag.Value.
func (b *Bitrate) Set(text string) error {
	value, err := volumetric.ParseBitrate(text)
	if err != nil {
		return err
	}
	*b = Bitrate(value)
	return nil
}

// String implements pflag.Value.
func (b *Bitrate) String() string {
	if *b == 0 {
		return ""
	}
	return volumetric.Bitrate(*b).String()
}

// Type implements pflag.Value.
func (b *Bitrate) Type() string { return "rate" }

// RateText formats the mean rate of a number of bytes in a time.
func RateText(bytes int64, took time.Duration) string {
	return fmt.Sprintf("%.1f Mbit/s", float64(bytes)*8/1e6/took.Seconds())
}
