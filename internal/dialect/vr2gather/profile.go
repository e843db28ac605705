package vr2gather

import (
	"strconv"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/sfu"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// The names of a peer's publications.
const (
	audioName = "voice"
	bodyName  = "body"
)

// profile is the profile of VR2Gather peers.
var profile = sfu.Profile{
	Name: "VR2Gather", Converted: true, Withheld: withheld, OnePerKind: true,
	Named: func(o egress.Outlet, name subscriber.Name) sfu.NamedOutlet { return newNamedOutlet(o, name) },
}

// identityOf returns the identity of a peer.
func identityOf(client uint32) string { return strconv.FormatUint(uint64(client), 10) }

// publicationsOf returns the publications of a peer: audio, and tiles of points. The codecs are known after the first
// frames.
func publicationsOf(q vr2gather.Query) []volumetric.Publication {
	return []volumetric.Publication{
		{
			Name: audioName, Kind: volumetric.KindAudio, Mode: volumetric.ModeAlternatives, VR2Gather: true,
			Codec: volumetric.Codec{MIMEType: "audio/pcm", ClockRate: 48000},
			Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 1),
		},
		{
			Name: bodyName, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, VR2Gather: true,
			Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
			Tiles: make([]volumetric.Tile, q.Tiles), Qualities: make([]volumetric.QualityLevel, q.Qualities),
		},
	}
}

// withheld returns the reason why a peer cannot receive a publication, empty if it can.
func withheld(d *volumetric.Publication) string {
	switch {
	case !d.VR2Gather:
		return "not in VR2Gather's format"
	case d.Kind == volumetric.KindAudio && d.Codec.Is(volumetric.MIMEOpus):
		return "audio in Opus"
	default:
		return ""
	}
}

// trackOf returns the name of a line in the dialect. A line to a peer carries video of any quality, so its name has no
// quality.
func trackOf(n subscriber.Name) vr2gather.Track {
	t := vr2gather.Track{Kind: n.Kind, Client: n.Publisher, Tile: n.Tile, Quality: volumetric.QualityOff}
	if n.Kind == volumetric.KindAudio {
		t.Quality = 0
	}
	return t
}
