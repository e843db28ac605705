package bridge

import (
	"maps"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Received is one frame for the connector.
type Received struct {
	Kind volumetric.Kind
	// Client is the number of the publisher.
	Client  uint32
	Tile    int
	Quality volumetric.Quality
	// Number is the frame's number in its publication.
	Number uint32
	// Data is the frame with VR2Gather's header.
	Data []byte
	// Arrival is the arrival time of the last packet, zero if unknown.
	Arrival time.Time
}

// Outlet converts frames into datagrams for the connector. The connector accepts a frame only if its number is at least
// that of the last frame of the same client and tile, for the lifetime of the connector. A restarted publication begins
// at 0. Therefore the outlet assigns its own numbers and drops frames that are older than the last one. A connector may
// also outlive the outlet: the first number is derived from the clock and is higher than all earlier ones.
type Outlet struct {
	tally   *Tally
	streams map[outletStream]*outletState
	counts  OutletCounts
}

type outletStream struct {
	kind   volumetric.Kind
	client uint32
	tile   int
}

type outletState struct {
	order order
	next  uint32
}

// OutletCounts counts the output to the connector.
type OutletCounts struct {
	Datagrams   int64 `json:"datagrams"`
	Frames      int64 `json:"frames"`
	FrameBytes  int64 `json:"frame_bytes"`
	AudioFrames int64 `json:"audio_frames"`
}

// firstNumbers is the number of possible first numbers, one per millisecond, which is faster than frames arrive. The
// highest first number leaves room for counting, even if a connector uses signed numbers. First numbers repeat every 12
// days.
const firstNumbers = 1 << 30

// FirstNumber returns the number of the first frame of a stream that begins now.
func FirstNumber(now time.Time) uint32 { return uint32(now.UnixMilli() % firstNumbers) }

// NewOutlet returns an outlet that counts dropped frames in tally.
func NewOutlet(tally *Tally) *Outlet {
	return &Outlet{tally: tally, streams: make(map[outletStream]*outletState)}
}

// AppendDatagrams appends the datagrams of a frame to dst, each of vr2gather.DatagramSize bytes.
func (o *Outlet) AppendDatagrams(dst []byte, f *Received, now time.Time) []byte {
	s := o.stream(outletStream{f.Kind, f.Client, f.Tile}, now)
	if s.order.late(f.Number) {
		o.tally.Add(DropOrder)
		return dst
	}
	s.order.advance(f.Number)
	begin := len(dst)
	frame := vr2gather.Packet{Kind: f.Kind, Client: f.Client, Frame: s.next, Tile: uint32(f.Tile),
		Quality: uint32(f.Quality)}
	s.next++
	for p := range vr2gather.Cut(frame, f.Data) {
		var err error
		if dst, err = vr2gather.AppendPacketDatagram(dst, &p); err != nil {
			// Packets that were cut fit by construction. If one does not, the frame is dropped, because a frame with a
			// gap is useless.
			o.tally.Add(DropSocket)
			return dst[:begin]
		}
	}
	o.counts.Datagrams += int64((len(dst) - begin) / vr2gather.DatagramSize)
	if f.Kind == volumetric.KindAudio {
		o.counts.AudioFrames++
	} else {
		o.counts.Frames++
		o.counts.FrameBytes += int64(len(f.Data))
	}
	return dst
}

// RestartClient records that a client's publications are restarted: the next frame is not late.
func (o *Outlet) RestartClient(client uint32) {
	for key, s := range o.streams {
		if key.client == client {
			s.order = order{}
		}
	}
}

// Restart records that the publications of all clients are restarted, as in a new session.
func (o *Outlet) Restart() {
	for _, s := range o.streams {
		s.order = order{}
	}
}

// Retain removes all clients for which present returns false.
func (o *Outlet) Retain(present func(client uint32) bool) {
	maps.DeleteFunc(o.streams, func(key outletStream, _ *outletState) bool { return !present(key.client) })
}

// Counts returns the counters.
func (o *Outlet) Counts() OutletCounts { return o.counts }

// stream returns the state of a client's tile. The number of states is bounded by the numbers of clients and of tiles.
func (o *Outlet) stream(key outletStream, now time.Time) *outletState {
	s := o.streams[key]
	if s == nil {
		s = &outletState{next: FirstNumber(now)}
		o.streams[key] = s
	}
	return s
}
