package forward

import (
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/frames"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/internal/forward/track"
)

// The names by which callers know what the packages of the path have.
type (
	Track           = track.Track
	TrackConfig     = track.Config
	Ingress         = ingress.Ingress
	Injector        = ingress.Injector
	Receiver        = egress.Receiver
	Slot            = egress.Slot
	Outlet          = egress.Outlet
	Batch           = egress.Batch
	Event           = egress.Event
	FrameRange      = egress.FrameRange
	Path            = egress.Path
	FrameTimes      = egress.FrameTimes
	ChunkSender     = frames.Sender
	VR2GatherOutlet = frames.VR2GatherOutlet
	Stats           = counters.Stats
	Traffic         = counters.Traffic
	TrafficByKind   = counters.TrafficByKind
	Histogram       = trace.Histogram
)

// Reasons for which a slot does not get frames whole.
const (
	DroppedBudget     = egress.DroppedBudget
	DroppedExpired    = egress.DroppedExpired
	DroppedIncomplete = egress.DroppedIncomplete
)

// NewVR2GatherOutlet is frames.NewVR2GatherOutlet.
var NewVR2GatherOutlet = frames.NewVR2GatherOutlet
