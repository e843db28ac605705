package subscriber

import (
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Link is what the data plane knows of the path to one receiver. Its methods do not wait.
type Link interface {
	// Path is what is known of the path at present.
	Path() egress.Path
	// Want says what would be sent, on the wire, if the path carried it.
	Want(volumetric.Bitrate)
	// SetLimits bounds the estimate; the server's own limits hold in place of those that are 0.
	SetLimits(congestion.Limits)
	// ParityShare is the share of parity packets that the path calls for. ParityOf is the share that a track is sent
	// with, which counts the publisher's path as well.
	ParityShare() float64
	ParityOf(*track.Track) float64
}
