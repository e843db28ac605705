package vr2gather

import (
	"sync/atomic"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/frames"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// namedOutlet sends the packets of a line to a VR2Gather peer under the line's name. The data plane may call its
// methods during a rename.
type namedOutlet struct {
	egress.Outlet
	payloadType uint8
	present     atomic.Pointer[frames.VR2GatherOutlet]
}

func newNamedOutlet(o egress.Outlet, name subscriber.Name) *namedOutlet {
	n := &namedOutlet{Outlet: o, payloadType: payloadTypeVideo}
	if name.Kind == volumetric.KindAudio {
		n.payloadType = payloadTypeAudio
	}
	n.Rename(name)
	return n
}

// Rename implements subscriber.NamedOutput. Frame numbers under a new name begin again.
func (n *namedOutlet) Rename(name subscriber.Name) {
	n.present.Store(frames.NewVR2GatherOutlet(n.Outlet, trackOf(name), n.payloadType))
}

// Restart implements subscriber.NamedOutput.
func (n *namedOutlet) Restart() { n.present.Load().Restart() }

// Queue implements egress.Outlet.
func (n *namedOutlet) Queue(h *rtp.Header, body []byte) error { return n.present.Load().Queue(h, body) }

// RetransmissionSSRC implements egress.Outlet.
func (n *namedOutlet) RetransmissionSSRC() uint32 { return n.present.Load().RetransmissionSSRC() }

// PayloadType implements egress.Outlet.
func (n *namedOutlet) PayloadType(mime string) (media, retransmission uint8, ok bool) {
	return n.present.Load().PayloadType(mime)
}
