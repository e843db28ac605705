package main

import (
	"github.com/volsfu/volsfu/internal/quality/rates"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// bitrate is a flag for a rate in bit/s, 0 where it is not given.
type bitrate volumetric.Bitrate

// Set implements pflag.Value.
func (b *bitrate) Set(text string) error {
	value, err := rates.Parse(text)
	if err != nil {
		return err
	}
	*b = bitrate(value)
	return nil
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
