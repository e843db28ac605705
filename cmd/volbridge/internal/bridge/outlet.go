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
	// Client is the publisher's number.
	Client  uint32
	Tile    int
	Quality volumetric.Quality
	// Number is the frame's number within its publication.
	Number uint32
	// Data is the frame, VR2Gather's header included.
	Data []byte
	// Arrival is when its last packet came, where that is known.
	Arrival time.Time
}

// Outlet turns frames into datagrams for the connector. The connector takes a frame only if its number is no lower than
// the last one's of the same client and tile, for as long as it lives; publications begin anew at 0. So the outlet
// numbers by itself, and leaves out what is older than the last one. A connector may outlive the outlet, too, and what
// it knows of a client: numbers begin with the clock, which is ahead of any that came before.
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

// OutletCounts are what went to the connector.
type OutletCounts struct {
	Datagrams   int64 `json:"datagrams"`
	Frames      int64 `json:"frames"`
	FrameBytes  int64 `json:"frame_bytes"`
	AudioFrames int64 `json:"audio_frames"`
}

// firstNumbers is how many numbers there are to begin with, one per millisecond, which is faster than frames come. The
// highest leaves room to count on, also for a connector whose numbers have a sign. They begin again every 12 days.
const firstNumbers = 1 << 30

// FirstNumber is the number of the first frame of a stream that begins now.
func FirstNumber(now time.Time) uint32 { return uint32(now.UnixMilli() % firstNumbers) }

// NewOutlet makes an outlet that counts what it leaves out.
func NewOutlet(tally *Tally) *Outlet {
	return &Outlet{tally: tally, streams: make(map[outletStream]*outletState)}
}

// Cut appends the datagrams of a frame to dst, one behind the other, each of vr2gather.DatagramSize bytes.
func (o *Outlet) Cut(dst []byte, f *Received, now time.Time) []byte {
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
			// A packet that was cut fits by construction; one that does not is no reason to send a frame with a hole.
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

// Anew says that a client's publications begin anew: what comes next is not older than what came before.
func (o *Outlet) Anew(client uint32) {
	for key, s := range o.streams {
		if key.client == client {
			s.order = order{}
		}
	}
}

// Restart says that the publications of all clients begin anew, as they do with another session.
func (o *Outlet) Restart() {
	for _, s := range o.streams {
		s.order = order{}
	}
}

// Keep forgets all clients but those that are here.
func (o *Outlet) Keep(here func(client uint32) bool) {
	maps.DeleteFunc(o.streams, func(key outletStream, _ *outletState) bool { return !here(key.client) })
}

// Counts is what was cut so far.
func (o *Outlet) Counts() OutletCounts { return o.counts }

// stream is what is known of a client's tile. There are as many as clients have numbers and publications have tiles,
// which both are bounded.
func (o *Outlet) stream(key outletStream, now time.Time) *outletState {
	s := o.streams[key]
	if s == nil {
		s = &outletState{next: FirstNumber(now)}
		o.streams[key] = s
	}
	return s
}
