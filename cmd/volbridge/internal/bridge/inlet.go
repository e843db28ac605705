package bridge

import (
	"net/netip"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Layout is what a client publishes: so many tiles at so many qualities.
type Layout struct{ Tiles, Qualities int }

// Tracks is the number of streams of video.
func (l Layout) Tracks() int { return l.Tiles * l.Qualities }

// track is the index of a tile at a quality.
func (l Layout) track(tile, quality uint32) (int, bool) {
	if uint64(tile) >= uint64(l.Tiles) || uint64(quality) >= uint64(l.Qualities) {
		return 0, false
	}
	return int(tile)*l.Qualities + int(quality), true
}

// Frame is one frame of the connector, complete.
type Frame struct {
	Kind    volumetric.Kind
	Tile    int
	Quality volumetric.Quality
	// Track is tile × qualities + quality, 0 for audio.
	Track int
	// Number is the connector's, of the track.
	Number uint32
	// Header is that of Data, which it is part of.
	Header vr2gather.FrameHeader
	Data   []byte
	// Arrival is when the last packet came.
	Arrival time.Time
}

// Captured is the time in the frame's header, or that of its arrival where that cannot be true.
func (f *Frame) Captured() time.Time { return believed(f.Header.TimestampMS, f.Arrival) }

// Arrival is what a datagram of the connector brought: a frame, a text, something about the scene, or nothing.
type Arrival struct {
	Frame *Frame
	View  *signal.Viewpoint
	Pose  *signal.Pose
	// Choices is the text of a quality message, where Chosen says that there is one.
	Choices string
	Chosen  bool
}

// Inlet reads what the connector sends.
type Inlet struct {
	Handshake *Handshake
	layout    Layout
	takes     bool
	tally     *Tally
	video     *Assembly
	audio     *Assembly
	scene     *Scene
	counts    InletCounts
}

// InletCounts are what came from the connector.
type InletCounts struct {
	Datagrams   int64 `json:"datagrams"`
	Frames      int64 `json:"frames"`
	FrameBytes  int64 `json:"frame_bytes"`
	AudioFrames int64 `json:"audio_frames"`
}

// NewInlet reads a connector that is expected at an address. takes tells whether its media is wanted.
func NewInlet(home netip.AddrPort, layout Layout, takes bool, tally *Tally) *Inlet {
	return &Inlet{
		Handshake: NewHandshake(home),
		layout:    layout,
		takes:     takes,
		tally:     tally,
		video:     NewAssembly(layout.Tracks(), tally),
		audio:     NewAssembly(1, tally),
		scene:     NewScene(layout.Tiles),
	}
}

// Receive takes a datagram, which may be used for other things afterwards.
func (i *Inlet) Receive(from netip.AddrPort, datagram []byte, now time.Time) Arrival {
	i.counts.Datagrams++
	if presentsSecret(datagram) {
		i.presented(from, datagram, now)
		return Arrival{}
	}
	if i.scene.about(datagram) {
		return i.seen(from, datagram, now)
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
	// Whoever sends garbage is not the connector: only what can be read says where that is.
	if !i.Handshake.Heard(from, now) {
		i.tally.Add(DropSource)
		return Arrival{}
	}
	switch {
	case d.Type == vr2gather.DatagramControl:
		return Arrival{Choices: d.Text(), Chosen: true}
	case !media:
		return Arrival{}
	case !i.takes:
		i.tally.Add(DropNotTaken)
		return Arrival{}
	}
	return Arrival{Frame: i.media(&p, now)}
}

// presented takes a datagram that presents a secret.
func (i *Inlet) presented(from netip.AddrPort, datagram []byte, now time.Time) {
	secret, ok := readSecret(datagram)
	if !ok {
		i.tally.Add(DropPacket)
		return
	}
	if reason, ok := i.Handshake.Presented(from, secret, now); !ok {
		i.tally.Add(reason)
	}
}

// seen takes a datagram about the scene.
func (i *Inlet) seen(from netip.AddrPort, datagram []byte, now time.Time) Arrival {
	view, placed, err := i.scene.read(datagram)
	switch {
	case err != nil:
		i.tally.Add(DropPacket)
	case !i.Handshake.Heard(from, now):
		i.tally.Add(DropSource)
	case placed != nil:
		return Arrival{Pose: i.scene.place(placed)}
	default:
		return Arrival{View: view}
	}
	return Arrival{}
}

// media takes a packet, and returns the frame that it completes.
func (i *Inlet) media(p *vr2gather.Packet, now time.Time) *Frame {
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
	// A frame without a byte has no header, either, and is no frame.
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

// Expire gives up frames whose rest does not come.
func (i *Inlet) Expire(now time.Time) {
	i.video.Expire(now)
	i.audio.Expire(now)
}

// Counts is what came so far.
func (i *Inlet) Counts() InletCounts { return i.counts }
