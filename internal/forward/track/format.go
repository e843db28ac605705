package track

import (
	"strings"

	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// format is the form of a track's media, and the rules that follow from the form. It does not change.
type format struct {
	codec volumetric.Codec
	// The fields below are the results of the methods of these names.
	audio, framed, needsKey, converted, skippable bool
}

// newFormat returns the format of a codec. converted is set if the track arrives in VR2Gather's own packets.
func newFormat(codec volumetric.Codec, converted bool) format {
	f := format{
		codec:     codec,
		audio:     strings.HasPrefix(strings.ToLower(codec.MIMEType), "audio/"),
		framed:    codec.Is(volumetric.MIMEVolumetric),
		needsKey:  switching.NeedsKey(codec.MIMEType),
		converted: converted,
	}
	f.skippable = !f.audio && !f.needsKey
	return f
}

// Codec returns the codec of the track.
func (f *format) Codec() volumetric.Codec { return f.codec }

// Audio reports whether the track is audio. Audio is sent first and loses no frame to age.
func (f *format) Audio() bool { return f.audio }

// Framed reports whether the track is payload v1.
func (f *format) Framed() bool { return f.framed }

// NeedsKey reports whether a decoder must start at a key frame.
func (f *format) NeedsKey() bool { return f.needsKey }

// Converted reports whether the track arrives in VR2Gather's own packets.
func (f *format) Converted() bool { return f.converted }

// Skippable reports whether the track may lose frames due to age: every frame decodes independently and the track is
// not audio.
func (f *format) Skippable() bool { return f.skippable }
