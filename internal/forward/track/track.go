// Package track has an incoming RTP stream as the two sides of the forwarding path share it: one reader, which holds
// the stream's packets, facts and rate current, and any number of followers, which read the log. The reader is an
// ingress, the followers belong to the writers of receivers.
package track

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/turn"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Config describes an incoming stream.
type Config struct {
	Codec   volumetric.Codec
	Quality volumetric.Quality
	// Group names the tracks of one publication, which share frame numbers, so that all extend the same numbers alike
	// when they wrap around. It is the group that slots select with. 0 is a track of its own.
	Group uint64
	// VR2Gather is set if the track comes in VR2Gather's own packets: of video, if the codec is that of payload v1,
	// else of sound.
	VR2Gather bool
}

// Source brings the packets of a track in, while it is bound to a publisher's connection. Its methods are safe for any
// goroutine. Without a binding they have no effect and return 0.
type Source interface {
	// Unbind ends the binding.
	Unbind()
	// RequestKeyFrame makes the connection look for key frames that are wanted.
	RequestKeyFrame()
	// RTT is the round-trip time to the publisher, 0 while it is unknown.
	RTT() time.Duration
	// ParityShare is the share of parity that the publisher's path calls for.
	ParityShare() float64
}

// Follower is a writer that reads the log of a track. Its methods are safe for any goroutine.
type Follower interface {
	// Signal is called after the reader has moved the log's head. It returns the turn to be lent or woken for it, nil
	// if the follower has been signalled already.
	Signal() *turn.Turn
	// Gapped is called after packets of the track have been given up.
	Gapped()
	// Ended is called when the track is closed.
	Ended()
}

// Mapping is what a publisher's latest sender report says: a timestamp, the capture time that it stands for, and when
// the report arrived.
type Mapping struct {
	Timestamp        uint32
	Capture, Arrived time.Time
}

// Track is one incoming RTP stream, with the cache of its packets.
type Track struct {
	id      switching.TrackID
	tracks  *Tracks
	codec   volumetric.Codec
	quality volumetric.Quality
	group   uint64
	// audio, framed, needsKey, converted and skippable are what the methods of these names report.
	audio, framed, needsKey, converted, skippable bool

	log *packetlog.Log

	// Writers read what stands above for every packet, the reader changes some of what follows for every packet. The
	// gap is two lines of 64 bytes, because processors fetch pairs of them.
	_ [128]byte

	// opened is the position of the newest packet that opened a frame.
	opened atomic.Int64
	// paused is when the publisher was last told to pause the track, expected from when on what comes of the track has
	// been sent since the publisher was told to resume it. Both are in nanoseconds since the engine's start, 0 before
	// the first time.
	paused, expected atomic.Int64
	// mapping is nil before the publisher's first sender report.
	mapping atomic.Pointer[Mapping]
	// named is the codec of the newest frame of a converted track, nil before the first.
	named  atomic.Pointer[volumetric.FourCC]
	losses Losses
	// keyFrameWanted is set from when a key frame is wanted until the publisher has been asked, or one has come.
	keyFrameWanted atomic.Bool
	// followers is the list of those that read the log. The list is replaced, never changed.
	followers atomic.Pointer[[]Follower]

	// interval is that of the frames, in nanoseconds.
	interval atomic.Int64

	packets, bytes, frames atomic.Uint64
	rate                   frameRate

	mu     sync.Mutex
	closed bool
	// source is nil before the first binding.
	source atomic.Pointer[Source]
}

// Stats are the counts of a track's packets, repairs included.
type Stats struct {
	Packets, Bytes, Frames uint64
	// CacheBytes is what the track's packet cache holds.
	CacheBytes int64
}

// Tracks are the open tracks of one engine.
type Tracks struct {
	clock  *packetlog.Clock
	limits packetlog.Limits
	budget *packetlog.Budget
	// open are the tracks by switching.TrackID.
	open sync.Map
	last atomic.Uint64
}

// NewTracks returns an empty set. Limits are those of one track's cache, the budget is that of all caches.
func NewTracks(clock *packetlog.Clock, limits packetlog.Limits, budget *packetlog.Budget) *Tracks {
	return &Tracks{clock: clock, limits: limits, budget: budget}
}

// New adds a track. Nothing comes on it until it is bound to a source.
func (s *Tracks) New(cfg Config) *Track {
	t := &Track{
		id:        switching.TrackID(s.last.Add(1)),
		tracks:    s,
		codec:     cfg.Codec,
		quality:   cfg.Quality,
		group:     cfg.Group,
		audio:     strings.HasPrefix(strings.ToLower(cfg.Codec.MIMEType), "audio/"),
		framed:    cfg.Codec.Is(volumetric.MIMEVolumetric),
		needsKey:  switching.NeedsKey(cfg.Codec.MIMEType),
		converted: cfg.VR2Gather,
		log:       packetlog.New(s.limits, s.budget),
	}
	t.skippable = !t.audio && !t.needsKey
	t.opened.Store(-1)
	t.interval.Store(int64(pacing.DefaultInterval))
	t.followers.Store(&[]Follower{})
	s.open.Store(t.id, t)
	return t
}

// Find returns an open track, nil if there is none with that identifier.
func (s *Tracks) Find(id switching.TrackID) *Track {
	if t, ok := s.open.Load(id); ok {
		return t.(*Track)
	}
	return nil
}

// Usage returns the number of open tracks, and the bytes that their caches hold.
func (s *Tracks) Usage() (tracks int, bytes int64) {
	s.open.Range(func(_, t any) bool {
		tracks++
		bytes += t.(*Track).log.Bytes()
		return true
	})
	return tracks, bytes
}

// Close closes all tracks.
func (s *Tracks) Close() {
	s.open.Range(func(_, t any) bool {
		t.(*Track).Close()
		return true
	})
}

// ID identifies the track within the engine.
func (t *Track) ID() switching.TrackID { return t.id }

// Codec is the codec that the track was made with.
func (t *Track) Codec() volumetric.Codec { return t.codec }

// Quality is the quality that the track was made with.
func (t *Track) Quality() volumetric.Quality { return t.quality }

// Group names the publication of the track.
func (t *Track) Group() uint64 { return t.group }

// Audio reports whether the track is sound. Audio goes first and loses no frame to age.
func (t *Track) Audio() bool { return t.audio }

// Framed reports whether the track is one of payload v1.
func (t *Track) Framed() bool { return t.framed }

// NeedsKey reports whether the track decodes only from a key frame on.
func (t *Track) NeedsKey() bool { return t.needsKey }

// Converted reports whether the track comes in VR2Gather's own packets.
func (t *Track) Converted() bool { return t.converted }

// Skippable reports whether the track may lose frames that have become too old: every frame decodes by itself, and none
// is audio.
func (t *Track) Skippable() bool { return t.skippable }

// Log is the cache of the track's packets. Only the reader appends and removes.
func (t *Track) Log() *packetlog.Log { return t.log }

// Opened is the position in the log of the newest packet that opened a frame, -1 before the first.
func (t *Track) Opened() int64 { return t.opened.Load() }

// Interval is the interval of the track's frames.
func (t *Track) Interval() time.Duration { return time.Duration(t.interval.Load()) }

// SetInterval is for the reader.
func (t *Track) SetInterval(d time.Duration) { t.interval.Store(int64(d)) }

// Mapping is nil before the publisher's first sender report.
func (t *Track) Mapping() *Mapping { return t.mapping.Load() }

// Map is for the reader.
func (t *Track) Map(m Mapping) { t.mapping.Store(&m) }

// Stats are the track's counts.
func (t *Track) Stats() Stats {
	return Stats{Packets: t.packets.Load(), Bytes: t.bytes.Load(), Frames: t.frames.Load(), CacheBytes: t.log.Bytes()}
}

// FrameCodec is the codec that the newest frame of a VR2Gather peer's track names, zero if it names none. It is not ok
// before the first frame, and for other tracks.
func (t *Track) FrameCodec() (codec volumetric.FourCC, ok bool) {
	if named := t.named.Load(); named != nil {
		return *named, true
	}
	return codec, false
}

// NameCodec notes the codec of a frame. It is for the reader.
func (t *Track) NameCodec(codec volumetric.FourCC) {
	if named := t.named.Load(); named == nil || *named != codec {
		t.named.Store(&codec)
	}
}

// Pause says that the publisher is told not to send the track. Frames that are under way come for as long as a round
// trip.
func (t *Track) Pause() { t.paused.Store(t.tracks.clock.Since(t.tracks.clock.Now())) }

// Expect says that the track was paused and that its publisher is told to resume it: slots that select the track wait
// for a frame from after the pause. A slot that began with a frame from before it would miss those between.
func (t *Track) Expect() {
	var rtt time.Duration
	if s := t.Source(); s != nil {
		rtt = s.RTT()
	}
	now, interval := t.tracks.clock.Since(t.tracks.clock.Now()), t.interval.Load()
	// The last frame before the pause comes less than a round trip after it, and 0.4 of the interval more, as
	// publishers spread their packets. It is followed by others if what the publisher is told now gets to it before the
	// next capture.
	last := min(t.paused.Load(), now-interval) + int64(rtt) + interval/2
	t.expected.Store(max(now, last))
}

// Expected is from when on what comes of the track has been sent after its last pause, in nanoseconds since the
// engine's start.
func (t *Track) Expected() int64 { return t.expected.Load() }

// Close ends the track: it is unbound, what it holds is given back, and slots that it feeds fall silent until they
// select another track.
func (t *Track) Close() {
	t.mu.Lock()
	followers := *t.followers.Load()
	closed := t.closed
	t.closed = true
	t.followers.Store(&[]Follower{})
	t.mu.Unlock()
	if closed {
		return
	}
	if s := t.Source(); s != nil {
		s.Unbind()
	}
	t.tracks.open.Delete(t.id)
	t.log.Clear()
	for _, f := range followers {
		f.Ended()
	}
}

// Source is what brings the track's packets in, nil before the first binding.
func (t *Track) Source() Source {
	if s := t.source.Load(); s != nil {
		return *s
	}
	return nil
}

// Enter sets the source of the track, which is about to be bound. It returns false if the track is closed.
func (t *Track) Enter(s Source) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.source.Store(&s)
	}
	return !t.closed
}

// Join lets a follower be signalled, from the newest packet on, whose position in the log Join returns. It returns
// false if the track is closed.
func (t *Track) Join(f Follower) (position int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0, false
	}
	list := append(slices.Clone(*t.followers.Load()), f)
	t.followers.Store(&list)
	return t.log.Head(), true
}

// Part ends what Join began.
func (t *Track) Part(f Follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(*t.followers.Load()), func(other Follower) bool { return other == f })
	t.followers.Store(&list)
}

// Followers is the number of followers.
func (t *Track) Followers() int { return len(*t.followers.Load()) }

// Publish appends a packet whose facts are established to the log. Only the reader calls Publish, and Signal after it.
// A panic ends the process, since the writers of all clients read the log.
func (t *Track) Publish(p *packetlog.Packet) {
	defer panics.Shared()
	opens := p.Facts.Opens
	t.log.Append(p)
	if opens {
		t.opened.Store(t.log.Head() - 1)
	}
}

// Count counts a packet that is about to be published, and reports whether it opens a frame that is no audio. It is for
// the reader.
func (t *Track) Count(p *packetlog.Packet) (opens bool) {
	t.packets.Add(1)
	t.bytes.Add(uint64(len(p.Payload)))
	if p.Class == packetlog.Media || p.Class == packetlog.Audio {
		t.rate.add(len(p.Payload), p.Facts.Opens, time.Duration(p.Order))
	}
	if !p.Facts.Opens || t.audio {
		return false
	}
	t.frames.Add(1)
	if t.needsKey && p.Facts.Key {
		// Every receiver that asked before is served.
		t.keyFrameWanted.Store(false)
	}
	return true
}

// Signal signals the followers that there is something to read, and adds the turns to be lent or woken for it to a list
// in which each stands once.
func (t *Track) Signal(roused []*turn.Turn) []*turn.Turn {
	for _, f := range *t.followers.Load() {
		if w := f.Signal(); w != nil && !slices.Contains(roused, w) {
			roused = append(roused, w)
		}
	}
	return roused
}

// WantKeyFrame asks the publisher for a key frame, as soon as the limit allows. It is cheap to call for every packet.
func (t *Track) WantKeyFrame() {
	if t.keyFrameWanted.Load() || t.keyFrameWanted.Swap(true) {
		return
	}
	if s := t.Source(); s != nil {
		s.RequestKeyFrame()
	}
}

// KeyFrameWanted reports whether the publisher is to be asked for a key frame.
func (t *Track) KeyFrameWanted() bool { return t.keyFrameWanted.Load() }

// KeyFrameAsked notes that the publisher is asked for a key frame.
func (t *Track) KeyFrameAsked() { t.keyFrameWanted.Store(false) }

// UplinkParity is the share of parity that the publisher's path calls for. Only frames of payload v1 have parity. A nil
// track needs none.
func (t *Track) UplinkParity() float64 {
	if t == nil || !t.framed {
		return 0
	}
	if s := t.Source(); s != nil {
		return s.ParityShare()
	}
	return 0
}
