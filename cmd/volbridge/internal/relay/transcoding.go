package relay

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/cmd/volbridge/internal/transcode"
	"github.com/volsfu/volsfu/internal/peer/codecs"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// transcoding converts the connector's points into frames of a codec, received frames into uncompressed points, and
// audio in both directions. transcoding lives as long as the bridge.
type transcoding struct {
	codec codec.FourCC
	// up is keyed by track, down by publication and tile.
	up   *transcode.Pool[int, packable, packed]
	down *transcode.Pool[volumetric.TrackRef, unpackable, unpacked]
	// toOpus converts the connector's audio to Opus. toOpus is owned by the goroutine that sends to the server, and is
	// nil in a program without the audio codecs.
	toOpus *transcode.OpusTranscoder
	// toVoice converts received audio to VR2Gather's format, by client number. toVoice is owned by the goroutine that
	// serves the connector.
	toVoice map[uint32]*audioStream

	// mu guards logged, which has the codecs that were logged as unsupported.
	mu     sync.Mutex
	logged map[codec.FourCC]bool
}

// wholeFrames has the memory of transcoded frames. wholeFrames stores pointers, so that Put and Get do not allocate.
var wholeFrames = sync.Pool{New: func() any { return new([]byte) }}

// packable is a frame of the connector with the time of its submission. packed is the result; the memory whole is
// returned to wholeFrames.
type packable struct {
	frame     *bridge.Frame
	submitted time.Time
}

type packed struct {
	packable
	whole *[]byte
	done  time.Time
	err   error
}

// unpackable is a frame of a session for the connector, with the number of its publisher.
type unpackable struct {
	session   *client.Session
	frame     client.Frame
	client    uint32
	submitted time.Time
}

type unpacked struct {
	unpackable
	whole *[]byte
	done  time.Time
	err   error
}

// newTranscoding starts the workers: half the number of processors for each direction. A program without the audio
// codecs transcodes points only.
func newTranscoding(packs codec.Codec, log *slog.Logger) (*transcoding, error) {
	var toOpus *transcode.OpusTranscoder
	if err := transcode.AudioAvailable(); err != nil {
		log.Warn("sound is not transcoded, points are", "reason", err)
	} else if toOpus, err = transcode.NewOpusTranscoder(); err != nil {
		return nil, err
	}
	var packers []transcode.Worker[packable, packed]
	var unpackers []transcode.Worker[unpackable, unpacked]
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		packers = append(packers, packer{transcode.NewPacker(packs)})
		unpackers = append(unpackers, unpacker{transcode.NewUnpacker()})
	}
	return &transcoding{
		codec: packs.FourCC(), up: transcode.NewPool[int](packers),
		down:   transcode.NewPool[volumetric.TrackRef](unpackers),
		toOpus: toOpus, toVoice: make(map[uint32]*audioStream), logged: make(map[codec.FourCC]bool),
	}, nil
}

func (t *transcoding) close() {
	t.up.Close()
	t.down.Close()
}

// packed returns the channel of the connector's transcoded frames; nil without transcoding.
func (t *transcoding) packed() <-chan packed {
	if t == nil {
		return nil
	}
	return t.up.Results()
}

// unpacked returns the channel of received transcoded frames; nil without transcoding.
func (t *transcoding) unpacked() <-chan unpacked {
	if t == nil {
		return nil
	}
	return t.down.Results()
}

// markLogged reports whether a codec was not logged before, and marks it as logged. At most 64 codecs are logged.
func (t *transcoding) markLogged(fourCC codec.FourCC) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	const most = 64
	first := !t.logged[fourCC] && len(t.logged) < most
	if first {
		t.logged[fourCC] = true
	}
	return first
}

// packer and unpacker are workers. Each is owned by one goroutine.
type packer struct{ *transcode.Packer }

// Do implements transcode.Worker.
func (p packer) Do(in packable) packed {
	out := packed{packable: in, whole: wholeFrames.Get().(*[]byte)}
	data := in.frame.Data[vr2gather.FrameHeaderSize:][:in.frame.Header.Length]
	*out.whole, out.err = p.Pack((*out.whole)[:0], in.frame.Header.FourCC, data)
	out.done = time.Now()
	return out
}

type unpacker struct{ *transcode.Unpacker }

// Do implements transcode.Worker.
func (u unpacker) Do(in unpackable) unpacked {
	out := unpacked{unpackable: in, whole: wholeFrames.Get().(*[]byte)}
	*out.whole, out.err = u.Unpack((*out.whole)[:0], in.frame.Codec, in.frame.Data, in.frame.Capture)
	out.done = time.Now()
	return out
}

// convert transcodes a frame of the connector. convert returns false if the frame is to be published unchanged.
func (s *Relay) convert(ctx context.Context, session *client.Session, f *bridge.Frame) bool {
	if f.Kind == volumetric.KindAudio {
		return s.convertAudio(ctx, session, f)
	}
	return s.pack(session, f)
}

// pack submits a point cloud for transcoding. pack returns false if the frame is to be published unchanged, because its
// codec cannot be transcoded or the object is already published in VR2Gather's format.
func (s *Relay) pack(session *client.Session, f *bridge.Frame) bool {
	published := s.upward.cloud
	switch {
	case f.Header.FourCC != vr2gather.CodecRawPoints && f.Header.FourCC != vr2gather.CodecOctree:
		if s.transcoding.markLogged(f.Header.FourCC) {
			s.log.Warn("frames of the connector are not transcoded", "codec", f.Header.FourCC, "error",
				codec.ErrUnknown, "expected", []codec.FourCC{vr2gather.CodecRawPoints, vr2gather.CodecOctree})
		}
		return false
	case published != nil && published.VR2Gather:
		return false
	case published != nil:
		if p := session.Publisher(published.Name); p != nil && !p.Wanted(f.Tile, f.Quality) {
			s.figures.update(func(c *counts) { c.uplink.Paused++ })
			return true
		}
	}
	if s.transcoding.up.Submit(f.Track, packable{f, time.Now()}) {
		s.tally.Add(bridge.DropSuperseded)
	}
	return true
}

// publishPacked sends a transcoded frame of the connector.
func (s *Relay) publishPacked(ctx context.Context, session *client.Session, p packed) {
	defer wholeFrames.Put(p.whole)
	if p.err != nil {
		s.tally.Add(bridge.DropCodec)
		s.log.Debug("frame of the connector not transcoded", "error", p.err)
		return
	}
	s.figures.update(func(c *counts) { c.packed.Add(p.done.Sub(p.submitted)) })
	s.publish(ctx, session, outgoing{Frame: p.frame, codec: s.transcoding.codec, data: *p.whole, transcoded: true})
}

// unpack submits a received frame for transcoding.
func (m *sessionOutput) unpack(f *client.Frame, number uint32) {
	key := f.Track
	key.Quality = volumetric.QualityOff
	if m.relay.transcoding.down.Submit(key, unpackable{m.session, *f, number, time.Now()}) {
		m.relay.tally.Add(bridge.DropReceivedSuperseded)
	}
}

// deliverUnpacked sends a transcoded frame to the connector, if the frame is of this session.
func (m *sessionOutput) deliverUnpacked(ctx context.Context, u unpacked) {
	defer wholeFrames.Put(u.whole)
	if u.session != m.session {
		return
	}
	if u.err != nil {
		m.relay.tally.Add(bridge.DropReceivedCodec)
		if errors.Is(u.err, codec.ErrUnknown) && m.relay.transcoding.markLogged(u.frame.Codec) {
			m.relay.log.Warn("frames for the connector are not transcoded", "participant", u.frame.Track.Participant,
				"error", codecs.Explain(u.frame.Codec, u.err))
		}
		return
	}
	m.relay.figures.update(func(c *counts) { c.unpacked.Add(u.done.Sub(u.submitted)) })
	m.downward.deliver(ctx, &bridge.Received{
		Kind: volumetric.KindVideo, Client: u.client, Tile: u.frame.Track.Tile, Quality: u.frame.Track.Quality,
		Number: uint32(u.frame.Number), Data: *u.whole,
	}, func(long time.Duration) { m.forwardAudioUntil(ctx, long) })
	m.relay.figures.recordDown(m.session.ServerTime(time.Now()).Sub(u.frame.Complete))
}
