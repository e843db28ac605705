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

// ErrNotVR2Gather is returned for a packet that cannot be sent to a VR2Gather peer.
var ErrNotVR2Gather = errors.New("packet cannot be sent to a VR2Gather peer")

const (
	// vr2GatherHeader is the length of the RTP header that VR2Gather peers assume: 12 bytes, and 8 bytes for the
	// extension with the transport-wide number.
	vr2GatherHeader = 20
	// reordering is the maximum distance of the number of a late frame behind the newest. A frame farther back is
	// numbered as a new frame.
	reordering = 64
)

// VR2GatherOutlet sends the packets of a slot to a VR2Gather peer in VR2Gather's own format, never twice, and with
// frame numbers that continue after the frame numbers of the former publication.
type VR2GatherOutlet struct {
	egress.Outlet
	track       vr2gather.Track
	payloadType uint8
	// restarted is set when another publication follows.
	restarted atomic.Bool
	numbering frameNumbering
	packet    [vr2gather.MaxPacketSize]byte
}

// NewVR2GatherOutlet returns an outlet that sends on o with the given payload type. track is the client and tile, or
// the client's audio, that the packets carry.
func NewVR2GatherOutlet(o egress.Outlet, track vr2gather.Track, payloadType uint8) *VR2GatherOutlet {
	return &VR2GatherOutlet{Outlet: o, track: track, payloadType: payloadType}
}

// Restart announces another publication with unrelated frame numbers. Restart is safe for any goroutine.
func (o *VR2GatherOutlet) Restart() { o.restarted.Store(true) }

// RetransmissionSSRC implements egress.Outlet. VR2Gather peers accept neither retransmissions nor padding on an RTX
// stream.
func (o *VR2GatherOutlet) RetransmissionSSRC() uint32 { return 0 }

// PayloadType implements egress.Outlet.
func (o *VR2GatherOutlet) PayloadType(mime string) (media, retransmission uint8, ok bool) {
	_, _, ok = o.Outlet.PayloadType(mime)
	return o.payloadType, 0, ok
}

// Queue implements egress.Outlet. Errors for packets that VR2Gather peers cannot read wrap ErrNotVR2Gather.
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

// read converts a packet of the server into a packet of VR2Gather.
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

// frameNumbering keeps the frame numbers of a stream from decreasing when the publication changes.
type frameNumbering struct {
	begun          bool
	offset, newest uint32
}

// number returns the outgoing number of a frame. restarted is set if the publication has changed.
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
