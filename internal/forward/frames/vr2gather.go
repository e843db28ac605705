package frames

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// ErrNotVR2Gather says that a packet cannot be sent to a VR2Gather peer.
var ErrNotVR2Gather = errors.New("nothing that VR2Gather peers read")

const (
	// vr2GatherHeader is the length of the RTP header that VR2Gather peers take for granted: 12 bytes, and 8 for the
	// extension with the number.
	vr2GatherHeader = 20
	// reordering is how far back the number of a frame may lie whose packets come late. What is further back is
	// numbered like a new frame.
	reordering = 64
)

// VR2GatherOutlet sends what a slot carries to a VR2Gather peer: in packets of VR2Gather's own, never twice, and with
// frame numbers that go on where those of the publication before ended.
type VR2GatherOutlet struct {
	egress.Outlet
	track       vr2gather.Track
	payloadType uint8
	// restarted is set when another publication follows.
	restarted atomic.Bool
	numbering frameNumbering
	packet    [vr2gather.MaxPacketSize]byte
}

// NewVR2GatherOutlet sends on an outlet, under the payload type given, what the track names: a client's tile, or its
// sound.
func NewVR2GatherOutlet(o egress.Outlet, track vr2gather.Track, payloadType uint8) *VR2GatherOutlet {
	return &VR2GatherOutlet{Outlet: o, track: track, payloadType: payloadType}
}

// Restart says that another publication follows, whose frame numbers have nothing to do with those of the one before.
// It is safe for any goroutine.
func (o *VR2GatherOutlet) Restart() { o.restarted.Store(true) }

// RetransmissionSSRC implements egress.Outlet: such peers take no retransmissions, nor padding, which travels the same
// way.
func (o *VR2GatherOutlet) RetransmissionSSRC() uint32 { return 0 }

// PayloadType implements egress.Outlet.
func (o *VR2GatherOutlet) PayloadType(mime string) (media, retransmission uint8, ok bool) {
	_, _, ok = o.Outlet.PayloadType(mime)
	return o.payloadType, 0, ok
}

// Queue implements egress.Outlet. Errors for what such peers do not read wrap ErrNotVR2Gather.
func (o *VR2GatherOutlet) Queue(h *rtp.Header, body []byte) error {
	if size := h.MarshalSize(); size != vr2GatherHeader {
		return fmt.Errorf("%w: RTP header of %d bytes, expected %d", ErrNotVR2Gather, size, vr2GatherHeader)
	}
	p, err := o.read(body)
	if err != nil {
		return err
	}
	p.Client, p.Frame = o.track.Client, o.numbering.number(p.Frame, o.restarted.Swap(false))
	packet, err := p.Append(o.packet[:0])
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotVR2Gather, err)
	}
	return o.Outlet.Queue(h, packet)
}

// read makes a packet of VR2Gather's of one of the server's.
func (o *VR2GatherOutlet) read(body []byte) (vr2gather.Packet, error) {
	if o.track.Kind == volumetric.KindAudio {
		p, err := vr2gather.ParsePacket(volumetric.KindAudio, body)
		if err != nil {
			return p, fmt.Errorf("%w: %w", ErrNotVR2Gather, err)
		}
		return p, nil
	}
	var d payload.Descriptor
	data, err := d.Unmarshal(body)
	switch {
	case err != nil:
		return vr2gather.Packet{}, fmt.Errorf("%w: %w", ErrNotVR2Gather, err)
	case d.Prefixed || d.Index >= d.Source:
		return vr2gather.Packet{}, fmt.Errorf("%w: fragment %d of %d, prefix %t", ErrNotVR2Gather, d.Index, d.Source,
			d.Prefixed)
	}
	return vr2gather.Packet{
		Kind: volumetric.KindVideo, Frame: d.Frame, Length: d.Length, Offset: uint32(d.Index) * payload.FragmentSize,
		Tile: uint32(o.track.Tile), Quality: uint32(d.Quality), Data: data,
	}, nil
}

// frameNumbering keeps the frame numbers of a stream from going back, whatever feeds it.
type frameNumbering struct {
	begun          bool
	offset, newest uint32
}

// number gives the number under which a frame goes out. restarted says that the publication is another than before.
func (n *frameNumbering) number(frame uint32, restarted bool) uint32 {
	out := frame + n.offset
	ahead := int32(out - n.newest)
	switch {
	case !n.begun:
		n.begun, n.newest = true, out
		return out
	case ahead > 0:
	case restarted || ahead < -reordering:
		out = n.newest + 1
		n.offset = out - frame
	default:
		return out
	}
	n.newest = out
	return out
}
