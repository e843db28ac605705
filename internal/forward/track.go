package forward

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TrackConfig describes an incoming stream.
type TrackConfig struct {
	Codec   volumetric.Codec
	Quality volumetric.Quality
	// Group names the tracks of one publication, which share frame numbers, so that all extend the same numbers alike when they wrap around.
	// It is the group of Slot.Select; 0 is a track of its own.
	Group uint64
	// VR2Gather says that the track comes in VR2Gather's own packets: of video, if the codec is that of payload v1, else of sound.
	VR2Gather bool
}

// Track is one incoming RTP stream, with the cache of its packets.
type Track struct {
	id      switching.TrackID
	engine  *Engine
	codec   volumetric.Codec
	quality volumetric.Quality
	group   uint64
	// audio tracks go first and lose no frame to age. framed ones are of payload v1. Others decode from key frames on if needsKey.
	audio, framed, needsKey bool
	// converted tracks come in VR2Gather's own packets.
	converted bool
	// skippable tracks may lose frames that have become too old: every frame decodes by itself, and none is audio.
	skippable bool

	log *packetlog.Log

	// Writers read what stands above for every packet, the reader changes some of what follows for every packet.
	_ cacheLine

	// opened is the position of the newest packet that opened a frame.
	opened atomic.Int64
	// paused is when the publisher was last told to pause the track, expected from when on what comes of it has been sent since it was told to go on. Both are in nanoseconds
	// since the engine's start, 0 before the first time.
	paused, expected atomic.Int64
	// mapping is the publisher's latest sender report, nil before the first.
	mapping atomic.Pointer[mapping]
	// named is the codec of the newest frame of a converted track, nil before the first.
	named atomic.Pointer[volumetric.FourCC]
	// gaps are the latest frames with packets that will not come, nil before the first.
	gaps atomic.Pointer[frameGaps]
	// keyFrameWanted is set from when a key frame is wanted until the publisher has been asked, or one has come.
	keyFrameWanted atomic.Bool
	// followers are the writers that read the log. The list is replaced, never changed.
	followers atomic.Pointer[[]*follower]

	// interval is that of the frames, in nanoseconds.
	interval atomic.Int64

	packets, bytes, frames atomic.Uint64
	rate                   frameRate

	// stream is what the reader knows of the track. The mutex of the ingress guards it that the track is bound to, or was last.
	stream *stream

	mu      sync.Mutex
	closed  bool
	ingress atomic.Pointer[Ingress]
}

// TrackStats are what has come on a track, repairs included.
type TrackStats struct {
	Packets, Bytes, Frames uint64
	// CacheBytes is what its packet cache holds.
	CacheBytes int64
}

// NewTrack adds a track. Nothing comes on it until Ingress.Bind.
func (e *Engine) NewTrack(cfg TrackConfig) *Track {
	t := &Track{
		id:        switching.TrackID(e.lastTrack.Add(1)),
		engine:    e,
		codec:     cfg.Codec,
		quality:   cfg.Quality,
		group:     cfg.Group,
		audio:     strings.HasPrefix(strings.ToLower(cfg.Codec.MIMEType), "audio/"),
		framed:    cfg.Codec.Is(volumetric.MIMEVolumetric),
		needsKey:  switching.NeedsKey(cfg.Codec.MIMEType),
		converted: cfg.VR2Gather,
		log:       packetlog.New(packetlog.Limits{Age: e.cfg.CacheAge, Bytes: e.cfg.TrackCacheBytes}, e.budget),
	}
	t.skippable = !t.audio && !t.needsKey
	t.opened.Store(-1)
	t.interval.Store(int64(pacing.DefaultInterval))
	t.followers.Store(&[]*follower{})
	e.tracks.Store(t.id, t)
	return t
}

// ID identifies the track within the engine.
func (t *Track) ID() switching.TrackID { return t.id }

// Quality is the quality that the track was made with.
func (t *Track) Quality() volumetric.Quality { return t.quality }

// Stats are the track's counts.
func (t *Track) Stats() TrackStats {
	return TrackStats{Packets: t.packets.Load(), Bytes: t.bytes.Load(), Frames: t.frames.Load(), CacheBytes: t.log.Bytes()}
}

// Pause says that the publisher is told not to send the track. Frames that are under way come for as long as a round trip.
func (t *Track) Pause() { t.paused.Store(t.engine.since(t.engine.clock())) }

// Expect says that the track was paused and that its publisher is told to go on with it: slots that it is selected for wait for a frame from after the pause. A slot
// that began with one from before it would miss those between.
func (t *Track) Expect() {
	var rtt time.Duration
	if i := t.ingress.Load(); i != nil {
		rtt = i.peer.RTT()
	}
	now, interval := t.engine.since(t.engine.clock()), t.interval.Load()
	// The last frame before the pause comes less than a round trip after it, and 0.4 of the interval more, as publishers spread their packets. It is followed by others if what the
	// publisher is told now gets to it before the next capture.
	last := min(t.paused.Load(), now-interval) + int64(rtt) + interval/2
	t.expected.Store(max(now, last))
}

// Close ends the track: it is unbound, what it holds is given back, and slots that it feeds fall silent until their next Select.
func (t *Track) Close() {
	t.mu.Lock()
	followers := *t.followers.Load()
	closed := t.closed
	t.closed = true
	t.followers.Store(&[]*follower{})
	t.mu.Unlock()
	if closed {
		return
	}
	if i := t.ingress.Load(); i != nil {
		i.Unbind(t)
	}
	t.engine.tracks.Delete(t.id)
	t.log.Clear()
	for _, f := range followers {
		f.writer.inbox.end(f)
	}
}

// enter notes where the track is bound. It returns false if the track is closed.
func (t *Track) enter(i *Ingress) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.ingress.Store(i)
	}
	return !t.closed
}

// join lets a follower be signalled, from the newest packet on. It returns false if the track is closed.
func (t *Track) join(f *follower) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	list := append(slices.Clone(*t.followers.Load()), f)
	t.followers.Store(&list)
	f.position = t.log.Head()
	return true
}

// leave ends what join began.
func (t *Track) leave(f *follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(*t.followers.Load()), func(other *follower) bool { return other == f })
	t.followers.Store(&list)
}

// publish appends a packet whose facts are established to the log. Only the reader calls it, and signal after it. A
// panic ends the process, since the writers of all clients read the log.
func (t *Track) publish(p *packetlog.Packet) {
	defer panics.Shared()
	opens := p.Facts.Opens
	t.log.Append(p)
	if opens {
		t.opened.Store(t.log.Head() - 1)
	}
}

// signal tells those who follow the track that there is something to read, and adds their writers to those that are to be woken for it.
func (t *Track) signal(roused []*writer) []*writer {
	for _, f := range *t.followers.Load() {
		if f.signal() && !slices.Contains(roused, f.writer) {
			roused = append(roused, f.writer)
		}
	}
	return roused
}

// tellGaps has those who follow the track look at its gaps.
func (t *Track) tellGaps() {
	for _, f := range *t.followers.Load() {
		f.writer.inbox.gapped(f)
	}
}

// wantKeyFrame asks the publisher for a key frame, as soon as the limit allows. It is cheap to call for every packet.
func (t *Track) wantKeyFrame() {
	if t.keyFrameWanted.Load() || t.keyFrameWanted.Swap(true) {
		return
	}
	if i := t.ingress.Load(); i != nil {
		i.wake()
	}
}
