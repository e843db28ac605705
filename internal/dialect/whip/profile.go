package whip

import (
	"slices"

	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// publisherProfile is the profile of encoders.
var publisherProfile = sfu.Profile{Name: protocolWHIP, Offers: true}

// playerProfile returns the profile of a player that accepts the given media types.
func playerProfile(accepts []string) *sfu.Profile {
	return &sfu.Profile{
		Name: protocolWHEP, Offers: true, OnePerKind: true,
		Withheld: func(d *volumetric.Publication) string {
			if slices.ContainsFunc(accepts, d.Codec.Is) {
				return ""
			}
			return "its codec is " + d.Codec.MIMEType
		},
	}
}
