package subscriber

import (
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Link is the path to one receiver in the data plane. The methods do not wait.
type Link interface {
	// Path returns the present state of the path.
	Path() egress.Path
	// Want sets the rate on the wire that would be sent if the path had the capacity.
	Want(volumetric.Bitrate)
	// SetLimits bounds the estimate. A limit of 0 stands for the server's own limit.
	SetLimits(congestion.Limits)
	// ParityShare returns the share of parity packets that the path needs. ParityOf returns the share for a track,
	// which includes the publisher's path.
	ParityShare() float64
	ParityOf(*track.Track) float64
}
