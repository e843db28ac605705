package bridge

import (
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Layout is the number of tiles of a client and the number of qualities of each tile.
type Layout struct{ Tiles, Qualities int }

// Tracks returns the number of video streams.
func (l Layout) Tracks() int { return l.Tiles * l.Qualities }

// track returns the index of a tile at a quality.
func (l Layout) track(tile, quality uint32) (int, bool) {
	if uint64(tile) >= uint64(l.Tiles) || uint64(quality) >= uint64(l.Qualities) {
		return 0, false
	}
	return int(tile)*l.Qualities + int(quality), true
}

// Frame is a complete frame from the connector.
type Frame struct {
	Kind    volumetric.Kind
	Tile    int
	Quality volumetric.Quality
	// Track is tile × qualities + quality, or 0 for audio.
	Track int
	// Number is the connector's frame number in the track.
	Number uint32
	// Header is the parsed header at the beginning of Data.
	Header vr2gather.FrameHeader
	Data   []byte
	// Arrival is the arrival time of the last packet.
	Arrival time.Time
}

// Captured returns the time in the frame's header, or the arrival time if the header's time is implausible.
func (f *Frame) Captured() time.Time { return plausible(f.Header.TimestampMS, f.Arrival) }

// Arrival is the content of a datagram from the connector: a frame, a quality message, a viewpoint, a pose, or nothing.
type Arrival struct {
	Frame *Frame
	View  *signal.Viewpoint
	Pose  *signal.Pose
	// Choices is the text of a quality message. Chosen is set if there is one.
	Choices string
	Chosen  bool
}

// Inlet parses the datagrams of the connector.
type Inlet struct {
	Handshake *Handshake
	layout    Layout
	wanted    bool
	tally     *Tally
	video     *Assembly
	audio     *Assembly
	scene     *Scene
	counts    InletCounts
}

// InletCounts counts the input from the connector.
type InletCounts struct {
	Datagrams   int64 `json:"datagrams"`
	Frames      int64 `json:"frames"`
	FrameBytes  int64 `json:"frame_bytes"`
	AudioFrames int64 `json:"audio_frames"`
}

// NewInlet returns an inlet for a connector that is expected at the given address. wanted is set if the connector's
// media is wanted.
func NewInlet(expected netip.AddrPort, layout Layout, wanted bool, tally *Tally) *Inlet {
	return &Inlet{
		Handshake: NewHandshake(expected),
		layout:    layout,
		wanted:    wanted,
		tally:     tally,
		video:     NewAssembly(layout.Tracks(), tally),
		audio:     NewAssembly(1, tally),
		scene:     NewScene(layout.Tiles),
	}
}

// Receive parses a datagram. The memory of the datagram is not kept.
func (i *Inlet) Receive(from netip.AddrPort, datagram []byte, now time.Time) Arrival {
	i.counts.Datagrams++
	if presentsSecret(datagram) {
		i.handleSecret(from, datagram, now)
		return Arrival{}
	}
	if i.scene.isScene(datagram) {
		return i.handleScene(from, datagram, now)
	}
	d, err := vr2gather.ParseDatagram(datagram)
	if err != nil {
		i.tally.Add(DropDatagram)
		return Arrival{}
	}
	var p vr2gather.Packet
	media := d.Type == vr2gather.DatagramTile || d.Type == vr2gather.DatagramAudio
	if media {
		if p, err = d.Packet(); err != nil {
			i.tally.Add(DropPacket)
			return Arrival{}
		}
	}
	// Malformed datagrams must not set the address of the connector.
	if !i.Handshake.Received(from, now) {
		i.tally.Add(DropSource)
		return Arrival{}
	}
	switch {
	case d.Type == vr2gather.DatagramControl:
		return Arrival{Choices: d.Text(), Chosen: true}
	case !media:
		return Arrival{}
	case !i.wanted:
		i.tally.Add(DropUnwanted)
		return Arrival{}
	}
	return Arrival{Frame: i.handleMedia(&p, now)}
}

// handleSecret handles a datagram that presents a secret.
func (i *Inlet) handleSecret(from netip.AddrPort, datagram []byte, now time.Time) {
	secret, ok := readSecret(datagram)
	if !ok {
		i.tally.Add(DropPacket)
		return
	}
	if reason, ok := i.Handshake.Presented(from, secret, now); !ok {
		i.tally.Add(reason)
	}
}

// handleScene handles a datagram about the scene.
func (i *Inlet) handleScene(from netip.AddrPort, datagram []byte, now time.Time) Arrival {
	view, placed, err := i.scene.read(datagram)
	switch {
	case err != nil:
		i.tally.Add(DropPacket)
	case !i.Handshake.Received(from, now):
		i.tally.Add(DropSource)
	case placed != nil:
		return Arrival{Pose: i.scene.place(placed)}
	default:
		return Arrival{View: view}
	}
	return Arrival{}
}

// handleMedia handles a media packet and returns the frame that the packet completes.
func (i *Inlet) handleMedia(p *vr2gather.Packet, now time.Time) *Frame {
	f := &Frame{Kind: p.Kind, Tile: int(p.Tile), Quality: volumetric.Quality(p.Quality), Number: p.Frame, Arrival: now}
	if p.Kind == volumetric.KindAudio {
		f.Data = i.audio.Push(0, p, now)
	} else {
		track, ok := i.layout.track(p.Tile, p.Quality)
		if !ok {
			i.tally.Add(DropTrack)
			return nil
		}
		f.Track = track
		f.Data = i.video.Push(track, p, now)
	}
	// An empty frame has no header and is not a valid frame.
	if f.Data == nil {
		return nil
	}
	if _, err := f.Header.Parse(f.Data); err != nil {
		i.tally.Add(DropHeader)
		return nil
	}
	if f.Kind == volumetric.KindAudio {
		i.counts.AudioFrames++
	} else {
		i.counts.Frames++
		i.counts.FrameBytes += int64(len(f.Data))
	}
	return f
}

// Expire drops the frames that have been incomplete for too long.
func (i *Inlet) Expire(now time.Time) {
	i.video.Expire(now)
	i.audio.Expire(now)
}

// Counts returns the counters.
func (i *Inlet) Counts() InletCounts { return i.counts }
