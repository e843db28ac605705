package whip

import (
	"slices"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// publisherProfile is the profile of encoders.
var publisherProfile = sfu.Profile{Name: protocolWHIP, Offers: true}

// playerProfile returns the profile of a player that accepts the given media types, and asks for a picture of the given
// source and its sound. An empty source is any.
func playerProfile(accepts []string, source volumetric.PictureSource) *sfu.Profile {
	profile := &sfu.Profile{
		Name: protocolWHEP, Offers: true, OnePerKind: true,
		Withheld: func(d *volumetric.Publication) string {
			if slices.ContainsFunc(accepts, d.Codec.Is) {
				return ""
			}
			return "its codec is " + d.Codec.MIMEType
		},
	}
	if source != "" {
		profile.Wants = func(d *volumetric.Publication) bool { return sourceOf(d) == source }
	}
	return profile
}

// sourceOf returns the source of a picture, or of the sound that belongs to a picture: the sound of the screen has a
// name of its own. It is empty for video without a source.
func sourceOf(d *volumetric.Publication) volumetric.PictureSource {
	switch {
	case d.Picture != nil:
		return d.Picture.Source
	case d.Kind != volumetric.KindAudio:
		return ""
	case d.Name == sources[volumetric.SourceScreen].sound:
		return volumetric.SourceScreen
	}
	return volumetric.SourceCamera
}
